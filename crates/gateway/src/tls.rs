//! TLS of a listener: a certificate and a key in PEM, and the authorities of its callers.

mod callers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyclave_config::{GatewayKmip, GatewayListener, private};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage};
use tokio_rustls::TlsAcceptor;

use crate::{Error, Result};
pub(crate) use callers::has_name;

/// TLS 1.3 with the files of a listener for HTTP, if it has some. The key must be readable by its owner only.
pub(crate) fn acceptor(listener: &GatewayListener) -> Result<Option<TlsAcceptor>> {
    let Some(files) = listener.tls() else { return Ok(None) };
    let mut config = config(files, listener.client_authorities.as_ref(), &listener.client_names)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

/// The same for KMIP, which has no name that TLS agrees on.
pub(crate) fn kmip_acceptor(kmip: &GatewayKmip) -> Result<TlsAcceptor> {
    let (files, authorities) = ((&kmip.certificate, &kmip.key), Some(&kmip.client_authorities));
    Ok(TlsAcceptor::from(Arc::new(config(files, authorities, &[])?)))
}

/// With a certificate and its key. Certificates of callers are signed by the authorities, if there are some,
/// and have one of the names, if there are some.
fn config(
    (certificate, key): (&PathBuf, &PathBuf),
    authorities: Option<&PathBuf>,
    names: &[String],
) -> Result<ServerConfig> {
    let chain = certificates(certificate)?;
    let private_key = PrivateKeyDer::from_pem_slice(&private::read(key)?)
        .map_err(|e| wrong(key, format!("is no private key in PEM: {e}")))?;
    let verifier: Arc<dyn ClientCertVerifier> = match authorities {
        None => Arc::new(NoClientAuth),
        Some(authorities) => callers::verifier(authorities, names)?,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_client_cert_verifier(verifier).with_single_cert(chain, private_key))
        .map_err(|e| wrong(certificate, format!("does not fit the key {}: {e}", key.display())))?;
    if authorities.is_some() {
        // A session that is resumed is not asked for its certificate again, which may have ended.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok(config)
}

/// The certificates of a file in PEM, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = std::fs::read(path).map_err(|e| wrong(path, format!("cannot be read: {e}")))?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<std::result::Result<Vec<_>, _>>();
    let all = all.map_err(|e| wrong(path, format!("is no certificate in PEM: {e}")))?;
    match all.is_empty() {
        true => Err(wrong(
            path,
            "has no certificate in PEM; give the file that begins with BEGIN CERTIFICATE".into(),
        )),
        false => Ok(all),
    }
}

fn wrong(path: &Path, detail: String) -> Error {
    Error::Tls { path: path.into(), detail }
}
