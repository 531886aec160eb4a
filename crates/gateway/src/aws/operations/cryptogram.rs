//! `VerifyAuthRequestCryptogram` and `GenerateAuthRequestCryptogram`.

use polyclave_payments::commands::{Arpc, GenerateArqc, VerifyArqc};
use polyclave_payments::{Command, CryptogramInput, MessagePadding, SessionKey};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::emv::{MajorKeyMode, bytes, card, counter};
use crate::aws::error::{Exception, NotVerified, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, hex};
use crate::aws::task::{Task, Work, of_key};

const SESSION_KEY: &str = "SessionKeyDerivationAttributes";
/// The most bytes of the data of a transaction.
const MOST_DATA: usize = 512;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Generate {
    key_identifier: String,
    transaction_data: String,
    major_key_derivation_mode: MajorKeyMode,
    session_key_derivation_attributes: Session,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Verify {
    key_identifier: String,
    transaction_data: String,
    auth_request_cryptogram: String,
    major_key_derivation_mode: MajorKeyMode,
    session_key_derivation_attributes: Session,
    auth_response_attributes: Option<Response>,
}

#[derive(Deserialize)]
enum Session {
    EmvCommon(WithCounter),
    Mastercard(WithNumber),
    Emv2000(IgnoredAny),
    Amex(Card),
    Visa(Card),
    UnionPay(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Card {
    primary_account_number: String,
    pan_sequence_number: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct WithCounter {
    primary_account_number: String,
    pan_sequence_number: String,
    application_transaction_counter: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct WithNumber {
    primary_account_number: String,
    pan_sequence_number: String,
    application_transaction_counter: String,
    unpredictable_number: String,
}

#[derive(Deserialize)]
enum Response {
    ArpcMethod1(Method1),
    ArpcMethod2(Method2),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Method1 {
    auth_response_code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Method2 {
    card_status_update: String,
    proprietary_authentication_data: Option<String>,
}

/// What a card signs. The API wants the data filled up already, by the method that the card uses.
fn input(mode: MajorKeyMode, session: &Session, data: &str) -> Result<CryptogramInput> {
    let member = "TransactionData";
    let data = hex(member, data, 1..=MOST_DATA)?;
    if !data.len().is_multiple_of(8) {
        let wrong = "the data is to be padded by its sender to whole blocks of 8 bytes";
        return Err(Exception::Invalid(member, wrong.into()));
    }
    let (card, session_key) = match session {
        Session::EmvCommon(of) => {
            let counter = counter(&of.application_transaction_counter)?;
            let card = card(mode, &of.primary_account_number, &of.pan_sequence_number)?;
            (card, SessionKey::Common { counter })
        }
        Session::Mastercard(of) => {
            let counter = counter(&of.application_transaction_counter)?;
            let unpredictable = bytes("UnpredictableNumber", &of.unpredictable_number)?;
            let card = card(mode, &of.primary_account_number, &of.pan_sequence_number)?;
            (card, SessionKey::Mastercard { counter, unpredictable })
        }
        Session::Amex(of) | Session::Visa(of) => {
            let card = card(mode, &of.primary_account_number, &of.pan_sequence_number)?;
            (card, SessionKey::CardKey)
        }
        Session::Emv2000(_) => {
            return Err(not_served(
                SESSION_KEY,
                "Emv2000, whose tree has a shape that the API does not tell,",
            ));
        }
        Session::UnionPay(_) => {
            return Err(not_served(SESSION_KEY, "UnionPay, whose derivation is not public,"));
        }
    };
    Ok(CryptogramInput { card, session_key, data, padding: MessagePadding::Zeros })
}

impl Response {
    fn read(&self) -> Result<Arpc> {
        match self {
            Response::ArpcMethod1(of) => {
                Ok(Arpc::Method1 { code: bytes("AuthResponseCode", &of.auth_response_code)? })
            }
            Response::ArpcMethod2(of) => {
                let proprietary = match &of.proprietary_authentication_data {
                    None => Vec::new(),
                    Some(text) => hex("ProprietaryAuthenticationData", text, 1..=8)?,
                };
                let status = bytes("CardStatusUpdate", &of.card_status_update)?;
                Ok(Arpc::Method2 { status, proprietary })
            }
        }
    }
}

struct Cryptogram {
    key: KeyId,
    command: Command,
    /// What the outcome is called, if there is one.
    outcome: Option<&'static str>,
}

/// Reads a request for a cryptogram.
pub(super) fn read_generate(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Generate = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let mode = request.major_key_derivation_mode;
    let input = input(mode, &request.session_key_derivation_attributes, &request.transaction_data)?;
    let command = Command::GenerateArqc(GenerateArqc { input });
    Ok(Box::new(Cryptogram { key, command, outcome: Some("AuthRequestCryptogram") }))
}

/// Reads a request to verify a cryptogram.
pub(super) fn read_verify(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Verify = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let mode = request.major_key_derivation_mode;
    let input = input(mode, &request.session_key_derivation_attributes, &request.transaction_data)?;
    let cryptogram = bytes("AuthRequestCryptogram", &request.auth_request_cryptogram)?;
    let response = request.auth_response_attributes.as_ref().map(Response::read).transpose()?;
    let outcome = response.as_ref().map(|_| "AuthResponseValue");
    let command = Command::VerifyArqc(VerifyArqc { input, cryptogram, response });
    Ok(Box::new(Cryptogram { key, command, outcome }))
}

impl Task for Cryptogram {
    fn keys(&self) -> Vec<KeyId> {
        vec![self.key.clone()]
    }

    fn work(&self, _: &[Key]) -> Result<Work> {
        Ok(Work::pay(self.command.clone()))
    }

    fn failure(&self) -> Exception {
        Exception::NotVerified(NotVerified::Cryptogram)
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::new();
        if let Some(name) = self.outcome {
            answer.insert(name.into(), ::hex::encode_upper(outcome).into());
        }
        keys.iter().for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}
