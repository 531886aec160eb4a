//! A document from an issuer's server: by HTTPS, once, within a limit of size. The caller has one of time.

use axum::http::Uri;
use http_body_util::Full;
use hyper::{Request, StatusCode};
use tokio_rustls::TlsConnector;

use super::public_keys::MAX_DOCUMENT;
use crate::outgoing;

/// The document at an address. An error says what is wrong, with the address.
pub(super) async fn get(url: &str, tls: &TlsConnector) -> Result<Vec<u8>, String> {
    exchange(url, tls).await.map_err(|why| format!("{url}: {why}"))
}

async fn exchange(url: &str, tls: &TlsConnector) -> Result<Vec<u8>, String> {
    let url: Uri = url.parse().map_err(|_| "this is no address".to_owned())?;
    if url.scheme_str() != Some("https") {
        return Err("only https is asked".into());
    }
    let limits = (Some(StatusCode::OK), MAX_DOCUMENT);
    Ok(outgoing::send(&url, Some(tls), Request::new(Full::default()), limits).await?.1)
}
