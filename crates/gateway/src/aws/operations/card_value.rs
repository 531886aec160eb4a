//! `GenerateCardValidationData` and `VerifyCardValidationData`.

use polyclave_payments::commands::{GenerateCardValue, VerifyCardValue};
use polyclave_payments::{CardData, Command, EmvCard};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::emv::{MajorKeyMode, bytes, card, counter};
use crate::aws::error::{Exception, NotVerified, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, digits, hex, within};
use crate::aws::task::{Task, Work, of_key};

/// Digits of a value if the request does not say how many.
const DIGITS: u8 = 3;
/// The service code of a value that is printed on the card.
const PRINTED: &str = "000";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Generate {
    key_identifier: String,
    primary_account_number: String,
    generation_attributes: Attributes,
    validation_data_length: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Verify {
    key_identifier: String,
    primary_account_number: String,
    verification_attributes: Attributes,
    validation_data: String,
}

#[derive(Deserialize)]
enum Attributes {
    CardVerificationValue1(Value1),
    CardVerificationValue2(Value2),
    AmexCardSecurityCodeVersion1(IgnoredAny),
    AmexCardSecurityCodeVersion2(IgnoredAny),
    CardHolderVerificationValue(IgnoredAny),
    DynamicCardVerificationCode(Cvc3),
    DynamicCardVerificationValue(Dcvv),
    DiscoverDynamicCardVerificationCode(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Value1 {
    card_expiry_date: String,
    service_code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Value2 {
    card_expiry_date: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Dcvv {
    pan_sequence_number: String,
    card_expiry_date: String,
    service_code: String,
    application_transaction_counter: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Cvc3 {
    unpredictable_number: String,
    pan_sequence_number: String,
    application_transaction_counter: String,
    track_data: String,
}

/// The card of a dynamic value. AWS has no choice of the derivation here: option A.
fn option_a(pan: &str, sequence: &str) -> Result<EmvCard> {
    card(MajorKeyMode::OptionA, pan, sequence)
}

impl Attributes {
    fn read(&self, member: &'static str, pan: &str) -> Result<CardData> {
        let expiry = |text: &str| digits("CardExpiryDate", text, 4..=4);
        let service_code = |text: &str| digits("ServiceCode", text, 3..=3);
        let cvv = |date: &str, code: &str| {
            let (expiry, service_code) = (expiry(date)?, service_code(code)?);
            Ok(CardData::Cvv { pan: members::pan(pan)?, expiry, service_code })
        };
        match self {
            Attributes::CardVerificationValue1(of) => cvv(&of.card_expiry_date, &of.service_code),
            Attributes::CardVerificationValue2(of) => cvv(&of.card_expiry_date, PRINTED),
            Attributes::DynamicCardVerificationValue(of) => Ok(CardData::Dcvv {
                card: option_a(pan, &of.pan_sequence_number)?,
                expiry: expiry(&of.card_expiry_date)?,
                service_code: service_code(&of.service_code)?,
                counter: counter(&of.application_transaction_counter)?,
            }),
            Attributes::DynamicCardVerificationCode(of) => Ok(CardData::Cvc3 {
                card: option_a(pan, &of.pan_sequence_number)?,
                track: hex("TrackData", &of.track_data, 1..=80)?,
                unpredictable: bytes("UnpredictableNumber", &of.unpredictable_number)?,
                counter: counter(&of.application_transaction_counter)?,
            }),
            Attributes::AmexCardSecurityCodeVersion1(_) | Attributes::AmexCardSecurityCodeVersion2(_) => {
                Err(not_served(member, "a card security code of American Express"))
            }
            Attributes::CardHolderVerificationValue(_)
            | Attributes::DiscoverDynamicCardVerificationCode(_) => {
                Err(not_served(member, "a dynamic value of these schemes"))
            }
        }
    }
}

struct OfCard {
    key: KeyId,
    command: Command,
}

/// Reads a request for a value.
pub(super) fn read_generate(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Generate = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let card = request.generation_attributes.read("GenerationAttributes", &request.primary_account_number)?;
    let length = within("ValidationDataLength", request.validation_data_length.unwrap_or(DIGITS), 3..=5)?;
    let command = Command::GenerateCardValue(GenerateCardValue { card, length });
    Ok(Box::new(OfCard { key, command }))
}

/// Reads a request to verify a value.
pub(super) fn read_verify(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Verify = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let card =
        request.verification_attributes.read("VerificationAttributes", &request.primary_account_number)?;
    let value = digits("ValidationData", &request.validation_data, 3..=5)?;
    Ok(Box::new(OfCard { key, command: Command::VerifyCardValue(VerifyCardValue { card, value }) }))
}

impl Task for OfCard {
    fn keys(&self) -> Vec<KeyId> {
        vec![self.key.clone()]
    }

    fn work(&self, _: &[Key]) -> Result<Work> {
        Ok(Work::pay(self.command.clone()))
    }

    fn failure(&self) -> Exception {
        Exception::NotVerified(NotVerified::CardValue)
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::new();
        if matches!(self.command, Command::GenerateCardValue(_)) {
            // Digits come one a byte.
            let digits: String = outcome.iter().map(|digit| char::from(b'0' + digit % 10)).collect();
            answer.insert("ValidationData".into(), digits.into());
        }
        keys.iter().for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}
