//! `GenerateMac` and `VerifyMac`.

use polyclave_payments::commands::{GenerateMac, GenerateScriptMac, VerifyMac, VerifyScriptMac};
use polyclave_payments::{
    Command, DukptUsage, EmvCard, KeySource, MacInput, MacMethod, MessagePadding, SessionKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::emv::{MajorKeyMode, bytes, card, counter};
use super::pin::{DerivationType, Variant, dukpt};
use crate::aws::error::{Exception, NotVerified, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, hex, within};
use crate::aws::task::{Task, Work, of_key};

/// The most bytes of a message.
const MOST: usize = 4096;
/// Bytes of a MAC of Triple DES, and of AES, if the request does not say how many.
const OF_TDES: u8 = 8;
const OF_AES: u8 = 16;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Generate {
    key_identifier: String,
    message_data: String,
    generation_attributes: Attributes,
    mac_length: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Verify {
    key_identifier: String,
    message_data: String,
    mac: String,
    verification_attributes: Attributes,
    mac_length: Option<u8>,
}

#[derive(Deserialize)]
enum Attributes {
    Algorithm(Algorithm),
    EmvMac(Emv),
    DukptIso9797Algorithm1(Dukpt),
    DukptIso9797Algorithm3(Dukpt),
    DukptCmac(Dukpt),
}

#[derive(Clone, Copy, Deserialize)]
enum Algorithm {
    #[serde(rename = "ISO9797_ALGORITHM1")]
    Iso1,
    #[serde(rename = "ISO9797_ALGORITHM3")]
    Iso3,
    #[serde(rename = "CMAC")]
    Cmac,
    #[serde(rename = "AS2805_4_1")]
    As2805,
    #[serde(
        rename = "HMAC",
        alias = "HMAC_SHA224",
        alias = "HMAC_SHA256",
        alias = "HMAC_SHA384",
        alias = "HMAC_SHA512"
    )]
    Hmac,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Dukpt {
    key_serial_number: String,
    dukpt_key_variant: Variant,
    dukpt_derivation_type: Option<DerivationType>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Emv {
    major_key_derivation_mode: MajorKeyMode,
    primary_account_number: String,
    pan_sequence_number: String,
    session_key_derivation_mode: SessionMode,
    session_key_derivation_value: SessionValue,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum SessionMode {
    EmvCommonSessionKey,
    MastercardSessionKey,
    Visa,
    #[serde(rename = "EMV2000")]
    Emv2000,
    Amex,
    UnionPay,
}

#[derive(Deserialize)]
enum SessionValue {
    ApplicationCryptogram(String),
    ApplicationTransactionCounter(String),
}

/// How a message is authenticated.
enum How {
    Plain(MacMethod, KeySource, DukptUsage),
    Script(Emv),
}

impl Attributes {
    fn read(self, member: &'static str) -> Result<How> {
        let padding = MessagePadding::Zeros;
        let (retail, cbc) = (MacMethod::Retail { padding }, MacMethod::Cbc { padding });
        let direct = |method| Ok(How::Plain(method, KeySource::Direct, DukptUsage::MacBoth));
        let derived = |method, of: &Dukpt| {
            let usage = match of.dukpt_key_variant {
                Variant::Bidirectional => DukptUsage::MacBoth,
                Variant::Request => DukptUsage::MacRequest,
                Variant::Response => DukptUsage::MacResponse,
            };
            Ok(How::Plain(method, dukpt(&of.key_serial_number, of.dukpt_derivation_type)?, usage))
        };
        match self {
            Attributes::Algorithm(Algorithm::Iso1) => direct(cbc),
            Attributes::Algorithm(Algorithm::Iso3) => direct(retail),
            Attributes::Algorithm(Algorithm::Cmac) => direct(MacMethod::Cmac),
            Attributes::DukptIso9797Algorithm1(of) => derived(cbc, &of),
            Attributes::DukptIso9797Algorithm3(of) => derived(retail, &of),
            Attributes::DukptCmac(of) => derived(MacMethod::Cmac, &of),
            Attributes::EmvMac(of) => Ok(How::Script(of)),
            Attributes::Algorithm(Algorithm::Hmac) => Err(not_served(member, "HMAC")),
            Attributes::Algorithm(Algorithm::As2805) => Err(not_served(member, "AS 2805")),
        }
    }
}

impl Emv {
    /// The card, and how its key becomes that of the transaction.
    fn read(&self) -> Result<(EmvCard, SessionKey)> {
        let member = "SessionKeyDerivationMode";
        let session_key = match (self.session_key_derivation_mode, &self.session_key_derivation_value) {
            (
                SessionMode::EmvCommonSessionKey | SessionMode::MastercardSessionKey,
                SessionValue::ApplicationCryptogram(text),
            ) => SessionKey::Cryptogram { cryptogram: bytes("ApplicationCryptogram", text)? },
            (SessionMode::Visa, SessionValue::ApplicationTransactionCounter(text)) => {
                SessionKey::VisaScript { counter: counter(text)? }
            }
            (SessionMode::Emv2000 | SessionMode::Amex | SessionMode::UnionPay, _) => {
                return Err(not_served(member, "this derivation for scripts"));
            }
            _ => {
                let wrong = "Visa derives from the counter, the others from the cryptogram";
                return Err(Exception::Invalid("SessionKeyDerivationValue", wrong.into()));
            }
        };
        let mode = self.major_key_derivation_mode;
        Ok((card(mode, &self.primary_account_number, &self.pan_sequence_number)?, session_key))
    }
}

/// What a request asks for: the length of a MAC may depend on the key.
enum Asked {
    Generate { input: MacInput, length: Option<u8> },
    Command(Command),
}

struct Mac {
    key: KeyId,
    asked: Asked,
}

fn message(text: &str) -> Result<Vec<u8>> {
    hex("MessageData", text, 1..=MOST)
}

/// Reads a request for a MAC.
pub(super) fn read_generate(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Generate = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let message = message(&request.message_data)?;
    let length = request.mac_length.map(|length| within("MacLength", length, 4..=OF_AES)).transpose()?;
    let asked = match request.generation_attributes.read("GenerationAttributes")? {
        How::Plain(method, key, usage) => {
            Asked::Generate { input: MacInput { method, key, usage, message }, length }
        }
        How::Script(emv) => {
            let length = within("MacLength", length.unwrap_or(OF_TDES), 4..=OF_TDES)?;
            let (card, session_key) = emv.read()?;
            let command = GenerateScriptMac { card, session_key, message, length };
            Asked::Command(Command::GenerateScriptMac(command))
        }
    };
    Ok(Box::new(Mac { key, asked }))
}

/// Reads a request to verify a MAC.
pub(super) fn read_verify(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Verify = members::read(body)?;
    let key = members::key("KeyIdentifier", &request.key_identifier)?;
    let message = message(&request.message_data)?;
    let mac = hex("Mac", &request.mac, 4..=OF_AES.into())?;
    if request.mac_length.is_some_and(|length| usize::from(length) != mac.len()) {
        return Err(Exception::Invalid("MacLength", "Mac has another length, counted in bytes".into()));
    }
    let command = match request.verification_attributes.read("VerificationAttributes")? {
        How::Plain(method, source, usage) => {
            let input = MacInput { method, key: source, usage, message };
            Command::VerifyMac(VerifyMac { input, mac })
        }
        How::Script(emv) => {
            let (card, session_key) = emv.read()?;
            Command::VerifyScriptMac(VerifyScriptMac { card, session_key, message, mac })
        }
    };
    Ok(Box::new(Mac { key, asked: Asked::Command(command) }))
}

impl Task for Mac {
    fn keys(&self) -> Vec<KeyId> {
        vec![self.key.clone()]
    }

    fn work(&self, keys: &[Key]) -> Result<Work> {
        let (input, length) = match &self.asked {
            Asked::Command(command) => return Ok(Work::pay(command.clone())),
            Asked::Generate { input, length } => (input.clone(), *length),
        };
        let is_aes = match &input.key {
            KeySource::Dukpt(dukpt) => dukpt.working.cipher().starts_with("aes"),
            KeySource::Direct => keys.iter().all(|key| key.info.properties.cipher.starts_with("aes")),
        };
        let length = length.unwrap_or(if is_aes { OF_AES } else { OF_TDES });
        Ok(Work::pay(Command::GenerateMac(GenerateMac { input, length })))
    }

    fn failure(&self) -> Exception {
        Exception::NotVerified(NotVerified::Mac)
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::new();
        let verifies =
            |command: &Command| matches!(command, Command::VerifyMac(_) | Command::VerifyScriptMac(_));
        if !matches!(&self.asked, Asked::Command(command) if verifies(command)) {
            answer.insert("Mac".into(), ::hex::encode_upper(outcome).into());
        }
        keys.iter().for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}
