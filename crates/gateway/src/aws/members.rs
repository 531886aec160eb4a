//! Members of requests: JSON, and texts of digits within the limits of the API's model. What is wrong with
//! one is told without what it says.

use std::ops::RangeInclusive;

use polyclave_payments::{Digits, Pan};
use serde::de::DeserializeOwned;

use super::error::{Exception, Result, not_served};
use super::keys::KeyId;
use crate::signed::json;

/// Reads a request. Members that the model does not have are refused, and so are unions with none or several
/// members: they might change what the request means.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    json::read(body).map_err(Exception::Malformed)
}

/// Hexadecimal digits, as many as these bytes have.
pub(super) fn hex(member: &'static str, text: &str, bytes: RangeInclusive<usize>) -> Result<Vec<u8>> {
    let (least, most) = (2 * bytes.start(), 2 * bytes.end());
    let wrong = || {
        let length = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Exception::Invalid(member, format!("{length} hexadecimal digits are expected, two for each byte"))
    };
    let read = hex::decode(text).map_err(|_| wrong())?;
    if bytes.contains(&read.len()) { Ok(read) } else { Err(wrong()) }
}

/// Decimal digits.
pub(super) fn digits(member: &'static str, text: &str, lengths: RangeInclusive<usize>) -> Result<Digits> {
    let wrong = || {
        let (least, most) = (lengths.start(), lengths.end());
        let length = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Exception::Invalid(member, format!("{length} digits are expected"))
    };
    let read: Digits = text.parse().map_err(|_| wrong())?;
    if lengths.contains(&read.len()) { Ok(read) } else { Err(wrong()) }
}

/// A number of a card.
pub(super) fn pan(text: &str) -> Result<Pan> {
    text.parse().map_err(|e| Exception::Invalid("PrimaryAccountNumber", e))
}

/// A number within limits.
pub(super) fn within(member: &'static str, number: u8, limits: RangeInclusive<u8>) -> Result<u8> {
    match limits.contains(&number) {
        true => Ok(number),
        false => {
            let (least, most) = (limits.start(), limits.end());
            Err(Exception::Invalid(member, format!("a number from {least} to {most} is expected")))
        }
    }
}

/// A key.
pub(super) fn key(member: &'static str, text: &str) -> Result<KeyId> {
    KeyId::read(member, text)
}

/// Refuses a member that is known and not served.
pub(super) fn absent<T>(member: &'static str, value: &Option<T>, what: &str) -> Result<()> {
    if value.is_some() { Err(not_served(member, what)) } else { Ok(()) }
}

/// Why keys that come with a request are not served.
pub(super) const WRAPPED_KEY: &str =
    "a key that comes with the request, and not from the nodes, would be used and forgotten; this";

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "PascalCase", deny_unknown_fields)]
    struct Asked {
        #[allow(dead_code, reason = "it is only read")]
        pin: String,
        #[allow(dead_code, reason = "it is only read")]
        how: Option<Which>,
    }

    #[derive(Debug, Deserialize)]
    enum Which {
        One(#[allow(dead_code, reason = "it is only read")] u8),
        Other {},
    }

    #[test]
    fn unions_have_one_known_member_and_nothing_that_was_said_is_repeated() {
        for right in [r#"{"Pin":"hush"}"#, r#"{"Pin":"hush","How":{"One":1}}"#, r#"{"Pin":"a","How":null}"#] {
            assert!(read::<Asked>(right.as_bytes()).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "{}",
            "[]",
            "hush",
            r#"{"Pin":"hush""#,
            r#"{"Pin":["hush"]}"#,
            r#"{"Pin":"hush","Pin":"hush"}"#,
            r#"{"Pin":"a","Hush":"hush"}"#,
            r#"{"Pin":"a","How":{}}"#,
            r#"{"Pin":"a","How":"hush"}"#,
            r#"{"Pin":"a","How":{"One":"hush"}}"#,
            r#"{"Pin":"a","How":{"hush":1}}"#,
            r#"{"Pin":"a","How":{"One":300}}"#,
            r#"{"Pin":"a","How":{"One":1,"Other":{}}}"#,
            r#"{"Pin":"a"} hush"#,
        ] {
            let Err(Exception::Malformed(message)) = read::<Asked>(wrong.as_bytes()) else {
                panic!("{wrong} is taken");
            };
            assert!(!message.to_lowercase().contains("hush"), "{message}");
        }
    }

    #[test]
    fn digits_are_within_their_limits() {
        assert!(hex("A", "00Ff", 1..=2).is_ok() && hex("A", "000", 1..=2).is_err());
        assert!(hex("A", "", 1..=2).is_err() && hex("A", "000000", 1..=2).is_err());
        assert!(digits("A", "1234", 4..=4).is_ok() && digits("A", "12a4", 4..=4).is_err());
        assert!(digits("A", "123", 4..=12).is_err() && within("A", 7, 0..=6).is_err());
        let Err(Exception::Invalid("A", message)) = hex("A", "secret", 8..=16) else { panic!("it is taken") };
        assert!(message.starts_with("16 to 32 hexadecimal") && !message.contains("secret"));
    }
}
