//! The body of a signed request as JSON. What is wrong with it is told without what it says.

use serde::Deserialize;

/// Reads a body. An empty one is an object without members.
pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, String> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    // An array of values without names could be read, too.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err("the body is no object of JSON".into());
    }
    serde_json::from_slice(body).map_err(|e| told(&e))
}

/// What is wrong with a text of JSON. The words of the parser may quote it.
fn told(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if !error.is_data() {
        return format!("the body is no JSON, at line {line} column {column}");
    }
    let whole = error.to_string();
    let text = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(text, _)| text);
    let expected = text.rsplit_once("expected ").map(|(_, expected)| expected);
    let wrong = match (text.starts_with("missing field"), expected) {
        (true, _) => text.to_owned(),
        (false, Some(expected)) => {
            format!("a member, or its value, is not as it should be; expected {expected}")
        }
        (false, None) => "a member, or its value, is not as it should be".to_owned(),
    };
    format!("{wrong} (line {line} column {column})")
}
