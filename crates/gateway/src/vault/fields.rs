//! The fields of a request's body. Vault takes numbers and truth values also as texts, which its own program
//! sends.
//!
//! A body is read without a copy of it: a text is a range of the body, unless it has escapes. What the API
//! does not know is skipped, however deep or long it is. So a body takes its own bytes, and a little for each
//! item of a batch.

mod parse;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::failure::Failure;
use parse::Parsed;

/// The most items of a batch.
pub(super) const MAX_ITEMS: usize = 50_000;

/// The fields of a body, or of an item of its batch. They are wiped when dropped, since some are plaintexts.
#[derive(Clone)]
pub(crate) struct Fields {
    body: Arc<Read>,
    item: Option<usize>,
}

/// A body that was read.
struct Read {
    text: Zeroizing<String>,
    parsed: Parsed,
}

/// The fields of one object that the API knows, by their names.
type Object = Vec<(&'static str, Field)>;

/// What a field is.
enum Field {
    Null,
    Flag(bool),
    Integer(i64),
    /// Another number, and whether it is zero.
    Number(bool),
    /// A text without escapes: where in the body it is.
    Text(Range<usize>),
    Escaped(Zeroizing<String>),
    /// An array of texts.
    Texts(Vec<Field>),
    /// Anything else.
    Other,
}

impl Fields {
    /// Reads a body; an empty one has no fields. `known` are the names of its fields.
    pub(super) fn parse(body: Zeroizing<Vec<u8>>, known: &'static [&'static str]) -> Result<Fields, Failure> {
        let (text, parsed) = parse::parse(body, known)?;
        Ok(Fields { body: Arc::new(Read { text, parsed }), item: None })
    }

    fn get(&self, name: &str) -> Option<&Field> {
        let Parsed { fields, items, .. } = &self.body.parsed;
        let object = match self.item {
            None => fields,
            Some(at) => items.as_ref()?.get(at)?,
        };
        object.iter().find(|(of, _)| *of == name).map(|(_, field)| field)
    }

    fn text_of<'f>(&'f self, field: &'f Field) -> Option<&'f str> {
        match field {
            Field::Text(at) => self.body.text.get(at.clone()),
            Field::Escaped(text) => Some(text),
            _ => None,
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.get(name) {
            None | Some(Field::Null) => Ok(None),
            Some(field) => match self.text_of(field) {
                Some(text) => Ok(Some(text)),
                None => Err(Failure::Bad(format!("the field {name} is no text"))),
            },
        }
    }

    /// Some texts: an array of them, or one text with commas.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, Failure> {
        match self.get(name) {
            Some(Field::Texts(all)) => Ok(all.iter().filter_map(|field| self.text_of(field)).collect()),
            _ => Ok(self.text(name)?.map_or_else(Vec::new, |text| text.split(',').map(str::trim).collect())),
        }
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        let wrong = || Failure::Bad(format!("the field {name} is no number"));
        match self.get(name) {
            None | Some(Field::Null) => Ok(None),
            Some(Field::Integer(number)) => Ok(Some(*number)),
            Some(field) => match self.text_of(field).ok_or_else(wrong)? {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|_| wrong()),
            },
        }
    }

    /// A truth value.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        let read = match self.get(name) {
            None | Some(Field::Null) => return Ok(None),
            Some(Field::Flag(flag)) => Some(*flag),
            Some(Field::Integer(number)) => truth(&number.to_string()),
            Some(field) => self.text_of(field).and_then(truth),
        };
        read.map(Some).ok_or_else(|| Failure::Bad(format!("the field {name} is neither true nor false")))
    }

    /// A duration: seconds, or a number with `s`, `m`, `h` or `d`.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, Failure> {
        let wrong = || Failure::Bad(format!("the field {name} is no duration, such as 3600 or 1h"));
        let text = match self.get(name) {
            None | Some(Field::Null) => return Ok(None),
            Some(Field::Integer(seconds)) => seconds.to_string(),
            Some(field) => self.text_of(field).ok_or_else(wrong)?.to_owned(),
        };
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
        let unit = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
        let (number, unit) = unit.unwrap_or((&text, 1));
        match number.parse::<u32>() {
            Ok(number) => Ok(Some(Duration::from_secs(u64::from(number) * unit))),
            Err(_) if text.is_empty() => Ok(None),
            Err(_) => Err(wrong()),
        }
    }

    /// Whether a duration is set, in any form: `24h`, `86400`.
    pub(super) fn is_some_duration(&self, name: &str) -> bool {
        let is_zero = |text: &str| text.trim_end_matches(['s', 'm', 'h', 'd']).chars().all(|c| c == '0');
        match self.get(name) {
            None | Some(Field::Null | Field::Integer(0) | Field::Number(true)) => false,
            Some(field) => !self.text_of(field).is_some_and(is_zero),
        }
    }

    /// The items of a batch, if it is one.
    pub(super) fn batch(&self) -> Result<Option<Vec<Fields>>, Failure> {
        let Parsed { items, too_many, batch_is_wrong, .. } = &self.body.parsed;
        let wrong = match (items, batch_is_wrong) {
            (_, Some(wrong)) => format!("failed to parse batch input: {wrong}"),
            (None, None) => return Ok(None),
            (Some(items), None) if items.is_empty() => "missing batch input to process".into(),
            (Some(items), None) if *too_many > 0 => {
                let all = items.len() + too_many;
                format!("a batch has at most {MAX_ITEMS} items, and this one has {all}")
            }
            (Some(items), None) => {
                let item = |at| Fields { body: self.body.clone(), item: Some(at) };
                return Ok(Some((0..items.len()).map(item).collect()));
            }
        };
        Err(Failure::Bad(wrong))
    }

    /// How many items it has, if it is a batch.
    pub(super) fn items(&self) -> usize {
        self.body.parsed.items.as_ref().map_or(0, Vec::len)
    }

    /// The names of fields that the API does not know; not all of them if there are many.
    pub(super) fn unknown(&self) -> &[String] {
        &self.body.parsed.unknown
    }
}

/// A truth value as Vault reads it from a text.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}
