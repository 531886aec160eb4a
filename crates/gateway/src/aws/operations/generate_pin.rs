//! `GeneratePinData`: a PIN for a card, or what its issuer keeps to verify a PIN.

use polyclave_payments::commands::{GeneratePin, GeneratePinReference, PinMethod, ReferenceMethod};
use polyclave_payments::{Command, KeySource, OutgoingPin, PinFormat};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::ibm3624::{self, Data};
use super::pin::{BlockFormat, bad_block, block};
use crate::aws::error::{Exception, Result};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, WRAPPED_KEY, absent, digits, within};
use crate::aws::task::{Task, Work, of_key, too_short};

/// Digits of a PIN if the request does not say how many.
const DIGITS: u8 = 4;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    generation_key_identifier: String,
    encryption_key_identifier: String,
    generation_attributes: Attributes,
    pin_data_length: Option<u8>,
    primary_account_number: Option<String>,
    pin_block_format: BlockFormat,
    encryption_wrapped_key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
enum Attributes {
    VisaPin(Visa),
    VisaPinVerificationValue(VisaOfPin),
    Ibm3624PinOffset(IbmOfPin),
    Ibm3624NaturalPin(Ibm),
    Ibm3624RandomPin(Ibm),
    Ibm3624PinFromOffset(IbmFromOffset),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Visa {
    pin_verification_key_index: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct VisaOfPin {
    encrypted_pin_block: String,
    pin_verification_key_index: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Ibm {
    decimalization_table: String,
    pin_validation_data_pad_character: String,
    pin_validation_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct IbmOfPin {
    encrypted_pin_block: String,
    decimalization_table: String,
    pin_validation_data_pad_character: String,
    pin_validation_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct IbmFromOffset {
    decimalization_table: String,
    pin_validation_data_pad_character: String,
    pin_validation_data: String,
    pin_offset: String,
}

impl IbmOfPin {
    fn parts(self) -> (String, Ibm) {
        let ibm = Ibm {
            decimalization_table: self.decimalization_table,
            pin_validation_data_pad_character: self.pin_validation_data_pad_character,
            pin_validation_data: self.pin_validation_data,
        };
        (self.encrypted_pin_block, ibm)
    }
}

impl IbmFromOffset {
    fn parts(self) -> (String, Ibm) {
        let ibm = Ibm {
            decimalization_table: self.decimalization_table,
            pin_validation_data_pad_character: self.pin_validation_data_pad_character,
            pin_validation_data: self.pin_validation_data,
        };
        (self.pin_offset, ibm)
    }
}

impl Ibm {
    fn data(&self) -> Data<'_> {
        Data {
            table: &self.decimalization_table,
            pad: &self.pin_validation_data_pad_character,
            validation: &self.pin_validation_data,
        }
    }

    fn validation_data(&self) -> Result<[u8; 8]> {
        ibm3624::validation_data(&self.data())
    }
}

/// What a PIN is verified with later.
#[derive(Clone)]
enum Reference {
    /// A PVV, from the nodes.
    Value,
    /// An offset, from the nodes.
    Offset,
    /// An offset that is known: zeros of a natural PIN, and that of the request.
    Known(String),
}

struct Generate {
    keys: Vec<KeyId>,
    command: Command,
    /// The PIN block of the request, if it has one; else it is new.
    block: Option<Vec<u8>>,
    format: PinFormat,
    reference: Reference,
    ibm: Option<Ibm>,
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Request = members::read(body)?;
    absent("EncryptionWrappedKey", &request.encryption_wrapped_key, WRAPPED_KEY)?;
    let keys = vec![
        members::key("EncryptionKeyIdentifier", &request.encryption_key_identifier)?,
        members::key("GenerationKeyIdentifier", &request.generation_key_identifier)?,
    ];
    let pan = request.primary_account_number.as_deref();
    let pan = pan.ok_or_else(|| Exception::Invalid("PrimaryAccountNumber", "it is needed".into()))?;
    let pan = members::pan(pan)?;
    let format = request.pin_block_format.format();
    let given = request.pin_data_length;
    let length = within("PinDataLength", given.unwrap_or(DIGITS), 4..=12)?;
    let outgoing = OutgoingPin { format, key: KeySource::Direct };
    let index = |index| within("PinVerificationKeyIndex", index, 0..=6);
    let make = |method| Command::GeneratePin(GeneratePin { pan: pan.clone(), outgoing, length, method });
    let keep = |text: &str, method| -> Result<(Command, Option<Vec<u8>>)> {
        let pin = block("EncryptedPinBlock", text, format, KeySource::Direct)?;
        let bytes = pin.block.clone();
        let command = Command::GeneratePinReference(GeneratePinReference { pin, pan: pan.clone(), method });
        Ok((command, Some(bytes)))
    };
    let ((command, block), reference, ibm) = match request.generation_attributes {
        Attributes::VisaPin(visa) => {
            let index = index(visa.pin_verification_key_index)?;
            ((make(PinMethod::RandomWithPvv { index }), None), Reference::Value, None)
        }
        Attributes::VisaPinVerificationValue(visa) => {
            if given.is_some_and(|length| length != DIGITS) {
                // A PVV is of the first four digits, and nobody would look at the others.
                return Err(Exception::Invalid("PinDataLength", "a PVV is of 4 digits".into()));
            }
            let index = index(visa.pin_verification_key_index)?;
            let kept = keep(&visa.encrypted_pin_block, ReferenceMethod::Pvv { index })?;
            (kept, Reference::Value, None)
        }
        Attributes::Ibm3624PinOffset(of) => {
            let (text, ibm) = of.parts();
            let validation_data = ibm.validation_data()?;
            let kept = keep(&text, ReferenceMethod::Offset { validation_data, length })?;
            (kept, Reference::Offset, Some(ibm))
        }
        Attributes::Ibm3624NaturalPin(ibm) => {
            let validation_data = ibm.validation_data()?;
            let zeros = Reference::Known("0".repeat(length.into()));
            ((make(PinMethod::Natural { validation_data }), None), zeros, Some(ibm))
        }
        Attributes::Ibm3624RandomPin(ibm) => {
            let validation_data = ibm.validation_data()?;
            let method = PinMethod::RandomWithOffset { validation_data };
            ((make(method), None), Reference::Offset, Some(ibm))
        }
        Attributes::Ibm3624PinFromOffset(of) => {
            let (text, ibm) = of.parts();
            let validation_data = ibm.validation_data()?;
            let offset = digits("PinOffset", &text, length.into()..=length.into())?;
            let method = PinMethod::FromOffset { validation_data, offset };
            ((make(method), None), Reference::Known(text), Some(ibm))
        }
    };
    Ok(Box::new(Generate { keys, command, block, format, reference, ibm }))
}

impl Task for Generate {
    fn keys(&self) -> Vec<KeyId> {
        self.keys.clone()
    }

    fn work(&self, keys: &[Key]) -> Result<Work> {
        if let (Some(ibm), Some(key)) = (&self.ibm, keys.get(1)) {
            ibm3624::check_table(&ibm.data(), key)?;
        }
        Ok(Work::pay(self.command.clone()))
    }

    fn failure(&self) -> Exception {
        bad_block("EncryptedPinBlock")
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let (block, rest) = match &self.block {
            Some(block) => (block.as_slice(), outcome),
            None => outcome.split_at_checked(self.format.block_bytes()).ok_or_else(too_short)?,
        };
        // Digits come one a byte.
        let digits = || rest.iter().map(|digit| char::from(b'0' + digit % 10)).collect::<String>();
        let data = match &self.reference {
            Reference::Value => json!({ "VerificationValue": digits() }),
            Reference::Offset => json!({ "PinOffset": digits() }),
            Reference::Known(offset) => json!({ "PinOffset": offset }),
        };
        let block = hex::encode_upper(block);
        let mut answer =
            Map::from_iter([("EncryptedPinBlock".to_owned(), block.into()), ("PinData".to_owned(), data)]);
        for (prefix, key) in ["Encryption", "Generation"].into_iter().zip(keys) {
            of_key(&mut answer, prefix, key);
        }
        Ok(answer)
    }
}
