//! Names of streams. The name says which connections belong to one stream.

use polyclave_protocol::PartySet;

/// The same 32 bytes at every party of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamId(pub(crate) [u8; 32]);

impl StreamId {
    /// The stream that `join` opens, and the only one of a client.
    pub(crate) fn root() -> Self {
        StreamId(blake3::derive_key("polyclave transport 2025 root stream", &[]))
    }

    /// The family of streams among these nodes of a cluster; others have others, even under the same name.
    pub(crate) fn among(&self, members: PartySet) -> Self {
        self.child("polyclave transport 2026 streams among members", &members.bits().to_le_bytes())
    }

    /// The root of the streams of some of the nodes, which have numbers of their own among themselves.
    pub(crate) fn of_some(&self, members: PartySet) -> Self {
        self.child("polyclave transport 2026 root of some of the nodes", &members.bits().to_le_bytes())
    }

    /// The `count`-th fork of this stream.
    pub(crate) fn fork(&self, count: u64) -> Self {
        self.child("polyclave transport 2025 forked stream", &count.to_le_bytes())
    }

    /// A fork of this stream, among some of its parties and under a name of theirs.
    pub(crate) fn fork_among(&self, members: PartySet, name: &[u8]) -> Self {
        let which = [&members.bits().to_le_bytes()[..], name].concat();
        self.child("polyclave transport 2026 forked stream among some", &which)
    }

    /// The stream that a caller named.
    pub(crate) fn named(&self, name: &str) -> Self {
        self.child("polyclave transport 2025 named stream", name.as_bytes())
    }

    fn child(&self, kind: &str, which: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(kind);
        hasher.update(&self.0).update(which);
        StreamId(hasher.finalize().into())
    }
}
