//! Why an operation is refused, as KMIP says it.

use super::codes::{V1_4, V2, Version};
use crate::failure::Failure;

/// The result of what is asked for.
pub(super) type Result<T> = std::result::Result<T, Refused>;

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// The reason of a result (KMIP 2.1, section 11.47).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    ItemNotFound,
    ResponseTooLarge,
    NotAuthenticated,
    InvalidMessage,
    OperationNotSupported,
    MissingData,
    InvalidField,
    FeatureNotSupported,
    CryptographicFailure,
    PermissionDenied,
    NotExtractable,
    WrongState,
    GeneralFailure,
}

impl Reason {
    pub(super) fn because(self, message: impl Into<String>) -> Refused {
        Refused { reason: self, message: message.into() }
    }

    /// Its number. Older versions have fewer reasons.
    pub(super) fn code(self, version: Version) -> u32 {
        match self {
            Reason::ItemNotFound if version >= V2 => 0x37,
            Reason::ItemNotFound => 1,
            Reason::ResponseTooLarge => 2,
            Reason::NotAuthenticated => 3,
            Reason::InvalidMessage => 4,
            Reason::OperationNotSupported => 5,
            Reason::MissingData => 6,
            Reason::InvalidField => 7,
            Reason::FeatureNotSupported => 8,
            Reason::CryptographicFailure => 0x0a,
            Reason::NotExtractable if version >= V1_4 => 0x17,
            Reason::WrongState if version >= V2 => 0x43,
            Reason::PermissionDenied | Reason::NotExtractable | Reason::WrongState => 0x0c,
            Reason::GeneralFailure => 0x100,
        }
    }
}

pub(super) fn missing(what: &str) -> Refused {
    Reason::MissingData.because(format!("there is no {what}"))
}

pub(super) fn invalid(what: &str) -> Refused {
    Reason::InvalidField.because(format!("the {what} is none that is served"))
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        let message = match failure {
            Failure::NoKey => "there is no such key".into(),
            _ => failure.to_string(),
        };
        let reason = match failure {
            Failure::NoKey => Reason::ItemNotFound,
            Failure::Bad(_) => Reason::InvalidField,
            Failure::Unauthentic => Reason::CryptographicFailure,
            Failure::Denied(_) | Failure::NotAllowed | Failure::Stranger => Reason::PermissionDenied,
            _ => Reason::GeneralFailure,
        };
        reason.because(message)
    }
}
