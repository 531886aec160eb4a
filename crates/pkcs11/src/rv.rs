//! Return values of PKCS#11, and which one an error of the nodes becomes.

use cryptoki_sys::*;
use polyclave_api::Reason;
use polyclave_client::Error;
use polyclave_config::PinError;

use crate::log;

/// A return value that is not `CKR_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rv(pub(crate) CK_RV);

/// There is no operation to go on with.
pub(crate) const NOT_BEGUN: Rv = Rv(CKR_OPERATION_NOT_INITIALIZED);

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
    /// Keys were made or listed.
    Managing,
    /// A key was changed or deleted.
    Changing,
}

/// What the program is told of an error of the client.
pub(crate) fn of_client(error: &Error, doing: Doing) -> Rv {
    let rv = match error {
        Error::Unauthentic(_) => match doing {
            Doing::Using | Doing::Managing | Doing::Changing => CKR_ENCRYPTED_DATA_INVALID,
            Doing::Message => CKR_AEAD_DECRYPT_FAILED,
            Doing::Unwrapping => CKR_WRAPPED_KEY_INVALID,
        },
        Error::Refused { refusal, .. } => match refusal.reason {
            Reason::Denied => CKR_ACTION_PROHIBITED,
            Reason::NoSuchKey => match doing {
                Doing::Using | Doing::Message | Doing::Managing => CKR_KEY_HANDLE_INVALID,
                Doing::Unwrapping => CKR_UNWRAPPING_KEY_HANDLE_INVALID,
                Doing::Changing => CKR_OBJECT_HANDLE_INVALID,
            },
            Reason::NotForThis => CKR_KEY_FUNCTION_NOT_PERMITTED,
            // Properties of a key that is made or changed.
            Reason::Key => CKR_TEMPLATE_INCONSISTENT,
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

impl From<PinError> for Rv {
    fn from(error: PinError) -> Rv {
        let rv = match error {
            PinError::Wrong => CKR_PIN_INCORRECT,
            PinError::Locked => CKR_PIN_LOCKED,
            PinError::NotSet => CKR_USER_PIN_NOT_INITIALIZED,
            PinError::Length { .. } => CKR_PIN_LEN_RANGE,
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

#[cfg(test)]
mod tests {
    use polyclave_api::Refusal;

    use super::*;

    fn message_of(reason: Reason, doing: Doing) -> CK_RV {
        let refusal = Refusal::new(reason, "there is no such key, in other words");
        of_client(&Error::Refused { node: "node-1".into(), refusal }, doing).0
    }

    #[test]
    fn each_reason_of_a_node_has_its_return_value_whatever_its_words() {
        use Doing::{Changing, Managing, Message, Unwrapping, Using};
        for (reason, rv) in [
            (Reason::Denied, CKR_ACTION_PROHIBITED),
            (Reason::NotForThis, CKR_KEY_FUNCTION_NOT_PERMITTED),
            (Reason::NoSuchKey, CKR_KEY_HANDLE_INVALID),
            (Reason::Key, CKR_TEMPLATE_INCONSISTENT),
            (Reason::Spent, CKR_KEY_EXHAUSTED),
            (Reason::Busy, CKR_FUNCTION_FAILED),
            (Reason::OutOfMaterial, CKR_FUNCTION_FAILED),
            (Reason::Malformed, CKR_FUNCTION_FAILED),
            (Reason::Unavailable, CKR_DEVICE_ERROR),
            (Reason::Disagreement, CKR_DEVICE_ERROR),
            (Reason::Quarantined, CKR_DEVICE_ERROR),
            (Reason::Internal, CKR_DEVICE_ERROR),
            (Reason::Unauthentic, CKR_ENCRYPTED_DATA_INVALID),
        ] {
            assert_eq!(message_of(reason, Using), rv, "{reason:?}");
        }
        assert_eq!(message_of(Reason::Unauthentic, Message), CKR_AEAD_DECRYPT_FAILED);
        assert_eq!(message_of(Reason::Unauthentic, Unwrapping), CKR_WRAPPED_KEY_INVALID);
        let gone =
            [Message, Managing, Unwrapping, Changing].map(|doing| message_of(Reason::NoSuchKey, doing));
        assert_eq!(
            gone,
            [
                CKR_KEY_HANDLE_INVALID,
                CKR_KEY_HANDLE_INVALID,
                CKR_UNWRAPPING_KEY_HANDLE_INVALID,
                CKR_OBJECT_HANDLE_INVALID
            ]
        );
        let contested = Error::Contested("they did not agree".into());
        assert_eq!(of_client(&contested, Using), Rv(CKR_FUNCTION_FAILED));
    }
}
