//! TLS of a listener: a certificate and a key in PEM.

use std::path::Path;
use std::sync::Arc;

use polyclave_config::private;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::{Error, Result};

/// TLS 1.3 with the certificate and the key of two files. The key must be readable by its owner only.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let wrong = |path: &Path, detail: String| Error::Tls { path: path.into(), detail };
    let pem = std::fs::read(certificate).map_err(|e| wrong(certificate, format!("cannot be read: {e}")))?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<std::result::Result<Vec<_>, _>>();
    let chain = chain.map_err(|e| wrong(certificate, format!("is no certificate in PEM: {e}")))?;
    if chain.is_empty() {
        return Err(wrong(
            certificate,
            "has no certificate in PEM; give the file that begins with BEGIN CERTIFICATE".into(),
        ));
    }
    let private_key = PrivateKeyDer::from_pem_slice(&private::read(key)?)
        .map_err(|e| wrong(key, format!("is no private key in PEM: {e}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private_key))
        .map_err(|e| wrong(certificate, format!("does not fit the key {}: {e}", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
