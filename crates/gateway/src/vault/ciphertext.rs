//! A ciphertext as text: `vault:vV:` and base64 of nonce, ciphertext and tag (of a convergent key: tag and
//! ciphertext), where V is the version of the key. A code of HMAC has the same form.

use std::fmt;

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use crate::failure::Failure;

const PREFIX: &str = "vault:v";

/// The text.
pub(super) fn as_text(version: u32, bytes: &[u8]) -> impl fmt::Display {
    AsText { version, bytes }
}

struct AsText<'b> {
    version: u32,
    bytes: &'b [u8],
}

impl fmt::Display for AsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.version, Base64Display::new(self.bytes, &STANDARD))
    }
}

/// The version and the bytes. What is wrong with a text tells nothing of a key, so each mistake has its own
/// words, as in Vault.
pub(super) fn parse(text: &str) -> Result<(u32, Vec<u8>), Failure> {
    let wrong = |why: &str| Failure::Bad(format!("invalid ciphertext: {why}"));
    let (version, encoded) = versioned(text, "ciphertext")?;
    let bytes = STANDARD.decode(encoded).map_err(|_| wrong("could not decode base64"))?;
    Ok((version, bytes))
}

/// The version of the key, and what stands behind it. `what` says in errors what the text is.
pub(super) fn versioned<'t>(text: &'t str, what: &str) -> Result<(u32, &'t str), Failure> {
    let wrong = |why: &str| Failure::Bad(format!("invalid {what}: {why}"));
    let rest = text.strip_prefix(PREFIX).ok_or_else(|| wrong("no prefix"))?;
    let (version, encoded) = rest.split_once(':').ok_or_else(|| wrong("wrong number of fields"))?;
    let digits = version.bytes().all(|b| b.is_ascii_digit()) && !version.starts_with('0');
    let version = version.parse().ok().filter(|_| digits);
    let version = version.ok_or_else(|| wrong("version number could not be decoded"))?;
    Ok((version, encoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ciphertext_comes_back_and_each_mistake_has_its_words() {
        let bytes: Vec<u8> = (0..28).collect();
        let text = as_text(12, &bytes).to_string();
        assert_eq!(text, "vault:v12:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==");
        assert_eq!(parse(&text), Ok((12, bytes)));
        for (text, message) in [
            ("", "no prefix"),
            ("hello", "no prefix"),
            ("vault:12:AAAA", "no prefix"),
            ("vault:v12", "wrong number of fields"),
            ("vault:v:AAAA", "version number"),
            ("vault:v0:AAAA", "version number"),
            ("vault:v01:AAAA", "version number"),
            ("vault:v-1:AAAA", "version number"),
            ("vault:v+1:AAAA", "version number"),
            ("vault:v4294967296:AAAA", "version number"),
            ("vault:v1:A", "base64"),
            ("vault:v1:AAAA:AAAA", "base64"),
        ] {
            let Err(Failure::Bad(error)) = parse(text) else { panic!("{text}") };
            assert!(error.starts_with("invalid ciphertext: ") && error.contains(message), "{text}: {error}");
        }
    }
}
