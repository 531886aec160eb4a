//! The errors of the API, as its specification names them ("Error codes"), and what leads to each.
//!
//! AWS keeps the message in the logs of the caller's account. So it has nothing of the nodes in it: what they
//! said is in the gateway's own log.

use axum::body::Body;
use axum::http::header::{ALLOW, CONNECTION};
use axum::http::{HeaderValue, Response, StatusCode};
use polyclave_api::Reason;
use polyclave_client::Error;
use serde::Serialize;

use crate::failure::Failure;
use crate::signed::Refused;
use crate::signed::sigv4::Unsigned;
use crate::vault::json_response;

/// The result of a request.
pub(super) type Result<T> = std::result::Result<T, Exception>;

/// The most characters of a message are fewer than 512.
const MOST_MESSAGE: usize = 511;

/// An error of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A member of the request is missing, or is not what it should be.
    Validation,
    /// The key, or all of them, cannot be used at the moment, or any more.
    InvalidState,
    /// Ciphertext, metadata, initialization vector, tag and additional data do not belong together.
    InvalidCiphertext,
    /// The key is not for this operation.
    InvalidKeyUsage,
    /// The signature.
    AuthenticationFailed,
    /// The caller may not.
    AccessDenied,
    /// There is no such key.
    KeyNotFound,
    /// There is nothing under this path.
    InvalidUriPath,
    /// Too much is asked.
    Throttling,
    /// It is longer than what is served.
    UnsupportedOperation,
    /// The nodes did not answer in time.
    DependencyTimeout,
    /// The nodes cannot serve, or this program failed.
    Internal,
    /// Not a `POST`. The specification has a status for it and no name.
    MethodNotAllowed,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) kind: Kind,
    message: String,
    /// What only the log says.
    of_nodes: Option<String>,
}

impl Kind {
    pub(super) fn exception(self, message: impl Into<String>) -> Exception {
        Exception { kind: self, message: message.into(), of_nodes: None }
    }

    /// The same, with what the nodes, or the program, said.
    pub(super) fn because(self, message: &str, of_nodes: String) -> Exception {
        Exception { of_nodes: Some(of_nodes), ..self.exception(message) }
    }

    pub(super) fn name(self) -> &'static str {
        self.told().1
    }

    fn told(self) -> (StatusCode, &'static str) {
        match self {
            Kind::Validation => (StatusCode::BAD_REQUEST, "ValidationException"),
            Kind::InvalidState => (StatusCode::BAD_REQUEST, "InvalidStateException"),
            Kind::InvalidCiphertext => (StatusCode::BAD_REQUEST, "InvalidCiphertextException"),
            Kind::InvalidKeyUsage => (StatusCode::BAD_REQUEST, "InvalidKeyUsageException"),
            Kind::AuthenticationFailed => (StatusCode::UNAUTHORIZED, "AuthenticationFailedException"),
            Kind::AccessDenied => (StatusCode::FORBIDDEN, "AccessDeniedException"),
            Kind::KeyNotFound => (StatusCode::NOT_FOUND, "KeyNotFoundException"),
            Kind::InvalidUriPath => (StatusCode::NOT_FOUND, "InvalidUriPathException"),
            Kind::Throttling => (StatusCode::TOO_MANY_REQUESTS, "ThrottlingException"),
            Kind::UnsupportedOperation => (StatusCode::NOT_IMPLEMENTED, "UnsupportedOperationException"),
            Kind::DependencyTimeout => (StatusCode::SERVICE_UNAVAILABLE, "DependencyTimeoutException"),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalException"),
            Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'m> {
    error_name: &'static str,
    error_message: &'m str,
}

impl Exception {
    /// There is one text for whatever is wrong with a ciphertext.
    pub(super) fn invalid_ciphertext() -> Exception {
        Kind::InvalidCiphertext.exception(
            "the ciphertext, its metadata, the initialization vector, the tag and the additional data do not \
             belong together",
        )
    }

    /// What the log says of it.
    pub(super) fn why(&self) -> String {
        let of_nodes = self.of_nodes.as_ref().map(|said| format!(": {said}"));
        format!("{}{}", self.message, of_nodes.unwrap_or_default())
    }

    /// The response.
    pub(super) fn response(&self) -> Response<Body> {
        let (status, error_name) = self.kind.told();
        let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
        let message: String = self.message.chars().take(MOST_MESSAGE).map(printable).collect();
        let document = Document { error_name, error_message: &message };
        let mut response = json_response(status, &document, 2 * MOST_MESSAGE, None);
        let headers = response.headers_mut();
        match self.kind {
            Kind::MethodNotAllowed => drop(headers.insert(ALLOW, HeaderValue::from_static("POST"))),
            // A caller that nobody knows, or whose body was not read, does not keep the connection.
            Kind::AuthenticationFailed | Kind::UnsupportedOperation => {
                drop(headers.insert(CONNECTION, HeaderValue::from_static("close")));
            }
            _ => {}
        }
        response
    }
}

impl From<Refused> for Exception {
    fn from(refused: Refused) -> Exception {
        match refused {
            Refused::Failure(failure) => failure.into(),
            Refused::Unsigned(unsigned) => Kind::AuthenticationFailed.exception(match unsigned {
                Unsigned::Missing => "the request has no signature",
                Unsigned::Incomplete(what) => what,
                Unsigned::Unknown => "no access key has this id",
                Unsigned::Expired => {
                    "the signature is of another time: it is good for 5 minutes; look at the clocks"
                }
                Unsigned::Wrong => {
                    "the signature is not that of this request under the secret access key, for the service \
                     kms-xks-proxy"
                }
            }),
        }
    }
}

impl From<Failure> for Exception {
    fn from(failure: Failure) -> Exception {
        let text = failure.to_string();
        match failure {
            Failure::Bad(message) => Kind::Validation.exception(message),
            Failure::Unauthentic => Exception::invalid_ciphertext(),
            Failure::NoKey => Kind::KeyNotFound.exception("the nodes have no such key"),
            Failure::Denied(_) | Failure::NotAllowed | Failure::Stranger => {
                Kind::AccessDenied.because("the nodes do not allow it to the gateway", text)
            }
            Failure::TooLong(_) => Kind::UnsupportedOperation.exception(text),
            Failure::Full | Failure::Crowded | Failure::Hasty(_) => Kind::Throttling
                .exception("too many requests or connections of this access key; ask again later"),
            Failure::Late => Kind::DependencyTimeout.exception(text),
            Failure::NoPath => Kind::InvalidUriPath.exception(text),
            Failure::NoMethod => Kind::MethodNotAllowed.exception(text),
            Failure::Unavailable(_) | Failure::Internal(_) => unable(text),
        }
    }
}

impl From<Error> for Exception {
    fn from(error: Error) -> Exception {
        let text = error.to_string();
        let Error::Refused { refusal, .. } = &error else { return Failure::from(error).into() };
        match refusal.reason {
            Reason::Busy | Reason::OutOfMaterial => {
                Kind::Throttling.because("the nodes have too much to do; ask again later", text)
            }
            Reason::Spent => {
                Kind::InvalidState.because("the budget of the key is spent; make a new version of it", text)
            }
            Reason::Quarantined => Kind::InvalidState.because("the nodes serve nothing at the moment", text),
            // Who asks says more of it, if more can be said: see keys.rs.
            Reason::NotForThis => {
                Kind::InvalidState.because("the key is not to be used for this any more", text)
            }
            Reason::Malformed | Reason::Key => unable(text),
            _ => Failure::from(error).into(),
        }
    }
}

fn unable(of_nodes: String) -> Exception {
    Kind::Internal.because("the nodes cannot serve at the moment; the log of the gateway says why", of_nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_printable_and_have_nothing_of_the_nodes() {
        let said = "node-1 is gone".to_owned();
        let exception = Exception::from(Failure::Unavailable(said.clone()));
        assert!(!exception.message.contains(&said) && exception.why().contains(&said));
        assert_eq!(exception.kind.told(), (StatusCode::INTERNAL_SERVER_ERROR, "InternalException"));
        let long = Kind::Validation.exception(format!("Ä\n{}", "x".repeat(600)));
        let response = long.response();
        assert_eq!(response.status(), 400);
        let body = axum::body::to_bytes(response.into_body(), 1 << 20);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let body = runtime.block_on(body).expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let message = body["errorMessage"].as_str().expect("text");
        assert!(message.starts_with("??x") && message.len() == MOST_MESSAGE, "{message}");
        assert_eq!(body["errorName"], "ValidationException");
    }
}
