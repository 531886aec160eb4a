//! Return values of PKCS#11, and which one an error of the nodes becomes.

use cryptoki_sys::*;
use polyclave_client::Error;
use polyclave_config::PinError;
use polyclave_transport::wire::Reason;

use crate::log;

/// A return value that is not `CKR_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rv(pub(crate) CK_RV);

/// What a function of the module gives.
pub(crate) type Result<T> = std::result::Result<T, Rv>;

/// A return value, whose reason goes to the log.
pub(crate) fn because(rv: CK_RV, why: impl std::fmt::Display) -> Rv {
    log::line(&format!("{rv:#x}: {why}"));
    Rv(rv)
}

/// What was done with keys of the nodes, where that changes the return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A key was used, and the text may be wrong.
    Using,
    /// The same, for a message of 3.0.
    Message,
    /// A key was unwrapped.
    Unwrapping,
    /// Keys were made, changed or listed.
    Managing,
}

/// What the program is told of an error of the client.
pub(crate) fn of_client(error: &Error, doing: Doing) -> Rv {
    let rv = match error {
        Error::Unauthentic(_) => match doing {
            Doing::Using | Doing::Managing => CKR_ENCRYPTED_DATA_INVALID,
            Doing::Message => CKR_AEAD_DECRYPT_FAILED,
            Doing::Unwrapping => CKR_WRAPPED_KEY_INVALID,
        },
        Error::Refused { refusal, .. } => match refusal.reason {
            Reason::Denied => CKR_ACTION_PROHIBITED,
            Reason::Key if doing == Doing::Managing => CKR_TEMPLATE_INCONSISTENT,
            Reason::Key => of_key(&refusal.message),
            Reason::Spent => CKR_KEY_EXHAUSTED,
            Reason::Unauthentic => of_client(&Error::Unauthentic(String::new()), doing).0,
            Reason::Busy | Reason::OutOfMaterial => CKR_FUNCTION_FAILED,
            Reason::Malformed => CKR_FUNCTION_FAILED,
            Reason::Disagreement | Reason::Unavailable | Reason::Internal | Reason::Quarantined => {
                CKR_DEVICE_ERROR
            }
        },
        Error::Contested(_) => CKR_FUNCTION_FAILED,
        Error::NotAdmitted { .. } => CKR_ACTION_PROHIBITED,
        Error::Misuse(_) => CKR_FUNCTION_FAILED,
        _ => CKR_DEVICE_ERROR,
    };
    because(rv, error)
}

/// A node gives one reason for keys that are not there and for keys that are not for this.
fn of_key(message: &str) -> CK_RV {
    if message.contains("no key") || message.contains("no such key") || message.contains("no version") {
        CKR_KEY_HANDLE_INVALID
    } else {
        CKR_KEY_FUNCTION_NOT_PERMITTED
    }
}

impl From<PinError> for Rv {
    fn from(error: PinError) -> Rv {
        let rv = match error {
            PinError::Wrong => CKR_PIN_INCORRECT,
            PinError::Locked => CKR_PIN_LOCKED,
            PinError::NotSet => CKR_USER_PIN_NOT_INITIALIZED,
            PinError::Files(_) => CKR_DEVICE_ERROR,
        };
        because(rv, error)
    }
}

impl From<polyclave_config::Error> for Rv {
    fn from(error: polyclave_config::Error) -> Rv {
        because(CKR_DEVICE_ERROR, error)
    }
}
