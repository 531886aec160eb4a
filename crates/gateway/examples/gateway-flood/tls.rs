//! Connections with TLS to the gateway, whose certificate is not looked at: a flood does not care, and the
//! one who is measured has made it a moment ago.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};

use crate::Outcome;

#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("the gateway has TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A new connection, after its handshake.
pub(crate) fn connect(address: SocketAddr) -> Outcome<StreamOwned<ClientConnection, TcpStream>> {
    over(TcpStream::connect(address)?)
}

/// A connection, after its handshake.
pub(crate) fn over(mut stream: TcpStream) -> Outcome<StreamOwned<ClientConnection, TcpStream>> {
    static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("it has TLS 1.3");
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth();
        // Each handshake is a whole one.
        config.resumption = rustls::client::Resumption::disabled();
        Arc::new(config)
    });
    let mut session = ClientConnection::new(CONFIG.clone(), ServerName::try_from("localhost")?)?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(session, stream))
}
