//! What is answered, in the form that Vault has.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, Response, StatusCode};
use polyclave_protocol::session::random_bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use zeroize::Zeroizing;

use super::data::Data;
use crate::failure::Failure;
use crate::memory::Held;

/// An answer that is longer is a long one.
const LONG: usize = 64 << 10;

/// An answer.
pub(crate) enum Answer {
    /// Data, with what a person should read.
    Data(Data, Vec<String>),
    /// The results of a batch that failed in part.
    Partly(StatusCode, Data, Vec<String>),
    /// Data that stands beside the envelope, too, as in Vault for some paths of `sys`.
    Beside(Map<String, Value>),
    /// What a token is.
    Auth(Map<String, Value>),
    /// Done.
    Nothing,
    /// There is no such thing: Vault gives no reason.
    NotFound,
    /// No answer.
    Failed(Failure),
}

/// What is around data, as Vault has it.
#[derive(Serialize)]
struct Envelope<'d> {
    request_id: String,
    lease_id: &'static str,
    renewable: bool,
    lease_duration: u8,
    data: Option<&'d Data>,
    wrap_info: Option<()>,
    warnings: Option<&'d [String]>,
    auth: Option<&'d Data>,
    #[serde(flatten)]
    beside: Option<&'d Map<String, Value>>,
}

impl Answer {
    pub(super) fn data(data: impl Into<Data>) -> Answer {
        Answer::Data(data.into(), Vec::new())
    }

    /// The same, with more warnings, if it is data.
    pub(super) fn with_warnings(mut self, more: impl IntoIterator<Item = String>) -> Answer {
        if let Answer::Data(_, warnings) | Answer::Partly(_, _, warnings) = &mut self {
            warnings.extend(more);
        }
        self
    }

    /// The same, with a warning of fields that were ignored.
    pub(super) fn with_unknown(self, unknown: &[String]) -> Answer {
        let message = || format!("Endpoint ignored these unrecognized parameters: [{}]", unknown.join(" "));
        self.with_warnings((!unknown.is_empty()).then(message))
    }

    /// The response. The memory that its request held is given back when it has been sent.
    pub(super) fn into_response(self, held: Option<Arc<Held>>) -> Response<Body> {
        match self {
            Answer::Data(data, warnings) => {
                envelope(StatusCode::OK, (Some(&data), None), &warnings, None, held)
            }
            Answer::Partly(status, data, warnings) => {
                envelope(status, (Some(&data), None), &warnings, None, held)
            }
            Answer::Beside(fields) => {
                let data = Data::from(fields.clone());
                envelope(StatusCode::OK, (Some(&data), None), &[], Some(&fields), held)
            }
            Answer::Auth(auth) => envelope(StatusCode::OK, (None, Some(&auth.into())), &[], None, held),
            Answer::Nothing => response(StatusCode::NO_CONTENT, Body::empty()),
            Answer::NotFound => json_response(StatusCode::NOT_FOUND, &json!({ "errors": [] }), 32, held),
            Answer::Failed(failure) => {
                let (status, errors) = message_of(&failure);
                let mut response = json_response(status, &json!({ "errors": errors }), 256, held);
                // A caller without a token, or with too many connections, does not keep this one.
                if matches!(failure, Failure::Stranger | Failure::Crowded | Failure::Hasty(_)) {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            }
        }
    }
}

/// A failure as Vault tells it. What its own handlers refuse is told in a list that begins with the number of
/// errors.
fn message_of(failure: &Failure) -> (StatusCode, Vec<String>) {
    let one = |message: &dyn std::fmt::Display| vec![format!("1 error occurred:\n\t* {message}\n\n")];
    match failure {
        Failure::Bad(message) => (StatusCode::BAD_REQUEST, vec![message.clone()]),
        Failure::Unauthentic | Failure::NoKey => (StatusCode::BAD_REQUEST, vec![failure.to_string()]),
        Failure::Stranger => (StatusCode::FORBIDDEN, vec![failure.to_string()]),
        Failure::NotAllowed => (StatusCode::FORBIDDEN, one(failure)),
        Failure::Denied(message) => {
            (StatusCode::FORBIDDEN, vec!["permission denied".into(), message.clone()])
        }
        Failure::NoPath => (StatusCode::NOT_FOUND, one(failure)),
        Failure::NoMethod => (StatusCode::METHOD_NOT_ALLOWED, one(failure)),
        Failure::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, vec![failure.to_string()]),
        Failure::Full | Failure::Crowded | Failure::Hasty(_) => {
            (StatusCode::TOO_MANY_REQUESTS, vec![failure.to_string()])
        }
        Failure::Late | Failure::Unavailable(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, vec![failure.to_string()])
        }
        Failure::Internal(message) => (StatusCode::INTERNAL_SERVER_ERROR, vec![message.clone()]),
    }
}

fn envelope(
    status: StatusCode,
    (data, auth): (Option<&Data>, Option<&Data>),
    warnings: &[String],
    beside: Option<&Map<String, Value>>,
    held: Option<Arc<Held>>,
) -> Response<Body> {
    let whole = Envelope {
        request_id: request_id(),
        lease_id: "",
        renewable: false,
        lease_duration: 0,
        data,
        wrap_info: None,
        warnings: (!warnings.is_empty()).then_some(warnings),
        auth,
        beside,
    };
    let room = [data, auth].into_iter().flatten().map(Data::room).sum::<usize>();
    let twice = if beside.is_some() { 2 } else { 1 };
    json_response(status, &whole, 512 + twice * room + warnings.iter().map(String::len).sum::<usize>(), held)
}

/// A document, and what is given back when it has been sent. What may be a plaintext in it is wiped then.
pub(crate) fn json_response(
    status: StatusCode,
    document: &impl Serialize,
    room: usize,
    held: Option<Arc<Held>>,
) -> Response<Body> {
    // Room for all, so that no copy stays behind when it grows.
    let mut text = Zeroizing::new(Vec::with_capacity(room));
    if serde_json::to_writer(&mut *text, document).is_err() {
        return response(StatusCode::INTERNAL_SERVER_ERROR, Body::empty());
    }
    text.push(b'\n');
    let sent = Sent { text, held, made_on: Handle::try_current().ok() };
    let mut response = response(status, Body::from(Bytes::from_owner(sent)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A text, with the memory that is given back when it has been sent.
struct Sent {
    text: Zeroizing<Vec<u8>>,
    held: Option<Arc<Held>>,
    /// The threads on which it was made.
    made_on: Option<Handle>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        let whole = (std::mem::take(&mut self.text), self.held.take());
        match &self.made_on {
            // Wiping it takes time, and this may be a thread that answers others.
            Some(threads) if whole.0.len() > LONG => drop(threads.spawn_blocking(|| drop(whole))),
            _ => drop(whole),
        }
    }
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

fn response(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A random id, as Vault has it (UUID, version 4).
fn request_id() -> String {
    let mut id = [0; 16];
    // It is for logs. If the system has no random bytes, requests have failed before.
    let _ = random_bytes(&mut id);
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let hex = hex::encode(id);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
