//! A node, as others connect to it.

use rustls::pki_types::CertificateDer;

/// Where a node listens, and its certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `host:port`.
    pub address: String,
    /// Any of these certificates: several while one is being replaced.
    pub certificates: Vec<CertificateDer<'static>>,
}
