//! JSON of strangers, read in one way only. Two programs may read an object differently that has two members
//! of one name (RFC 8725, section 2.8), so none is taken, however deep it is.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Objects and arrays within each other. Tokens of Kubernetes have three.
const MAX_DEPTH: usize = 16;

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    /// It is something else.
    #[error("is no JSON object")]
    NoObject,
    /// Two meanings.
    #[error("has two members of one name")]
    Twice,
    /// More than any token has.
    #[error("has more than {MAX_DEPTH} objects and arrays within each other")]
    Deep,
}

/// Reads an object. The memory is bounded by the bytes.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>, Flaw> {
    let mut flaw = Flaw::NoObject;
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let read = Strict { left: MAX_DEPTH, flaw: &mut flaw }.deserialize(&mut from);
    match read.and_then(|value| from.end().map(|()| value)) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err(flaw),
    }
}

/// Reads a value.
struct Strict<'f> {
    /// Objects and arrays that may still be within it.
    left: usize,
    flaw: &'f mut Flaw,
}

impl Strict<'_> {
    fn within<E: Error>(&mut self) -> Result<Strict<'_>, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Strict { left, flaw: self.flaw }),
            None => Err(self.refuse(Flaw::Deep)),
        }
    }

    fn refuse<E: Error>(&mut self, flaw: Flaw) -> E {
        *self.flaw = flaw;
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = seq.next_element_seed(self.within()?)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.within()?)?;
            if members.insert(name, value).is_some() {
                return Err(self.refuse(Flaw::Twice));
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_it_is() {
        let text = r#"{"a": [1, -2, 1.5, true, null, "x\u0041"], "b": {"a": {}}}"#;
        let expected = serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(object(text.as_bytes()).map(Value::Object), Ok(expected));
    }

    #[test]
    fn what_has_two_meanings_or_is_too_deep_or_is_no_object_is_refused() {
        let nested = |deep: usize| format!("{{\"a\":{}{}}}", "[".repeat(deep), "]".repeat(deep));
        for (text, flaw) in [
            (r#"{"a": 1, "a": 1}"#.to_owned(), Flaw::Twice),
            (r#"{"a": 1, "\u0061": 1}"#.into(), Flaw::Twice),
            (r#"{"x": [{"a": {"b": 1, "b": 2}}]}"#.into(), Flaw::Twice),
            (nested(MAX_DEPTH), Flaw::Deep),
            (nested(100_000), Flaw::Deep),
            (r#"["a"]"#.into(), Flaw::NoObject),
            (r#""a""#.into(), Flaw::NoObject),
            (r#"{"a": 1} {}"#.into(), Flaw::NoObject),
            (r#"{"a": 1"#.into(), Flaw::NoObject),
            (r#"{"a": "\ud800"}"#.into(), Flaw::NoObject),
            (String::new(), Flaw::NoObject),
        ] {
            assert_eq!(object(text.as_bytes()), Err(flaw), "{}", &text[..text.len().min(40)]);
        }
        assert!(object(nested(MAX_DEPTH - 1).as_bytes()).is_ok());
        assert_eq!(object(b"{\"a\": \"\xff\"}"), Err(Flaw::NoObject));
    }
}
