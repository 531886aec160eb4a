//! Which certificates are accepted. Both sides of the TLS handshake ask this module.
//!
//! A certificate is accepted if the list or policy that was set up for the connection admits it and it is
//! within its dates. A list admits its certificates byte for byte. The policy of a node can also admit
//! certificates of clients that an authority has signed ([`crate::Anchors`]). The handshake then proves
//! possession of the key.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, PeerIncompatible, SignatureScheme};

use crate::validity;

/// Decides on a certificate, which is the first one, with those that came with it.
pub type Admits = Arc<dyn Fn(&[CertificateDer<'_>]) -> bool + Send + Sync>;

/// Exactly the certificates of a list.
pub(crate) fn listed(certificates: Vec<CertificateDer<'static>>) -> Admits {
    Arc::new(move |shown| {
        shown.first().is_some_and(|shown| certificates.iter().any(|listed| listed == shown))
    })
}

/// Accepts the certificates that its owner admits, within their dates.
pub(crate) struct Pinned {
    admits: Admits,
    algorithms: WebPkiSupportedAlgorithms,
    refused: Arc<AtomicU64>,
}

impl Pinned {
    /// `refused` counts the certificates that were not accepted.
    pub(crate) fn new(admits: Admits, provider: &CryptoProvider, refused: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Pinned { admits, algorithms: provider.signature_verification_algorithms, refused })
    }

    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let shown: Vec<CertificateDer<'_>> = [end_entity].into_iter().chain(intermediates).cloned().collect();
        let known = (self.admits)(&shown);
        let known = known.then_some(()).ok_or(CertificateError::ApplicationVerificationFailure);
        known.and_then(|()| validity::check(end_entity, now)).map_err(|e| {
            self.refused.fetch_add(1, Relaxed);
            e.into()
        })
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity, intermediates, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
