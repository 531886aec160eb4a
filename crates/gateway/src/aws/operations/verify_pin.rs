//! `VerifyPinData`.

use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, EncryptedPin, Pan, PinReference};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::ibm3624::{self, Data};
use super::pin::{BlockFormat, DukptAttributes, block};
use crate::aws::error::{Exception, NotVerified, Result};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, WRAPPED_KEY, absent, digits, within};
use crate::aws::task::{Task, Work, of_key};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    verification_key_identifier: String,
    encryption_key_identifier: String,
    verification_attributes: Attributes,
    encrypted_pin_block: String,
    primary_account_number: Option<String>,
    pin_block_format: BlockFormat,
    pin_data_length: Option<u8>,
    dukpt_attributes: Option<DukptAttributes>,
    encryption_wrapped_key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
enum Attributes {
    VisaPin(Visa),
    Ibm3624Pin(Ibm3624),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Visa {
    pin_verification_key_index: u8,
    verification_value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Ibm3624 {
    decimalization_table: String,
    pin_validation_data_pad_character: String,
    pin_validation_data: String,
    pin_offset: String,
}

impl Ibm3624 {
    fn data(&self) -> Data<'_> {
        Data {
            table: &self.decimalization_table,
            pad: &self.pin_validation_data_pad_character,
            validation: &self.pin_validation_data,
        }
    }
}

struct Verify {
    keys: Vec<KeyId>,
    pin: EncryptedPin,
    pan: Pan,
    reference: PinReference,
    ibm: Option<Ibm3624>,
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Request = members::read(body)?;
    absent("EncryptionWrappedKey", &request.encryption_wrapped_key, WRAPPED_KEY)?;
    let keys = vec![
        members::key("EncryptionKeyIdentifier", &request.encryption_key_identifier)?,
        members::key("VerificationKeyIdentifier", &request.verification_key_identifier)?,
    ];
    let format = request.pin_block_format.format();
    let source = DukptAttributes::source(request.dukpt_attributes.as_ref())?;
    let pin = block("EncryptedPinBlock", &request.encrypted_pin_block, format, source)?;
    let (reference, ibm) = match request.verification_attributes {
        Attributes::VisaPin(visa) => {
            let index = within("PinVerificationKeyIndex", visa.pin_verification_key_index, 0..=6)?;
            let value = digits("VerificationValue", &visa.verification_value, 4..=4)?;
            (PinReference::Visa { index, value }, None)
        }
        Attributes::Ibm3624Pin(ibm) => {
            let validation_data = ibm3624::validation_data(&ibm.data())?;
            let offset = digits("PinOffset", &ibm.pin_offset, 4..=12)?;
            (PinReference::Ibm3624 { validation_data, offset }, Some(ibm))
        }
    };
    check_length(request.pin_data_length, &reference)?;
    let pan = match &request.primary_account_number {
        Some(pan) => members::pan(pan)?,
        // Neither the block nor the offset is bound to the card.
        None if !format.binds_pan() && ibm.is_some() => members::pan("000000000000")?,
        None => return Err(Exception::Invalid("PrimaryAccountNumber", "it is needed".into())),
    };
    Ok(Box::new(Verify { keys, pin, pan, reference, ibm }))
}

/// A length that the nodes would not look at is refused: an offset has as many digits as the PIN, and a PVV
/// is of the first four.
fn check_length(length: Option<u8>, reference: &PinReference) -> Result<()> {
    let digits = match reference {
        PinReference::Visa { value, .. } => value.len(),
        PinReference::Ibm3624 { offset, .. } => offset.len(),
    };
    match length {
        Some(length) if usize::from(length) != digits => {
            let wrong = format!("{digits} digits are verified");
            Err(Exception::Invalid("PinDataLength", wrong))
        }
        _ => Ok(()),
    }
}

impl Task for Verify {
    fn keys(&self) -> Vec<KeyId> {
        self.keys.clone()
    }

    fn work(&self, keys: &[Key]) -> Result<Work> {
        if let (Some(ibm), Some(key)) = (&self.ibm, keys.get(1)) {
            ibm3624::check_table(&ibm.data(), key)?;
        }
        let (pin, pan, reference) = (self.pin.clone(), self.pan.clone(), self.reference.clone());
        Ok(Work::pay(Command::VerifyPin(VerifyPin { pin, pan, reference })))
    }

    fn failure(&self) -> Exception {
        Exception::NotVerified(NotVerified::Pin)
    }

    fn answer(&self, _: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::new();
        for (prefix, key) in ["Encryption", "Verification"].into_iter().zip(keys) {
            of_key(&mut answer, prefix, key);
        }
        Ok(answer)
    }
}
