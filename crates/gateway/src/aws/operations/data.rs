//! `EncryptData`, `DecryptData` and `ReEncryptData`.
//!
//! A key for data in payments serves commands, which take the right `pay`. Another key of the nodes, if it
//! was made for ECB, serves `Symmetric` with the rights `encrypt` and `decrypt`. The gateway chains blocks.

use polyclave_api::{KeyInfo, Right};
use polyclave_client::{Client, Padding};
use polyclave_payments::commands::{DecryptData, EncryptData, ReencryptData};
use polyclave_payments::{Command, DataKey, DataMode, DukptUsage, KeySource};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::pin::{DerivationType, Variant, dukpt};
use crate::aws::error::{Exception, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, WRAPPED_KEY, absent, hex};
use crate::aws::task::{Outcome, Task, Work, of_key};

/// The most bytes of data, as the API has them.
const MOST_PLAIN: usize = 2048;
const MOST_ENCRYPTED: usize = 2112;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Encrypt {
    plain_text: String,
    encryption_attributes: Attributes,
    wrapped_key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Decrypt {
    cipher_text: String,
    decryption_attributes: Attributes,
    wrapped_key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Reencrypt {
    outgoing_key_identifier: String,
    cipher_text: String,
    incoming_encryption_attributes: Attributes,
    outgoing_encryption_attributes: Attributes,
    incoming_wrapped_key: Option<IgnoredAny>,
    outgoing_wrapped_key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
enum Attributes {
    Symmetric(Symmetric),
    Dukpt(Dukpt),
    Asymmetric(IgnoredAny),
    Emv(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Symmetric {
    mode: Mode,
    initialization_vector: Option<String>,
    padding_type: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Deserialize)]
enum Mode {
    #[serde(rename = "ECB")]
    Ecb,
    #[serde(rename = "CBC")]
    Cbc,
    #[serde(rename = "CFB", alias = "CFB1", alias = "CFB8", alias = "CFB64", alias = "CFB128", alias = "OFB")]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Dukpt {
    key_serial_number: String,
    mode: Option<Mode>,
    dukpt_key_derivation_type: Option<DerivationType>,
    dukpt_key_variant: Option<Variant>,
    initialization_vector: Option<String>,
}

/// How data is encrypted, as far as it is known without the key.
#[derive(Clone)]
struct How {
    /// In CBC; otherwise in ECB.
    chained: bool,
    /// For CBC. Zeros if it is left out.
    iv: Option<Vec<u8>>,
    key: KeySource,
    usage: DukptUsage,
}

impl Attributes {
    fn read(&self, member: &'static str) -> Result<How> {
        let (mode, iv, key, usage) = match self {
            Attributes::Symmetric(of) => {
                absent("PaddingType", &of.padding_type, "padding of symmetric keys")?;
                (of.mode, &of.initialization_vector, KeySource::Direct, DukptUsage::DataBoth)
            }
            Attributes::Dukpt(of) => {
                let usage = match of.dukpt_key_variant.unwrap_or(Variant::Bidirectional) {
                    Variant::Bidirectional => DukptUsage::DataBoth,
                    Variant::Request => DukptUsage::DataRequest,
                    Variant::Response => DukptUsage::DataResponse,
                };
                let key = dukpt(&of.key_serial_number, of.dukpt_key_derivation_type)?;
                (of.mode.unwrap_or(Mode::Cbc), &of.initialization_vector, key, usage)
            }
            Attributes::Asymmetric(_) => return Err(not_served(member, "Asymmetric")),
            Attributes::Emv(_) => return Err(not_served(member, "Emv")),
        };
        let chained = match mode {
            Mode::Ecb => false,
            Mode::Cbc => true,
            Mode::Other => return Err(not_served("Mode", "a mode other than ECB and CBC")),
        };
        let iv = iv.as_deref().map(|text| hex("InitializationVector", text, 8..=16)).transpose()?;
        if iv.is_some() && !chained {
            let wrong = "ECB has none";
            return Err(Exception::Invalid("InitializationVector", wrong.into()));
        }
        Ok(How { chained, iv, key, usage })
    }
}

impl How {
    /// Bytes of a block under a key.
    fn block(&self, key: &KeyInfo) -> usize {
        let cipher = match &self.key {
            KeySource::Direct => key.properties.cipher.as_str(),
            KeySource::Dukpt(dukpt) => dukpt.working.cipher(),
        };
        if cipher.starts_with("3des") { 8 } else { 16 }
    }

    fn iv(&self, key: &KeyInfo) -> Vec<u8> {
        self.iv.clone().unwrap_or_else(|| vec![0; self.block(key)])
    }

    fn for_command(&self, key: &KeyInfo) -> DataKey {
        let mode = if self.chained { DataMode::Cbc { iv: self.iv(key) } } else { DataMode::Ecb };
        DataKey { mode, key: self.key.clone(), usage: self.usage }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

struct Crypt {
    key: KeyId,
    direction: Direction,
    how: How,
    data: Outcome,
}

/// Reads a request of `EncryptData`.
pub(super) fn read_encrypt(key: &str, body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Encrypt = members::read(body)?;
    absent("WrappedKey", &request.wrapped_key, WRAPPED_KEY)?;
    let key = members::key("KeyIdentifier", key)?;
    let data = Zeroizing::new(hex("PlainText", &request.plain_text, 1..=MOST_PLAIN)?);
    let how = request.encryption_attributes.read("EncryptionAttributes")?;
    Ok(Box::new(Crypt { key, direction: Direction::Encrypt, how, data }))
}

/// Reads a request of `DecryptData`.
pub(super) fn read_decrypt(key: &str, body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Decrypt = members::read(body)?;
    absent("WrappedKey", &request.wrapped_key, WRAPPED_KEY)?;
    let key = members::key("KeyIdentifier", key)?;
    let data = Zeroizing::new(hex("CipherText", &request.cipher_text, 1..=MOST_ENCRYPTED)?);
    let how = request.decryption_attributes.read("DecryptionAttributes")?;
    Ok(Box::new(Crypt { key, direction: Direction::Decrypt, how, data }))
}

impl Task for Crypt {
    fn keys(&self) -> Vec<KeyId> {
        vec![self.key.clone()]
    }

    fn work(&self, keys: &[Key]) -> Result<Work> {
        let Some(Key { info, .. }) = keys.first() else { return Err(Exception::NoKey(String::new())) };
        let for_payments = info.properties.purpose().is_some();
        if for_payments || self.how.key != KeySource::Direct {
            let (key, data) = (self.how.for_command(info), self.data.to_vec());
            return Ok(Work::pay(match self.direction {
                Direction::Encrypt => Command::EncryptData(EncryptData { key, data }),
                Direction::Decrypt => Command::DecryptData(DecryptData { key, data }),
            }));
        }
        let (how, data, direction) = (self.how.clone(), self.data.clone(), self.direction);
        let right = if direction == Direction::Encrypt { Right::Encrypt } else { Right::Decrypt };
        Ok(Work::Data(right, Box::new(move |client, info| crypt(client, info, &how, direction, &data))))
    }

    fn failure(&self) -> Exception {
        Exception::Malformed("the data is not what it should be".into())
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let name = if self.direction == Direction::Encrypt { "CipherText" } else { "PlainText" };
        let mut answer = Map::from_iter([(name.to_owned(), ::hex::encode_upper(outcome).into())]);
        keys.iter().for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}

/// Data under a key that was made for ECB.
fn crypt(
    client: &Client,
    info: &KeyInfo,
    how: &How,
    direction: Direction,
    data: &[u8],
) -> polyclave_client::Result<Outcome> {
    let (key, iv) = (client.key_with_info(info), how.iv(info));
    let blocks = if how.chained { key.cbc_by_client().initial(&iv) } else { key.ecb() };
    let blocks = blocks.padding(Padding::None);
    match direction {
        Direction::Encrypt => blocks.encrypt(data).map(Zeroizing::new),
        Direction::Decrypt => blocks.decrypt(data),
    }
}

struct Again {
    keys: Vec<KeyId>,
    incoming: How,
    outgoing: How,
    data: Vec<u8>,
}

/// Reads a request of `ReEncryptData`.
pub(super) fn read_reencrypt(key: &str, body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Reencrypt = members::read(body)?;
    absent("IncomingWrappedKey", &request.incoming_wrapped_key, WRAPPED_KEY)?;
    absent("OutgoingWrappedKey", &request.outgoing_wrapped_key, WRAPPED_KEY)?;
    let keys = vec![
        members::key("IncomingKeyIdentifier", key)?,
        members::key("OutgoingKeyIdentifier", &request.outgoing_key_identifier)?,
    ];
    let data = hex("CipherText", &request.cipher_text, 1..=MOST_ENCRYPTED)?;
    let incoming = request.incoming_encryption_attributes.read("IncomingEncryptionAttributes")?;
    let outgoing = request.outgoing_encryption_attributes.read("OutgoingEncryptionAttributes")?;
    Ok(Box::new(Again { keys, incoming, outgoing, data }))
}

impl Task for Again {
    fn keys(&self) -> Vec<KeyId> {
        self.keys.clone()
    }

    fn work(&self, keys: &[Key]) -> Result<Work> {
        let [incoming, outgoing] = keys else { return Err(Exception::NoKey(String::new())) };
        let incoming = self.incoming.for_command(&incoming.info);
        let outgoing = self.outgoing.for_command(&outgoing.info);
        let data = self.data.clone();
        Ok(Work::pay(Command::ReencryptData(ReencryptData { incoming, outgoing, data })))
    }

    fn failure(&self) -> Exception {
        Exception::Malformed("the data is not what it should be".into())
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::from_iter([("CipherText".to_owned(), ::hex::encode_upper(outcome).into())]);
        keys.iter().skip(1).for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}
