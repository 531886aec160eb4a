//! Values of options that several commands take.

use anyhow::{Result, bail, ensure};
use polyclave_cipher::{Cipher, keyed};

/// Finds a cipher by its name, or returns an error that lists the names.
pub fn cipher(name: &str) -> Result<Cipher> {
    match keyed::find(name) {
        Some(cipher) => Ok(cipher),
        None => bail!("there is no cipher '{name}'; choose one of {}", keyed::names().join(", ")),
    }
}

/// Parses hexadecimal. The error says what was wrong.
pub fn hexadecimal(what: &str, text: &str) -> Result<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if let Some((at, c)) = digits.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit()) {
        bail!("{what} has '{c}' at position {}, which is not a hex digit", at + 1);
    }
    let count = digits.len();
    ensure!(count.is_multiple_of(2), "{what} has {count} hex digits; every byte needs two");
    Ok(hex::decode(digits)?)
}
