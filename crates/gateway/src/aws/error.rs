//! The exceptions of the API, as its clients know them: the type is in a header, and a message in the body.
//! Nothing of a PIN, a code or a key is in a message.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, Response, StatusCode};
use polyclave_api::Reason;
use polyclave_client::Error;
use polyclave_protocol::session::random_bytes;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::signed::Refused;
use crate::signed::sigv4::Unsigned;

/// The result of a request.
pub(super) type Result<T> = std::result::Result<T, Exception>;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exception {
    /// The signature.
    Unsigned(Unsigned),
    /// A member of the request, by its name, and what is wrong with it.
    Invalid(&'static str, String),
    /// The request as a whole.
    Malformed(String),
    /// The verification that was asked for was not successful.
    NotVerified(NotVerified),
    /// The caller, or the gateway at the nodes, may not.
    Denied(String),
    /// There is no such key.
    NoKey(String),
    /// There is no such operation.
    NoOperation,
    /// It can succeed later.
    Throttled(String),
    /// Anything else.
    Failure(Failure),
}

/// What was not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotVerified {
    Pin,
    Mac,
    CardValue,
    Cryptogram,
}

impl NotVerified {
    fn reason(self) -> &'static str {
        match self {
            NotVerified::Pin => "INVALID_PIN",
            NotVerified::Mac => "INVALID_MAC",
            NotVerified::CardValue => "INVALID_VALIDATION_DATA",
            NotVerified::Cryptogram => "INVALID_AUTH_REQUEST_CRYPTOGRAM",
        }
    }
}

impl From<Failure> for Exception {
    fn from(failure: Failure) -> Exception {
        match failure {
            Failure::Bad(message) => Exception::Malformed(message),
            Failure::Denied(message) => Exception::Denied(message),
            Failure::NotAllowed => denied(),
            Failure::Full | Failure::Crowded | Failure::Hasty(_) => Exception::Throttled(failure.to_string()),
            Failure::NoKey => Exception::NoKey("key".into()),
            other => Exception::Failure(other),
        }
    }
}

impl From<Refused> for Exception {
    fn from(refused: Refused) -> Exception {
        match refused {
            Refused::Unsigned(unsigned) => Exception::Unsigned(unsigned),
            Refused::Failure(failure) => failure.into(),
        }
    }
}

impl From<Error> for Exception {
    fn from(error: Error) -> Exception {
        match &error {
            // The key's failures of this hour, or its budget.
            Error::Refused { refusal, .. } if refusal.reason == Reason::Spent => {
                Exception::Throttled(error.to_string())
            }
            _ => Failure::from(error).into(),
        }
    }
}

/// The caller's entry does not have the right. Whether there is such a key is not told.
pub(super) fn denied() -> Exception {
    Exception::Denied("the access key has no right to this operation with this key".into())
}

/// What AWS has and this gateway does not.
pub(super) fn not_served(member: &'static str, what: &str) -> Exception {
    Exception::Invalid(member, format!("{what} is not served here"))
}

/// How an exception is told: status, type, message.
struct Told {
    status: StatusCode,
    kind: &'static str,
    message: String,
}

impl Exception {
    fn told(&self) -> Told {
        let told = |status, kind, message: &str| Told { status, kind, message: message.into() };
        let bad = StatusCode::BAD_REQUEST;
        match self {
            Exception::Unsigned(unsigned) => {
                let (kind, message) = of_signature(unsigned);
                told(StatusCode::FORBIDDEN, kind, &message)
            }
            Exception::Invalid(member, message) => {
                told(bad, "ValidationException", &format!("{member}: {message}"))
            }
            Exception::Malformed(message) => told(bad, "ValidationException", message),
            Exception::NotVerified(what) => {
                told(bad, "VerificationFailedException", &format!("verification failed: {}", what.reason()))
            }
            Exception::Denied(message) => told(StatusCode::FORBIDDEN, "AccessDeniedException", message),
            Exception::NoKey(key) => {
                told(StatusCode::NOT_FOUND, "ResourceNotFoundException", &format!("there is no key {key}"))
            }
            Exception::NoOperation => {
                told(StatusCode::NOT_FOUND, "UnknownOperationException", "there is no such operation")
            }
            Exception::Throttled(message) => {
                told(StatusCode::TOO_MANY_REQUESTS, "ThrottlingException", message)
            }
            Exception::Failure(failure) => match failure {
                Failure::TooLong(_) => {
                    told(StatusCode::PAYLOAD_TOO_LARGE, "ValidationException", &failure.to_string())
                }
                Failure::Late | Failure::Unavailable(_) => {
                    told(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", &failure.to_string())
                }
                other => {
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    told(status, "InternalServerException", &other.to_string())
                }
            },
        }
    }

    /// The body. Clients take the message from either spelling.
    fn body(&self, message: &str) -> Value {
        match self {
            Exception::Invalid(member, wrong) => json!({
                "message": message,
                "fieldList": [{ "path": member, "message": wrong }],
            }),
            Exception::NotVerified(what) => json!({ "Reason": what.reason(), "Message": message }),
            Exception::NoKey(key) => json!({ "ResourceId": key, "message": message }),
            Exception::Malformed(_) | Exception::Unsigned(_) | Exception::NoOperation => {
                json!({ "message": message })
            }
            _ => json!({ "Message": message }),
        }
    }

    /// The response.
    pub(super) fn response(&self) -> Response<Body> {
        let Told { status, kind, message } = self.told();
        let mut response = json_response(status, &self.body(&message));
        response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(kind));
        // A caller that nobody knows, or with too many connections, does not keep this one.
        if matches!(self, Exception::Unsigned(_)) || status == StatusCode::PAYLOAD_TOO_LARGE {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Told { kind, message, .. } = self.told();
        write!(f, "{kind}: {message}")
    }
}

fn of_signature(unsigned: &Unsigned) -> (&'static str, String) {
    match unsigned {
        Unsigned::Missing => ("MissingAuthenticationToken", "the request has no signature".into()),
        Unsigned::Incomplete(what) => ("IncompleteSignature", (*what).into()),
        Unsigned::Unknown => {
            ("UnrecognizedClientException", "the security token included in the request is invalid".into())
        }
        Unsigned::Expired => (
            "SignatureDoesNotMatch",
            "the signature is of another time: it is good for 15 minutes; look at the clock".into(),
        ),
        Unsigned::Wrong => (
            "SignatureDoesNotMatch",
            "the signature is not that of this request under the secret access key, for the service \
             payment-cryptography"
                .into(),
        ),
    }
}

/// A document as response.
fn json_response(status: StatusCode, document: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    name(&mut response);
    response
}

/// Gives a response the id that clients show.
pub(super) fn name(response: &mut Response<Body>) {
    let mut id = [0; 16];
    // It is for logs. If the system has no random bytes, requests have failed before.
    let _ = random_bytes(&mut id);
    if let Ok(id) = HeaderValue::from_str(&hex::encode(id)) {
        response.headers_mut().insert("x-amzn-requestid", id);
    }
}
