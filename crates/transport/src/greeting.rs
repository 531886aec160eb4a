//! The first bytes on a connection after its TLS handshake: what both sides must agree on, and which stream
//! it is.
//!
//! The dialling side sends its greeting. The accepting side answers with its own, which names the same
//! stream. Both sides compare. So both report a difference, and the dialling side knows that it was accepted.

use polyclave_protocol::{Error, Party};
use rustls::pki_types::CertificateDer;

use crate::limits::Limits;
use crate::stream::StreamId;

/// Bytes of a greeting.
pub(crate) const GREETING: usize = 10 + 4 + 32 + 32;
/// Names the protocol, in case another TLS program connects.
const MAGIC: [u8; 8] = *b"polyclav";
/// The version of everything that follows the TLS handshake. It grows with every change.
const VERSION: u16 = 4;

/// What both sides of a connection must agree on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// [`VERSION`], except in tests.
    pub(crate) version: u16,
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
        Self::new(limits, hasher.finalize().into(), "list of certificates")
    }

    /// The terms between the nodes of a cluster: its name. Certificates are not part of it, because they
    /// change; TLS has checked them.
    pub(crate) fn nodes(limits: &Limits, cluster: &[u8; 16]) -> Self {
        Self::new(
            limits,
            blake3::derive_key("polyclave transport 2026 nodes of a cluster", cluster),
            "cluster",
        )
    }

    /// The terms between a client and a node of a cluster.
    pub(crate) fn clients(limits: &Limits, cluster: &[u8; 16]) -> Self {
        Self::new(
            limits,
            blake3::derive_key("polyclave transport 2026 clients of a cluster", cluster),
            "cluster",
        )
    }

    fn new(limits: &Limits, digest: [u8; 32], of: &'static str) -> Self {
        // `Limits::check` has made sure that it fits.
        Terms { version: VERSION, max_frame: limits.max_frame as u32, digest, of }
    }

    /// The greeting on the connection of `stream`.
    pub(crate) fn greeting(&self, stream: StreamId) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.max_frame.to_be_bytes());
        bytes[14..46].copy_from_slice(&self.digest);
        bytes[46..].copy_from_slice(&stream.0);
        bytes
    }

    /// Compares the terms in the greeting of `peer` with these.
    pub(crate) fn check(&self, peer: Party, greeting: &[u8; GREETING]) -> Result<(), Error> {
        let ours = self.greeting(stream_of(greeting));
        let version = u16::from_be_bytes([greeting[8], greeting[9]]);
        if greeting[..8] != ours[..8] {
            return Err(Error::Peer { peer, detail: "its greeting is not that of polyclave".into() });
        }
        if version != self.version {
            let older = if version < self.version { "that one" } else { "this party" };
            let detail = format!(
                "it speaks version {version} of the transport, this party version {}: upgrade {older}",
                self.version
            );
            return Err(Error::Peer { peer, detail });
        }
        if greeting[10..14] != ours[10..14] {
            return Err(Error::Disagreement { peer, field: "frame limit" });
        }
        if greeting[14..46] != ours[14..46] {
            return Err(Error::Disagreement { peer, field: self.of });
        }
        Ok(())
    }
}

/// The stream that a greeting names.
pub(crate) fn stream_of(greeting: &[u8; GREETING]) -> StreamId {
    let mut stream = StreamId([0; 32]);
    stream.0.copy_from_slice(&greeting[46..]);
    stream
}
