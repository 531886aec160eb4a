//! Why a connection failed, before its peer is known or named.

use std::io;

use polyclave_protocol::{Error, Party};
use rustls::AlertDescription;

use crate::validity;

/// The detail of an [`Error::Peer`] whose peer does not know this side's certificate.
pub const NOT_ADMITTED: &str =
    "it refused this party's certificate as not one of those that it lists or admits";

/// How a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It ended.
    Closed(String),
    /// The other side sent what it must not.
    Misbehaved(String),
}

impl Broken {
    /// As an error about `peer`.
    pub(crate) fn of(self, peer: Party) -> Error {
        match self {
            Broken::Closed(detail) => Error::Closed { peer, detail },
            Broken::Misbehaved(detail) => Error::Peer { peer, detail },
        }
    }
}

impl Broken {
    /// The error after the handshake. A record that does not authenticate was changed by somebody on the way
    /// and is not the peer's, and an alert that ends the connection says no more. Only the refusal of a
    /// certificate comes this late and is really from the peer.
    pub(crate) fn after_handshake(e: rustls::Error) -> Broken {
        use AlertDescription::{AccessDenied, CertificateExpired};
        let refused = matches!(e, rustls::Error::AlertReceived(AccessDenied | CertificateExpired));
        match Broken::from(e) {
            Broken::Misbehaved(detail) if !refused => Broken::Closed(detail),
            message => message,
        }
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Broken::Closed(detail) | Broken::Misbehaved(detail)) = self;
        f.write_str(detail)
    }
}

impl From<io::Error> for Broken {
    fn from(e: io::Error) -> Self {
        Broken::Closed(e.to_string())
    }
}

impl From<rustls::Error> for Broken {
    fn from(e: rustls::Error) -> Self {
        use rustls::Error::{
            AlertReceived, DecryptError, InvalidCertificate, InvalidMessage, PeerIncompatible,
        };
        Broken::Misbehaved(match e {
            InvalidCertificate(e) => match validity::message_of(&e) {
                Some(message) => format!("its {message}"),
                None => "its certificate is not the one that is listed for it".into(),
            },
            AlertReceived(AlertDescription::AccessDenied) => NOT_ADMITTED.into(),
            AlertReceived(AlertDescription::CertificateExpired) => {
                "by its clock this party's certificate has expired or is not yet valid; see whether the clocks here and there are right, else rotate the \
                 certificate"
                    .into()
            }
            AlertReceived(alert) => format!("it broke off TLS with alert {alert:?}"),
            InvalidMessage(_) => "its bytes are not TLS".into(),
            PeerIncompatible(_) => format!("its TLS cannot do TLS 1.3 with AES-128-GCM and X25519 ({e})"),
            DecryptError => "a TLS record failed its authentication".into(),
            e => format!("TLS failed: {e}"),
        })
    }
}
