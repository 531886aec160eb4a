//! Ciphertexts of Vault's API that a gateway is asked to rewrap, a batch at a time: a client of the gateway,
//! for `polyclave gateway rewrap`.

#[cfg(test)]
mod fuzz;

use std::net::IpAddr;
use std::time::Duration;

use axum::http::Uri;
use axum::http::header::HeaderValue;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use polyclave_config::check_name;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::outgoing;

/// How long one batch may take: a gateway answers within 90 s, unless its file says otherwise.
const WITHIN: Duration = Duration::from_secs(300);
/// The most bytes of an answer. Requests have at most 32 MiB, and new ciphertexts are no longer than old
/// ones.
const MAX_ANSWER: usize = 64 << 20;

/// Why a batch was not rewrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRewrapped {
    /// The same request may succeed later.
    Later(String),
    /// It will not.
    Never(String),
}

impl std::fmt::Display for NotRewrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (NotRewrapped::Later(why) | NotRewrapped::Never(why)) = self;
        f.write_str(why)
    }
}

/// A new ciphertext, or why there is none.
pub type Rewrapped = Result<String, String>;

/// A gateway, and a key whose ciphertexts it rewraps.
pub struct RewrapBatch {
    url: Uri,
    tls: Option<TlsConnector>,
    token: HeaderValue,
    runtime: Runtime,
    context: Option<String>,
    associated_data: Option<String>,
}

impl RewrapBatch {
    /// A gateway by its address, such as `https://gateway.example:8200`, with the authorities (PEM) that know
    /// it; and the name of the key. Without TLS the gateway has to be on this machine. An error says what is
    /// wrong.
    pub fn new(
        address: &str,
        authorities: Option<&[u8]>,
        (token, key): (&str, &str),
    ) -> Result<RewrapBatch, String> {
        let wrong = |why: &str| format!("{address}: {why}");
        check_name("key", key).map_err(|e| e.to_string())?;
        let url: Uri = format!("{}/v1/transit/rewrap/{key}", address.trim_end_matches('/'))
            .parse()
            .map_err(|_| wrong("this is no address, such as https://gateway.example:8200"))?;
        let tls = match (url.scheme_str(), authorities) {
            (Some("https"), Some(pem)) => Some(outgoing::tls(pem).map_err(|why| format!("the file {why}"))?),
            (Some("https"), None) => {
                return Err(wrong("give the file of the authority that knows its certificate"));
            }
            (Some("http"), _) if outgoing::host_of(&url).is_some_and(is_here) => None,
            (Some("http"), _) => {
                return Err(wrong("without TLS others could read the token on its way; take https"));
            }
            _ => return Err(wrong("this is no address with https or http")),
        };
        let mut token = HeaderValue::from_str(token).map_err(|_| "this cannot be a token".to_owned())?;
        token.set_sensitive(true);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        Ok(RewrapBatch { url, tls, token, runtime, context: None, associated_data: None })
    }

    /// The same for ciphertexts with a context, or with associated data, both in base64.
    pub fn bound_to(self, context: Option<String>, associated_data: Option<String>) -> RewrapBatch {
        RewrapBatch { context, associated_data, ..self }
    }

    /// Has ciphertexts encrypted anew, under the newest version of the key. There is one result for each.
    pub fn rewrap(&self, ciphertexts: &[&str]) -> Result<Vec<Rewrapped>, NotRewrapped> {
        let asked = Asked {
            batch_input: ciphertexts
                .iter()
                .map(|ciphertext| Item {
                    ciphertext,
                    context: self.context.as_deref(),
                    associated_data: self.associated_data.as_deref(),
                })
                .collect(),
        };
        let never = |why: String| NotRewrapped::Never(why);
        let body = serde_json::to_vec(&asked).map_err(|e| never(e.to_string()))?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        request.headers_mut().insert("x-vault-token", self.token.clone());
        let sent = outgoing::send(&self.url, self.tls.as_ref(), request, (None, MAX_ANSWER));
        // The timer belongs to the runtime.
        let answered = self.runtime.block_on(async { timeout(WITHIN, sent).await });
        let later = |why: String| NotRewrapped::Later(format!("{}: {why}", self.url));
        let (status, answer) = answered
            .map_err(|_| later(format!("it did not answer within {} s", WITHIN.as_secs())))?
            .map_err(later)?;
        read(status, &Zeroizing::new(answer), ciphertexts.len())
    }
}

/// Whether it is this machine.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[derive(Serialize)]
struct Asked<'a> {
    batch_input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    ciphertext: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associated_data: Option<&'a str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    data: Option<Results>,
    errors: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Results {
    batch_results: Vec<One>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct One {
    ciphertext: Option<String>,
    error: Option<String>,
}

/// Reads an answer about so many ciphertexts. Items that failed because nodes were not there are tried again
/// with all others: the status is that of the worst of them.
fn read(status: StatusCode, answer: &[u8], ciphertexts: usize) -> Result<Vec<Rewrapped>, NotRewrapped> {
    let Answer { data, errors } = serde_json::from_slice(answer).unwrap_or_default();
    let said: Vec<String> = errors.into_iter().flatten().map(|error| one_line(&error)).collect();
    let why = format!("the gateway answered {}: {}", status.as_u16(), said.join(", "));
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(NotRewrapped::Later(why));
    }
    let Some(Results { batch_results }) = data else { return Err(NotRewrapped::Never(why)) };
    if batch_results.len() != ciphertexts {
        let given = batch_results.len();
        return Err(NotRewrapped::Never(format!(
            "the gateway answered with {given} results for {ciphertexts} ciphertexts"
        )));
    }
    let one = |one: One| match (one.ciphertext, one.error) {
        (Some(text), None) if text.starts_with("vault:v") && text.bytes().all(|b| b.is_ascii_graphic()) => {
            Ok(text)
        }
        (_, Some(error)) => Err(one_line(&error)),
        _ => Err("the gateway gave no ciphertext".into()),
    };
    Ok(batch_results.into_iter().map(one).collect())
}

/// A text of the other side, as one line of limited length.
fn one_line(text: &str) -> String {
    let shown: Vec<&str> = text.split_whitespace().collect();
    shown.join(" ").chars().filter(|c| !c.is_control()).take(400).collect()
}
