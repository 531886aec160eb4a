//! The fields of a request's body. Vault takes numbers and truth values also as texts, which its own program sends.

use serde_json::{Map, Value};
use zeroize::Zeroize;

use crate::failure::Failure;

/// The most items of a batch: with its answer each takes more memory than it has bytes in the request.
const MOST_ITEMS: usize = 50_000;

/// The fields of a body, or of an item of a batch. They are wiped when dropped, since some are plaintexts.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body; an empty one has no fields.
    pub(super) fn parse(body: &[u8]) -> Result<Fields, Failure> {
        if body.trim_ascii().is_empty() {
            return Ok(Fields::default());
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(mut other) => {
                wipe(&mut other);
                Err(Failure::Bad("failed to parse JSON input: it is no object".into()))
            }
            // The error of the library names a place, and for some mistakes what stands there.
            Err(e) => Err(Failure::Bad(format!(
                "failed to parse JSON input: line {}, column {}",
                e.line(),
                e.column()
            ))),
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::Bad(format!("the field {name} is no text"))),
        }
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        let wrong = || Failure::Bad(format!("the field {name} is no number"));
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => number.as_i64().map(Some).ok_or_else(wrong),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => text.parse().map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// A truth value.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        let of = |text: &str| match text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
            _ => None,
        };
        let read = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::Number(number)) => of(&number.to_string()),
            Some(Value::String(text)) => of(text),
            Some(_) => None,
        };
        read.map(Some).ok_or_else(|| Failure::Bad(format!("the field {name} is neither true nor false")))
    }

    /// Whether a duration is set, in any form: `24h`, `86400`.
    pub(super) fn is_some_duration(&self, name: &str) -> bool {
        match self.0.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::String(text)) => {
                !text.trim_end_matches(['s', 'm', 'h', 'd']).chars().all(|c| c == '0')
            }
            Some(_) => true,
        }
    }

    /// The items of a batch, if it is one.
    pub(super) fn batch(&self) -> Result<Option<Vec<Fields>>, Failure> {
        let items = match self.0.get("batch_input") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) if items.is_empty() => {
                return Err(Failure::Bad("missing batch input to process".into()));
            }
            Some(Value::Array(items)) if items.len() > MOST_ITEMS => {
                return Err(Failure::Bad(format!(
                    "a batch has at most {MOST_ITEMS} items, and this one has {}",
                    items.len()
                )));
            }
            Some(Value::Array(items)) => items,
            Some(_) => return Err(Failure::Bad("failed to parse batch input: it is no array".into())),
        };
        let fields = |item: &Value| match item {
            Value::Object(fields) => Ok(Fields(fields.clone())),
            _ => Err(Failure::Bad("failed to parse batch input: an item is no object".into())),
        };
        items.iter().map(fields).collect::<Result<_, _>>().map(Some)
    }

    /// The names of fields that are not among these.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<String> {
        self.0.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect()
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        self.0.values_mut().for_each(wipe);
    }
}

/// Wipes all texts of a document.
pub(super) fn wipe(document: &mut Value) {
    match document {
        Value::String(text) => text.zeroize(),
        Value::Array(all) => all.iter_mut().for_each(wipe),
        Value::Object(all) => all.values_mut().for_each(wipe),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::parse(text.as_bytes()).expect("an object")
    }

    #[test]
    fn a_batch_has_a_limit() {
        let batch =
            |items: usize| fields(&format!("{{\"batch_input\": [{}{{}}]}}", "{},".repeat(items - 1))).batch();
        assert_eq!(batch(MOST_ITEMS).expect("as many").expect("a batch").len(), MOST_ITEMS);
        assert!(batch(MOST_ITEMS + 1).is_err());
    }

    #[test]
    fn numbers_and_truth_values_may_be_texts() {
        let all = fields(r#"{"a": 3, "b": "3", "c": "", "d": null, "e": "x", "f": 1.5, "g": [], "h": "-2"}"#);
        let number = |name| all.number(name).ok();
        assert_eq!(
            ["a", "b", "c", "d", "z", "h"].map(number),
            [Some(Some(3)), Some(Some(3)), Some(None), Some(None), Some(None), Some(Some(-2))]
        );
        assert_eq!(["e", "f", "g"].map(number), [None; 3]);
        let all = fields(r#"{"a": true, "b": "true", "c": 0, "d": "F", "e": "yes", "f": {}, "g": 2}"#);
        let flag = |name| all.flag(name).ok();
        assert_eq!(["a", "b", "c", "d"].map(flag), [true, true, false, false].map(|f| Some(Some(f))));
        assert_eq!(["e", "f", "g"].map(flag), [None; 3]);
    }

    #[test]
    fn a_body_is_an_object_or_empty_and_errors_show_nothing_of_it() {
        assert!(Fields::parse(b"").is_ok() && Fields::parse(b" \n").is_ok());
        for wrong in ["[]", "secret", "{\"secret\"}", "\"secret\"", "{\"plaintext\": secret}", "{} secret"] {
            let Err(Failure::Bad(told)) = Fields::parse(wrong.as_bytes()) else { panic!("{wrong}") };
            assert!(told.starts_with("failed to parse JSON input") && !told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn only_a_duration_of_zero_is_none() {
        let all = fields(
            r#"{"a": 0, "b": "0", "c": "0s", "d": null, "e": 60, "f": "24h", "g": "0h30m", "h": true}"#,
        );
        let set = |name| all.is_some_duration(name);
        assert_eq!(["a", "b", "c", "d", "z"].map(set), [false; 5]);
        assert_eq!(["e", "f", "g", "h"].map(set), [true; 4]);
    }
}
