//! The data of an answer. What is large in it is written into the answer's text from its bytes, without a
//! text of its own in between.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use zeroize::{Zeroize, Zeroizing};

use super::ciphertext;
use crate::failure::Failure;

/// The data of an answer.
pub(crate) enum Data {
    Fields(Map<String, Value>),
    Message(Message),
    /// The results of a batch.
    Results(Vec<Outcome>),
}

/// What is told of one message.
pub(super) type Message = Vec<(&'static str, Datum)>;

/// The outcome of one item of a batch, with what its sender calls it.
pub(super) type Outcome = (Option<String>, Result<Message, Failure>);

/// One thing that is told of a message.
pub(crate) enum Datum {
    Number(u32),
    Flag(bool),
    Text(Zeroizing<String>),
    /// In base64.
    Plaintext(Zeroizing<Vec<u8>>),
    /// A ciphertext or a code, as text with the version of its key.
    Versioned(u32, Vec<u8>),
}

impl From<Map<String, Value>> for Data {
    fn from(fields: Map<String, Value>) -> Data {
        Data::Fields(fields)
    }
}

impl From<Message> for Data {
    fn from(message: Message) -> Data {
        Data::Message(message)
    }
}

impl Data {
    /// At least the bytes of its text, if few characters have to be escaped.
    pub(super) fn room(&self) -> usize {
        match self {
            Data::Fields(fields) => fields.iter().map(|(name, value)| name.len() + of_value(value) + 8).sum(),
            Data::Message(message) => of_message(message),
            Data::Results(all) => 32 + all.iter().map(of_outcome).sum::<usize>(),
        }
    }
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 16,
        Value::Array(all) => 16 + all.iter().map(|one| of_value(one) + 1).sum::<usize>(),
        Value::Object(all) => {
            16 + all.iter().map(|(name, one)| name.len() + of_value(one) + 8).sum::<usize>()
        }
        _ => 32,
    }
}

fn of_message(message: &Message) -> usize {
    let of = |datum: &Datum| match datum {
        Datum::Number(_) | Datum::Flag(_) => 10,
        Datum::Text(text) => text.len(),
        Datum::Plaintext(bytes) => bytes.len().div_ceil(3) * 4,
        Datum::Versioned(_, bytes) => bytes.len().div_ceil(3) * 4 + 20,
    };
    message.iter().map(|(name, datum)| name.len() + of(datum) + 8).sum()
}

fn of_outcome((reference, outcome): &Outcome) -> usize {
    let text = match outcome {
        Ok(message) => of_message(message),
        Err(_) => 128,
    };
    text + reference.as_ref().map_or(0, String::len) + 24
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Data::Fields(fields) = self {
            fields.values_mut().for_each(wipe);
        }
    }
}

/// Wipes all texts of a document.
fn wipe(document: &mut Value) {
    match document {
        Value::String(text) => text.zeroize(),
        Value::Array(all) => all.iter_mut().for_each(wipe),
        Value::Object(all) => all.values_mut().for_each(wipe),
        _ => {}
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Fields(fields) => fields.serialize(to),
            Data::Message(message) => to.collect_map(message.iter().map(|(name, datum)| (name, datum))),
            Data::Results(all) => {
                let mut map = to.serialize_map(Some(1))?;
                map.serialize_entry("batch_results", &Results(all))?;
                map.end()
            }
        }
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Datum::Number(number) => to.serialize_u32(*number),
            Datum::Flag(flag) => to.serialize_bool(*flag),
            Datum::Text(text) => to.serialize_str(text),
            Datum::Plaintext(bytes) => to.collect_str(&Base64Display::new(bytes, &STANDARD)),
            Datum::Versioned(version, bytes) => to.collect_str(&ciphertext::as_text(*version, bytes)),
        }
    }
}

struct Results<'d>(&'d [Outcome]);

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(OneResult))
    }
}

struct OneResult<'d>(&'d Outcome);

impl Serialize for OneResult<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (reference, outcome) = self.0;
        let mut map = to.serialize_map(None)?;
        match outcome {
            Ok(message) => message.iter().try_for_each(|(name, datum)| map.serialize_entry(name, datum))?,
            Err(failure) => map.serialize_entry("error", &failure.to_string())?,
        }
        if let Some(reference) = reference {
            map.serialize_entry("reference", reference)?;
        }
        map.end()
    }
}
