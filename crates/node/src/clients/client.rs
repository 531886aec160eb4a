//! The client that asks, from its certificate on.

use std::time::SystemTime;

use parking_lot::Mutex;
use polyclave_config::Asker;
use polyclave_transport::CertificateDer;

/// The client that asks.
pub(crate) struct Client {
    /// The name of a listed client in the rules; or the identity that its authority vouches for, which has a
    /// colon and so is no listed client's name.
    pub(crate) name: String,
    pub(super) known: Known,
}

/// How a node knows a client.
pub(super) enum Known {
    /// The rules list its certificate.
    Listed(CertificateDer<'static>),
    /// An authority has signed its certificate.
    Signed {
        authority: String,
        /// The certificate that it has shown, and those that came with it.
        chain: Vec<CertificateDer<'static>>,
        /// What came of it when the chain was verified last.
        verified: Mutex<Verified>,
    },
}

/// What holds since a chain was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    /// The last moment at which all of the chain is valid.
    pub(super) until: SystemTime,
    /// The edition of what the node knew of authorities.
    pub(super) edition: u64,
}

impl Client {
    /// A client whose certificate the rules list.
    pub(crate) fn listed(name: &str, certificate: &CertificateDer<'_>) -> Client {
        Client { name: name.into(), known: Known::Listed(certificate.clone().into_owned()) }
    }

    /// Who it is to the rules.
    pub(crate) fn asker(&self) -> Asker<'_> {
        match &self.known {
            Known::Listed(certificate) => Asker::Listed(certificate),
            Known::Signed { authority, .. } => Asker::Signed { authority, identity: &self.name },
        }
    }

    /// What stands for the client where nodes compare who asks, and where they remember it: the certificate
    /// of a listed client, or the identity of one that an authority vouches for, which outlasts its
    /// certificates. The two differ: a certificate begins with 0x30, and an identity with a letter.
    pub(crate) fn bound(&self) -> &[u8] {
        match &self.known {
            Known::Listed(certificate) => certificate,
            Known::Signed { .. } => self.name.as_bytes(),
        }
    }
}
