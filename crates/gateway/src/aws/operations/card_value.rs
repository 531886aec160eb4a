//! `GenerateCardValidationData` and `VerifyCardValidationData`.

use polyclave_payments::commands::{GenerateCardValue, VerifyCardValue};
use polyclave_payments::{CardData, Command};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::aws::error::{Exception, NotVerified, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, digits, within};
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
    DynamicCardVerificationCode(IgnoredAny),
    DynamicCardVerificationValue(IgnoredAny),
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

impl Attributes {
    fn read(&self, member: &'static str, pan: &str) -> Result<CardData> {
        let (expiry, service_code) = match self {
            Attributes::CardVerificationValue1(of) => (&of.card_expiry_date, of.service_code.as_str()),
            Attributes::CardVerificationValue2(of) => (&of.card_expiry_date, PRINTED),
            Attributes::AmexCardSecurityCodeVersion1(_) | Attributes::AmexCardSecurityCodeVersion2(_) => {
                return Err(not_served(member, "a card security code of American Express"));
            }
            Attributes::CardHolderVerificationValue(_)
            | Attributes::DynamicCardVerificationCode(_)
            | Attributes::DynamicCardVerificationValue(_)
            | Attributes::DiscoverDynamicCardVerificationCode(_) => {
                return Err(not_served(member, "a dynamic value"));
            }
        };
        Ok(CardData {
            pan: members::pan(pan)?,
            expiry: digits("CardExpiryDate", expiry, 4..=4)?,
            service_code: digits("ServiceCode", service_code, 3..=3)?,
        })
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
