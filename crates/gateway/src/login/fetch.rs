//! A document from an issuer's server: by HTTPS, once, within a limit of size. The caller has one of time. A
//! redirect is not followed.

use std::sync::Arc;

use axum::http::Uri;
use axum::http::header::{ACCEPT, HOST, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::public_keys::MAX_DOCUMENT;

/// The most bytes of an answer's headers.
const HEADERS: usize = 64 << 10;

/// TLS 1.3 with servers that one of the authorities in a document (PEM) knows. An error says what is wrong
/// with it.
pub(super) fn tls(authorities: &[u8]) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|e| format!("is no certificate in PEM: {e}"))?;
        roots.add(certificate).map_err(|e| format!("has a certificate of no authority: {e}"))?;
    }
    if roots.is_empty() {
        return Err(
            "has no certificate in PEM; give the file of an authority that begins with BEGIN CERTIFICATE"
                .into(),
        );
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The document at an address. An error says what is wrong, with the address.
pub(super) async fn get(url: &str, tls: &TlsConnector) -> Result<Vec<u8>, String> {
    exchange(url, tls).await.map_err(|why| format!("{url}: {why}"))
}

async fn exchange(url: &str, tls: &TlsConnector) -> Result<Vec<u8>, String> {
    let url: Uri = url.parse().map_err(|_| "this is no address".to_owned())?;
    let (Some("https"), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err("only https is asked".into());
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| "this is no name of a host".to_owned())?;
    let port = authority.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host, port)).await.map_err(|e| format!("cannot connect: {e}"))?;
    let stream = tls.connect(name, stream).await.map_err(|e| format!("no TLS 1.3 with it: {e}"))?;
    let broken = |e: hyper::Error| format!("it broke off: {e}");
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEADERS).handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends when this is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, authority.as_str())
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, "polyclave-gateway")
        .body(Empty::<Bytes>::new())
        .map_err(|e| e.to_string())?;
    let response = sender.send_request(request).await.map_err(broken)?;
    match response.status() {
        StatusCode::OK => {}
        status if status.is_redirection() => {
            return Err(format!("it answered {}, and redirects are not followed", status.as_u16()));
        }
        status => return Err(format!("it answered {}", status.as_u16())),
    }
    let (mut body, mut document) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if document.len() + data.len() > MAX_DOCUMENT {
            return Err(format!("its answer is longer than {} KiB", MAX_DOCUMENT >> 10));
        }
        document.extend_from_slice(&data);
    }
    Ok(document)
}
