//! The first bytes on a connection after its TLS handshake: what both sides must agree on, and which stream
//! it is.
//!
//! The dialling side sends its greeting. The accepting side answers with its own, which names the same
//! stream. Both sides compare. So both report a difference, and the dialling side knows that it was accepted.
//! Each says which versions it speaks of everything that follows. The connection is of the newest that both
//! speak. The greeting itself has the same bytes in every version.

use polyclave_protocol::versions::{CLIENTS, NODES, Spoken, Versions};
use polyclave_protocol::{Error, Party};
use rustls::pki_types::CertificateDer;

use crate::limits::Limits;
use crate::stream::StreamId;

/// Bytes of a greeting.
pub(crate) const GREETING: usize = 10 + 4 + 32 + 32;
/// Names the protocol, in case another TLS program connects.
const MAGIC: [u8; 8] = *b"polyclav";

/// What both sides of a connection must agree on.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// What has versions.
    pub(crate) versions: &'static Versions,
    /// Which of them this side speaks.
    pub(crate) spoken: Spoken,
    /// [`Limits::max_frame`](crate::Limits::max_frame).
    pub(crate) max_frame: u32,
    /// A digest of all other terms.
    pub(crate) digest: [u8; 32],
    /// What the digest covers, for people.
    pub(crate) of: &'static str,
}

impl Terms {
    /// The terms between the parties of a session: all their certificates, in order.
    pub(crate) fn session<'a>(
        limits: &Limits,
        certificates: impl Iterator<Item = &'a CertificateDer<'a>>,
    ) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave transport 2025 session");
        for certificate in certificates {
            hasher.update(&(certificate.len() as u64).to_le_bytes()).update(certificate);
        }
        Self::new(&NODES, limits, hasher.finalize().into(), "list of certificates")
    }

    /// The terms between the nodes of a cluster: its name. Certificates are not part of it, because they
    /// change; TLS has checked them.
    pub(crate) fn nodes(limits: &Limits, cluster: &[u8; 16]) -> Self {
        let digest = blake3::derive_key("polyclave transport 2026 nodes of a cluster", cluster);
        Self::new(&NODES, limits, digest, "cluster")
    }

    /// The terms between a client and a node of a cluster.
    pub(crate) fn clients(limits: &Limits, cluster: &[u8; 16]) -> Self {
        let digest = blake3::derive_key("polyclave transport 2026 clients of a cluster", cluster);
        Self::new(&CLIENTS, limits, digest, "cluster")
    }

    fn new(versions: &'static Versions, limits: &Limits, digest: [u8; 32], of: &'static str) -> Self {
        // `Limits::check` has made sure that it fits.
        Terms { versions, spoken: versions.spoken(), max_frame: limits.max_frame as u32, digest, of }
    }

    /// The greeting on the connection of `stream`.
    pub(crate) fn greeting(&self, stream: StreamId) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&[self.spoken.oldest, self.spoken.newest]);
        bytes[10..14].copy_from_slice(&self.max_frame.to_be_bytes());
        bytes[14..46].copy_from_slice(&self.digest);
        bytes[46..].copy_from_slice(&stream.0);
        bytes
    }

    /// Compares the terms in the greeting of `peer` with these. Returns the version of the connection.
    pub(crate) fn check(&self, peer: Party, greeting: &[u8; GREETING]) -> Result<u8, Error> {
        let ours = self.greeting(stream_of(greeting));
        // Before there were ranges, these bytes were one number: 0 and 4 at last.
        let theirs = Spoken { oldest: greeting[8], newest: greeting[9] };
        if greeting[..8] != ours[..8] || theirs.oldest > theirs.newest {
            return Err(Error::Peer { peer, detail: "its greeting is not that of polyclave".into() });
        }
        let Some(version) = self.spoken.meet(theirs) else {
            let detail = self.versions.apart((self.spoken, "this party"), (theirs, "that one"));
            return Err(Error::Peer { peer, detail });
        };
        if greeting[10..14] != ours[10..14] {
            return Err(Error::Disagreement { peer, field: "frame limit" });
        }
        if greeting[14..46] != ours[14..46] {
            return Err(Error::Disagreement { peer, field: self.of });
        }
        Ok(version)
    }
}

/// The stream that a greeting names.
pub(crate) fn stream_of(greeting: &[u8; GREETING]) -> StreamId {
    let mut stream = StreamId([0; 32]);
    stream.0.copy_from_slice(&greeting[46..]);
    stream
}
