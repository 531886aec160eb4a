//! One request to another server, by HTTP/1.1, within a limit of size. The caller has one of time. A redirect
//! is not followed.

use std::sync::Arc;

use axum::http::Uri;
use axum::http::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// The most bytes of an answer's headers.
const HEADERS: usize = 64 << 10;

/// TLS 1.3 with servers that one of the authorities in a document (PEM) knows. An error says what is wrong
/// with it.
pub(crate) fn tls(authorities: &[u8]) -> Result<TlsConnector, String> {
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

/// The name of the host of an address, without brackets.
pub(crate) fn host_of(url: &Uri) -> Option<&str> {
    Some(url.host()?.trim_start_matches('[').trim_end_matches(']'))
}

/// Sends a request to an address, with TLS or without, and returns the answer with a document of at most so
/// many bytes. An answer of another status than `wanted`, if that is given, is not read.
pub(crate) async fn send(
    url: &Uri,
    tls: Option<&TlsConnector>,
    request: Request<Full<Bytes>>,
    (wanted, most): (Option<StatusCode>, usize),
) -> Result<(StatusCode, Vec<u8>), String> {
    let host = host_of(url).ok_or("this is no address")?;
    let port = url.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let connect = async || TcpStream::connect((host, port)).await.map_err(|e| format!("cannot connect: {e}"));
    match tls {
        Some(tls) => {
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|_| "this is no name of a host".to_owned())?;
            let stream = connect().await?;
            let stream = tls.connect(name, stream).await.map_err(|e| format!("no TLS 1.3 with it: {e}"))?;
            exchange(url, stream, request, (wanted, most)).await
        }
        None => exchange(url, connect().await?, request, (wanted, most)).await,
    }
}

async fn exchange(
    url: &Uri,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Full<Bytes>>,
    (wanted, most): (Option<StatusCode>, usize),
) -> Result<(StatusCode, Vec<u8>), String> {
    let authority = url.authority().ok_or("this is no address")?;
    let host = HeaderValue::from_str(authority.as_str()).map_err(|e| e.to_string())?;
    *request.uri_mut() =
        url.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(|_| "no path")?;
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("polyclave-gateway"));
    let handshake = http1::Builder::new().max_buf_size(HEADERS).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(broken)?;
    // It ends when this is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let response = sender.send_request(request).await.map_err(broken)?;
    match response.status() {
        status if status.is_redirection() => {
            Err(format!("it answered {}, and redirects are not followed", status.as_u16()))
        }
        status if wanted.is_some_and(|wanted| wanted != status) => {
            Err(format!("it answered {}", status.as_u16()))
        }
        status => Ok((status, document(response, most).await?)),
    }
}

async fn document(response: Response<Incoming>, most: usize) -> Result<Vec<u8>, String> {
    let (mut body, mut document) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if document.len() + data.len() > most {
            return Err(format!("its answer is longer than {} KiB", most >> 10));
        }
        document.extend_from_slice(&data);
    }
    Ok(document)
}

fn broken(error: hyper::Error) -> String {
    format!("it broke off: {error}")
}
