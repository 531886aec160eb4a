//! `GenerateMacEmvPinChange`: a new PIN for a chip card, encrypted and authenticated for it.

use polyclave_payments::commands::{ChangePin, ChangePinVisa, ScriptPadding};
use polyclave_payments::{Command, EncryptedPin, KeySource, SessionKey};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::emv::{MajorKeyMode, bytes, card, counter};
use super::pin::{BlockFormat, bad_block, block};
use crate::aws::error::{Exception, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, hex};
use crate::aws::task::{Task, Work, of_key, too_short};

const ATTRIBUTES: &str = "DerivationMethodAttributes";
const BLOCK: &str = "NewEncryptedPinBlock";
/// Bytes of the MAC, which ends the outcome.
const MAC: usize = 8;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    new_pin_pek_identifier: String,
    new_encrypted_pin_block: String,
    pin_block_format: BlockFormat,
    secure_messaging_integrity_key_identifier: String,
    secure_messaging_confidentiality_key_identifier: String,
    message_data: String,
    derivation_method_attributes: Attributes,
}

#[derive(Deserialize)]
enum Attributes {
    EmvCommon(Common),
    Mastercard(Mastercard),
    Amex(IgnoredAny),
    Visa(Visa),
    Emv2000(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Common {
    major_key_derivation_mode: MajorKeyMode,
    primary_account_number: String,
    pan_sequence_number: String,
    application_cryptogram: String,
    mode: Mode,
    pin_block_padding_type: Padding,
    pin_block_length_position: LengthPosition,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Mastercard {
    major_key_derivation_mode: MajorKeyMode,
    primary_account_number: String,
    pan_sequence_number: String,
    application_cryptogram: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Visa {
    major_key_derivation_mode: MajorKeyMode,
    primary_account_number: String,
    pan_sequence_number: String,
    application_transaction_counter: String,
    authorization_request_key_identifier: String,
    current_pin_attributes: Option<CurrentPin>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct CurrentPin {
    current_pin_pek_identifier: String,
    current_encrypted_pin_block: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Mode {
    Ecb,
    Cbc,
}

#[derive(Clone, Copy, Deserialize)]
enum Padding {
    #[serde(rename = "NO_PADDING")]
    None,
    #[serde(rename = "ISO_IEC_7816_4")]
    Block,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum LengthPosition {
    None,
    FrontOfPinBlock,
}

impl Attributes {
    /// The command, and the keys that it takes after the three that all take.
    fn read(&self, pin: EncryptedPin, message: Vec<u8>) -> Result<(Command, Vec<KeyId>)> {
        let session = |text: &str| -> Result<SessionKey> {
            Ok(SessionKey::Cryptogram { cryptogram: bytes("ApplicationCryptogram", text)? })
        };
        match self {
            Attributes::EmvCommon(of) => {
                if of.pin_block_length_position == LengthPosition::FrontOfPinBlock {
                    return Err(not_served("PinBlockLengthPosition", "a length in front of the PIN block"));
                }
                let padding = match (of.pin_block_padding_type, of.mode) {
                    // One block: both modes give the same.
                    (Padding::None, _) => ScriptPadding::None,
                    (Padding::Block, Mode::Cbc) => ScriptPadding::Block,
                    (Padding::Block, Mode::Ecb) => return Err(not_served("Mode", "ECB of two blocks")),
                };
                let mode = of.major_key_derivation_mode;
                let card = card(mode, &of.primary_account_number, &of.pan_sequence_number)?;
                let session_key = session(&of.application_cryptogram)?;
                let command = ChangePin { pin, card, session_key, padding, message };
                Ok((Command::ChangePin(command), Vec::new()))
            }
            Attributes::Mastercard(of) => {
                let mode = of.major_key_derivation_mode;
                let card = card(mode, &of.primary_account_number, &of.pan_sequence_number)?;
                let (session_key, padding) = (session(&of.application_cryptogram)?, ScriptPadding::None);
                let command = ChangePin { pin, card, session_key, padding, message };
                Ok((Command::ChangePin(command), Vec::new()))
            }
            Attributes::Visa(of) => of.read(pin, message),
            Attributes::Amex(_) => Err(not_served(ATTRIBUTES, "Amex, whose derivation is not public,")),
            Attributes::Emv2000(_) => {
                Err(not_served(ATTRIBUTES, "Emv2000, whose tree has a shape that the API does not tell,"))
            }
        }
    }
}

impl Visa {
    fn read(&self, pin: EncryptedPin, message: Vec<u8>) -> Result<(Command, Vec<KeyId>)> {
        let mode = self.major_key_derivation_mode;
        let card = card(mode, &self.primary_account_number, &self.pan_sequence_number)?;
        let session_key = SessionKey::VisaScript { counter: counter(&self.application_transaction_counter)? };
        let cryptograms = &self.authorization_request_key_identifier;
        let mut keys = vec![members::key("AuthorizationRequestKeyIdentifier", cryptograms)?];
        let current = match &self.current_pin_attributes {
            Some(of) => {
                keys.push(members::key("CurrentPinPekIdentifier", &of.current_pin_pek_identifier)?);
                let text = &of.current_encrypted_pin_block;
                Some(block("CurrentEncryptedPinBlock", text, pin.format, KeySource::Direct)?)
            }
            None => None,
        };
        let command = ChangePinVisa { pin, current, card, session_key, message };
        Ok((Command::ChangePinVisa(command), keys))
    }
}

struct Change {
    keys: Vec<KeyId>,
    command: Command,
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Request = members::read(body)?;
    let mut keys = vec![
        members::key("NewPinPekIdentifier", &request.new_pin_pek_identifier)?,
        members::key(
            "SecureMessagingIntegrityKeyIdentifier",
            &request.secure_messaging_integrity_key_identifier,
        )?,
        members::key(
            "SecureMessagingConfidentialityKeyIdentifier",
            &request.secure_messaging_confidentiality_key_identifier,
        )?,
    ];
    if matches!(request.pin_block_format, BlockFormat::IsoFormat4) {
        return Err(not_served("PinBlockFormat", "ISO_FORMAT_4 of a PIN for a card"));
    }
    let format = request.pin_block_format.format();
    let pin = block(BLOCK, &request.new_encrypted_pin_block, format, KeySource::Direct)?;
    let message = hex("MessageData", &request.message_data, 8..=512)?;
    let (command, others) = request.derivation_method_attributes.read(pin, message)?;
    keys.extend(others);
    Ok(Box::new(Change { keys, command }))
}

impl Task for Change {
    fn keys(&self) -> Vec<KeyId> {
        self.keys.clone()
    }

    fn work(&self, _: &[Key]) -> Result<Work> {
        Ok(Work::pay(self.command.clone()))
    }

    fn failure(&self) -> Exception {
        bad_block(BLOCK)
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let encrypted = outcome.len().checked_sub(MAC).ok_or_else(too_short)?;
        let (block, mac) = outcome.split_at(encrypted);
        let mut answer = Map::from_iter([
            ("EncryptedPinBlock".to_owned(), ::hex::encode_upper(block).into()),
            ("Mac".to_owned(), ::hex::encode_upper(mac).into()),
        ]);
        // The names of members are not alike.
        let [pin, integrity, confidentiality, others @ ..] = keys else { return Err(too_short()) };
        for (prefix, key) in
            [("SecureMessagingIntegrity", integrity), ("SecureMessagingConfidentiality", confidentiality)]
        {
            of_key(&mut answer, prefix, key);
        }
        answer.insert("NewPinPekArn".into(), pin.arn.clone().into());
        answer.insert("NewPinPekKeyCheckValue".into(), pin.check_value.clone().into());
        let mut of_visa = Map::new();
        for (key, [arn, value]) in others.iter().zip([
            ["AuthorizationRequestKeyArn", "AuthorizationRequestKeyCheckValue"],
            ["CurrentPinPekArn", "CurrentPinPekKeyCheckValue"],
        ]) {
            of_visa.insert(arn.into(), key.arn.clone().into());
            of_visa.insert(value.into(), key.check_value.clone().into());
        }
        if !of_visa.is_empty() {
            answer.insert("VisaAmexDerivationOutputs".into(), of_visa.into());
        }
        Ok(answer)
    }
}
