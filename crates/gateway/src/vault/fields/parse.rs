//! Reads a body in one pass. The memory for it is bounded by the number of items, and by the bytes of texts
//! with escapes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use zeroize::Zeroizing;

use super::{Field, MAX_ITEMS, Object};
use crate::failure::Failure;

/// The field with the items of a batch, and the names of their fields.
const BATCH: &str = "batch_input";
const OF_ITEMS: &[&str] = &[
    "plaintext",
    "ciphertext",
    "associated_data",
    "context",
    "nonce",
    "key_version",
    "reference",
    "value",
    "transformation",
    "tweak",
    "input",
    "hmac",
    "signature",
    "cmac",
];
/// The most names of unknown fields that are told, and the most characters of each.
const MAX_UNKNOWN: usize = 16;
const MAX_CHARACTERS: usize = 64;
/// The most texts of an array.
const MAX_TEXTS: usize = 256;

/// What was read.
#[derive(Default)]
pub(super) struct Parsed {
    is_object: bool,
    pub(super) fields: Object,
    /// The items of a batch, if it is one.
    pub(super) items: Option<Vec<Object>>,
    /// How many more there are than a batch may have.
    pub(super) too_many: usize,
    pub(super) batch_is_wrong: Option<&'static str>,
    pub(super) unknown: Vec<String>,
}

/// Reads a body.
pub(super) fn parse(
    mut body: Zeroizing<Vec<u8>>,
    known: &'static [&'static str],
) -> Result<(Zeroizing<String>, Parsed), Failure> {
    if body.trim_ascii().is_empty() {
        return Ok(Default::default());
    }
    let wrong = |what: String| Failure::Bad(format!("failed to parse JSON input: {what}"));
    let text = String::from_utf8(std::mem::take(&mut *body)).map_err(|e| {
        // Its bytes are wiped.
        drop(Zeroizing::new(e.into_bytes()));
        wrong("it is no UTF-8".into())
    })?;
    let text = Zeroizing::new(text);
    let mut parsed = Parsed::default();
    let mut from = serde_json::Deserializer::from_str(&text);
    let whole = Value { base: text.as_ptr() as usize, place: Place::Whole(known), parsed: &mut parsed };
    let read = whole.deserialize(&mut from).and_then(|_| from.end());
    // The error of the library names a place, and for some mistakes what stands there.
    read.map_err(|e| wrong(format!("line {}, column {}", e.line(), e.column())))?;
    match parsed.is_object {
        true => Ok((text, parsed)),
        false => Err(wrong("it is no object".into())),
    }
}

/// Where in the body a value is, and so what it may be.
#[derive(Clone, Copy)]
enum Place {
    /// The body itself, with the names of its fields.
    Whole(&'static [&'static str]),
    Batch,
    Item,
    /// A field of the body, which may be an array of texts.
    Field,
    /// One of these texts, or a field of an item.
    Plain,
}

/// Reads a value. What may not be there is skipped.
struct Value<'p> {
    /// Where the body begins in memory: a text that stands in it as it is becomes a range.
    base: usize,
    place: Place,
    parsed: &'p mut Parsed,
}

impl Value<'_> {
    fn at(&mut self, place: Place) -> Value<'_> {
        Value { base: self.base, place, parsed: self.parsed }
    }

    /// The fields of an object. If a name occurs several times, the last one counts, as in Vault.
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        known: &'static [&'static str],
        mut from: A,
    ) -> Result<Object, A::Error> {
        let mut object = Object::new();
        let is_whole = matches!(self.place, Place::Whole(_));
        loop {
            let unknown = is_whole.then_some(&mut self.parsed.unknown);
            let Some(key) = from.next_key_seed(Key { known, unknown })? else { return Ok(object) };
            match key {
                Some(BATCH) => self.batch(&mut from)?,
                Some(name) => {
                    let place = if is_whole { Place::Field } else { Place::Plain };
                    let field = from.next_value_seed(self.at(place))?;
                    object.retain(|(other, _)| *other != name);
                    object.push((name, field));
                }
                None => drop(from.next_value::<IgnoredAny>()?),
            }
        }
    }

    fn batch<'de, A: MapAccess<'de>>(&mut self, from: &mut A) -> Result<(), A::Error> {
        (self.parsed.items, self.parsed.too_many, self.parsed.batch_is_wrong) = (None, 0, None);
        let field = from.next_value_seed(self.at(Place::Batch))?;
        if self.parsed.items.is_none() && !matches!(field, Field::Null) {
            self.parsed.batch_is_wrong = Some("it is no array");
        }
        Ok(())
    }

    fn items<'de, A: SeqAccess<'de>>(&mut self, mut from: A) -> Result<(), A::Error> {
        let mut items = Vec::new();
        loop {
            if items.len() == MAX_ITEMS {
                self.parsed.too_many = skip(from)?;
                break;
            }
            let Some(_) = from.next_element_seed(self.at(Place::Item))? else { break };
            match self.parsed.items.take().and_then(|mut one| one.pop()) {
                Some(item) => items.push(item),
                None => {
                    self.parsed.batch_is_wrong = Some("an item is no object");
                    skip(from)?;
                    break;
                }
            }
        }
        self.parsed.items = Some(items);
        Ok(())
    }

    fn texts<'de, A: SeqAccess<'de>>(&mut self, mut from: A) -> Result<Field, A::Error> {
        let mut texts = Vec::new();
        while let Some(field) = from.next_element_seed(self.at(Place::Plain))? {
            if texts.len() == MAX_TEXTS || !matches!(field, Field::Text(_) | Field::Escaped(_)) {
                skip(from)?;
                return Ok(Field::Other);
            }
            texts.push(field);
        }
        Ok(Field::Texts(texts))
    }
}

/// Skips the rest of an array, and counts it.
fn skip<'de, A: SeqAccess<'de>>(mut from: A) -> Result<usize, A::Error> {
    let mut count = 0;
    while from.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Field, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field, E> {
        Ok(Field::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Field, E> {
        Ok(Field::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field, E> {
        Ok(i64::try_from(number).map_or(Field::Number(false), Field::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Field, E> {
        Ok(Field::Number(number == 0.0))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Field, E> {
        let start = text.as_ptr() as usize - self.base;
        Ok(Field::Text(start..start + text.len()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Escaped(Zeroizing::new(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut from: A) -> Result<Field, A::Error> {
        match self.place {
            Place::Whole(known) => {
                self.parsed.is_object = true;
                self.parsed.fields = self.object(known, from)?;
            }
            Place::Item => self.parsed.items = Some(vec![self.object(OF_ITEMS, from)?]),
            _ => while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {},
        }
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, from: A) -> Result<Field, A::Error> {
        match self.place {
            Place::Batch => self.items(from).map(|()| Field::Other),
            Place::Field => self.texts(from),
            _ => skip(from).map(|_| Field::Other),
        }
    }
}

/// Reads the name of a field: one that is known, or none. Some of those that are unknown are noted.
struct Key<'p> {
    known: &'static [&'static str],
    unknown: Option<&'p mut Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let known = self.known.iter().find(|known| **known == name).copied();
        if let (None, Some(unknown)) = (known, self.unknown)
            && unknown.len() < MAX_UNKNOWN
        {
            unknown.push(name.chars().take(MAX_CHARACTERS).collect());
        }
        Ok(known)
    }
}
