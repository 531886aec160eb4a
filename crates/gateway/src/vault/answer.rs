//! What is answered, in the form that Vault has.

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response, StatusCode};
use polyclave_protocol::session::random_bytes;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::fields::wipe;
use crate::failure::Failure;

/// An answer.
pub(crate) enum Answer {
    /// Data, with what a person should read.
    Data(Map<String, Value>, Vec<String>),
    /// The results of a batch of which something failed.
    Partly(StatusCode, Map<String, Value>, Vec<String>),
    /// What a token is.
    Auth(Map<String, Value>),
    /// Done.
    Nothing,
    /// No answer.
    Failed(Failure),
}

impl Answer {
    pub(super) fn data(data: Map<String, Value>) -> Answer {
        Answer::Data(data, Vec::new())
    }

    /// The same, with a warning of fields that were ignored.
    pub(super) fn with_unknown(self, unknown: Vec<String>) -> Answer {
        let warn = |mut warnings: Vec<String>| {
            if !unknown.is_empty() {
                warnings
                    .push(format!("Endpoint ignored these unrecognized parameters: [{}]", unknown.join(" ")));
            }
            warnings
        };
        match self {
            Answer::Data(data, warnings) => Answer::Data(data, warn(warnings)),
            Answer::Partly(status, data, warnings) => Answer::Partly(status, data, warn(warnings)),
            other => other,
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        match self {
            Answer::Data(data, warnings) => envelope(StatusCode::OK, Some(data), &warnings, None),
            Answer::Partly(status, data, warnings) => envelope(status, Some(data), &warnings, None),
            Answer::Auth(auth) => envelope(StatusCode::OK, None, &[], Some(auth)),
            Answer::Nothing => response(StatusCode::NO_CONTENT, Body::empty()),
            Answer::Failed(failure) => {
                let (status, errors) = told(&failure);
                json_response(status, json!({ "errors": errors }))
            }
        }
    }
}

/// A failure as Vault tells it. What its own handlers refuse is told in a list that begins with the number of errors.
fn told(failure: &Failure) -> (StatusCode, Vec<String>) {
    let one = |told: &dyn std::fmt::Display| vec![format!("1 error occurred:\n\t* {told}\n\n")];
    match failure {
        Failure::Bad(told) => (StatusCode::BAD_REQUEST, vec![told.clone()]),
        Failure::Unauthentic | Failure::NoKey => (StatusCode::BAD_REQUEST, vec![failure.to_string()]),
        Failure::Stranger => (StatusCode::FORBIDDEN, vec![failure.to_string()]),
        Failure::NotAllowed => (StatusCode::FORBIDDEN, one(failure)),
        Failure::Denied(told) => (StatusCode::FORBIDDEN, vec!["permission denied".into(), told.clone()]),
        Failure::NoPath => (StatusCode::NOT_FOUND, one(failure)),
        Failure::NoMethod => (StatusCode::METHOD_NOT_ALLOWED, one(failure)),
        Failure::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, vec![failure.to_string()]),
        Failure::Full => (StatusCode::TOO_MANY_REQUESTS, vec![failure.to_string()]),
        Failure::Late | Failure::Unavailable(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, vec![failure.to_string()])
        }
        Failure::Internal(told) => (StatusCode::INTERNAL_SERVER_ERROR, vec![told.clone()]),
    }
}

/// An answer to a request for something that is not there: Vault gives no reason.
pub(super) fn not_found() -> Answer {
    Answer::Partly(StatusCode::NOT_FOUND, Map::new(), Vec::new())
}

fn envelope(
    status: StatusCode,
    data: Option<Map<String, Value>>,
    warnings: &[String],
    auth: Option<Map<String, Value>>,
) -> Response<Body> {
    if status == StatusCode::NOT_FOUND {
        return json_response(status, json!({ "errors": [] }));
    }
    let warnings = if warnings.is_empty() { Value::Null } else { json!(warnings) };
    let whole = [
        ("request_id", request_id().into()),
        ("lease_id", "".into()),
        ("renewable", false.into()),
        ("lease_duration", 0.into()),
        ("data", data.map_or(Value::Null, Value::Object)),
        ("wrap_info", Value::Null),
        ("warnings", warnings),
        ("auth", auth.map_or(Value::Null, Value::Object)),
    ];
    json_response(
        status,
        Value::Object(whole.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()),
    )
}

/// A document. What may be a plaintext in it is wiped once it is sent.
pub(super) fn json_response(status: StatusCode, mut document: Value) -> Response<Body> {
    // Room for all, so that no copy stays behind when it grows.
    let mut text = Zeroizing::new(Vec::with_capacity(room(&document)));
    let written = serde_json::to_writer(&mut *text, &document);
    wipe(&mut document);
    if written.is_err() {
        return response(StatusCode::INTERNAL_SERVER_ERROR, Body::empty());
    }
    text.push(b'\n');
    let mut response = response(status, Body::from(Bytes::from_owner(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn response(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// At least the bytes of a document, if few characters of its texts have to be escaped.
fn room(document: &Value) -> usize {
    match document {
        Value::String(text) => text.len() + 16,
        Value::Array(all) => 16 + all.iter().map(|one| room(one) + 1).sum::<usize>(),
        Value::Object(all) => 16 + all.iter().map(|(name, one)| name.len() + room(one) + 8).sum::<usize>(),
        _ => 32,
    }
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
