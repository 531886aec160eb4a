//! Which mode and right each use of a key needs.

use super::Mode;
use super::facts::Choice;
use crate::{Right, Use};

impl Use {
    /// The mode and the right that it needs.
    pub fn needs(&self) -> (Mode, Right) {
        match self {
            Use::Seal { .. } | Use::GcmEncrypt { .. } => (Mode::Gcm, Right::Encrypt),
            Use::Open { .. } | Use::GcmDecrypt { .. } => (Mode::Gcm, Right::Decrypt),
            Use::CtrEncrypt => (Mode::Ctr, Right::Encrypt),
            Use::CtrDecrypt { .. } => (Mode::Ctr, Right::Decrypt),
            Use::CbcEncrypt { .. } => (Mode::Cbc, Right::Encrypt),
            Use::CbcDecrypt => (Mode::Cbc, Right::Decrypt),
            Use::EcbEncrypt { .. } => (Mode::Ecb, Right::Encrypt),
            Use::EcbDecrypt { .. } => (Mode::Ecb, Right::Decrypt),
            Use::Cmac { .. } => (Mode::Cmac, Right::Mac),
            Use::EnvelopeWrite(_) => (Mode::Envelope, Right::Encrypt),
            Use::EnvelopeOpen { .. } => (Mode::Envelope, Right::Decrypt),
            Use::MessageEncrypt { message, .. } => (message.mode, Right::Encrypt),
            Use::MessageDecrypt { message, .. } => (message.mode, Right::Decrypt),
            Use::Tokenize(_) => (Mode::Ff1, Right::Tokenize),
            Use::XaesEncrypt { .. } => (Mode::Xaes, Right::Encrypt),
            Use::XaesDecrypt { .. } => (Mode::Xaes, Right::Decrypt),
            Use::Hmac(_) => (Mode::Hmac, Right::Mac),
        }
    }

    /// What the client has chosen of what it encrypts under. All uses stand here, so that a new one cannot be
    /// forgotten: to choose a nonce amounts to decryption.
    pub fn chosen(&self) -> Choice {
        let is_chosen = match self {
            Use::GcmEncrypt { nonce, .. } => nonce.is_some(),
            Use::XaesEncrypt { nonce, .. } => nonce.is_some(),
            Use::MessageEncrypt { message, .. } => message.nonce.is_some(),
            Use::CbcEncrypt { initial, .. } => initial.is_some(),
            Use::Seal { .. }
            | Use::Open { .. }
            | Use::GcmDecrypt { .. }
            | Use::CtrEncrypt
            | Use::CtrDecrypt { .. }
            | Use::CbcDecrypt
            | Use::EcbEncrypt { .. }
            | Use::EcbDecrypt { .. }
            | Use::Cmac { .. }
            | Use::EnvelopeWrite(_)
            | Use::EnvelopeOpen { .. }
            | Use::MessageDecrypt { .. }
            | Use::Tokenize(_)
            | Use::XaesDecrypt { .. }
            | Use::Hmac(_) => false,
        };
        if is_chosen { self.needs().0.choice() } else { Choice::Nothing }
    }
}
