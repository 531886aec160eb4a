//! Who is who: mutual TLS 1.3 in which a party *is* its certificate.
//!
//! Every party makes a key pair and a self-signed certificate; all parties are given the exact certificates of all
//! (a session's list). There is no authority, no name and no expiry: a certificate is accepted if it is, byte for byte,
//! one of the list, and the handshake proves possession of its key. So a peer is known by what it can sign, never by
//! what it claims. One suite only (TLS_AES_128_GCM_SHA256, X25519), no resumption, no early data.

use std::sync::Arc;

use polyclave_protocol::Error;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, PeerIncompatible, ServerConfig,
    SignatureScheme, SupportedCipherSuite,
};

/// A party's certificate and its private key. The key is born here and never leaves the process.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// A fresh key pair with its self-signed certificate.
    pub fn generate() -> Result<Identity, Error> {
        let broken = |e: rcgen::Error| Error::System(format!("cannot make a TLS certificate: {e}"));
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(broken)?;
        let parameters = rcgen::CertificateParams::new(["polyclave.invalid".to_owned()]).map_err(broken)?;
        let certificate = parameters.self_signed(&key).map_err(broken)?;
        let (certificate, key) = (certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Identity { certificate, key, provider: provider(ring::cipher_suite::TLS13_AES_128_GCM_SHA256) })
    }

    /// The public half, to be given to every other party over a channel that cannot be forged.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// The same with another cipher suite.
    #[cfg(test)]
    pub(crate) fn with_suite(self, suite: SupportedCipherSuite) -> Self {
        Identity { provider: provider(suite), ..self }
    }

    /// For the side that dials: it insists on one peer.
    pub(crate) fn client_config(&self, peer: CertificateDer<'static>) -> Result<Arc<ClientConfig>, Error> {
        let pinned = Pinned::new(vec![peer], &self.provider);
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_auth_cert(vec![self.certificate()], self.key.clone_key().into())
            .map_err(unusable)?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// For the side that accepts: any peer of the session may call.
    pub(crate) fn server_config(
        &self,
        peers: Vec<CertificateDer<'static>>,
    ) -> Result<Arc<ServerConfig>, Error> {
        let pinned = Pinned::new(peers, &self.provider);
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(pinned)
            .with_single_cert(vec![self.certificate()], self.key.clone_key().into())
            .map_err(unusable)?;
        // Tickets would never be used, and one unread at the end of a session turns its close into a reset.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// rustls asks the dialling side for the name of whom it calls. No one sees or checks this one.
pub(crate) fn no_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

fn unusable(e: rustls::Error) -> Error {
    Error::System(format!("cannot set up TLS: {e}"))
}

fn provider(suite: SupportedCipherSuite) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        kx_groups: vec![ring::kx_group::X25519],
        ..ring::default_provider()
    })
}

/// Accepts exactly the certificates it was given.
#[derive(Debug)]
struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(certificates: Vec<CertificateDer<'static>>, provider: &CryptoProvider) -> Arc<Self> {
        Arc::new(Pinned { certificates, algorithms: provider.signature_verification_algorithms })
    }

    fn check(&self, end_entity: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let known = self.certificates.iter().any(|pinned| pinned == end_entity);
        known.then_some(()).ok_or(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
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
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
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
