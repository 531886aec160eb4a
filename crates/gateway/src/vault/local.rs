//! Operations that need no node: random bytes of the operating system, and hashes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_protocol::session::random_bytes;
use serde_json::{Map, Value};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use super::answer::Answer;
use super::fields::Fields;
use crate::failure::Failure;

/// The most random bytes, as in Vault.
const MAX_RANDOM: i64 = 128 << 10;

/// `random/n`.
pub(super) fn random(path: Option<&str>, fields: &Fields) -> Result<Answer, Failure> {
    if !matches!(fields.text("source")?, None | Some("" | "platform")) {
        return Err(Failure::Bad("random bytes come from the platform only".into()));
    }
    let number =
        |text: &str| text.parse().map_err(|_| Failure::Bad(format!("{text:?} is no number of bytes")));
    let bytes = match path {
        Some(path) => number(path)?,
        None => fields.number("bytes")?.unwrap_or(32),
    };
    if !(1..=MAX_RANDOM).contains(&bytes) {
        return Err(Failure::Bad(format!("\"bytes\" must be from 1 to {MAX_RANDOM}")));
    }
    let mut drawn = Zeroizing::new(vec![0; bytes as usize]);
    random_bytes(&mut drawn).map_err(|e| Failure::Internal(e.to_string()))?;
    Ok(one("random_bytes", encoded(&drawn, fields, "base64")?))
}

/// `hash/ALGORITHM`.
pub(super) fn hash(path: Option<&str>, fields: &Fields) -> Result<Answer, Failure> {
    let algorithm = match path {
        Some(path) => path,
        None => fields.text("algorithm")?.unwrap_or("sha2-256"),
    };
    let digest: fn(&[u8]) -> Vec<u8> = match algorithm {
        "sha2-224" => |input| Sha224::digest(input).to_vec(),
        "sha2-256" => |input| Sha256::digest(input).to_vec(),
        "sha2-384" => |input| Sha384::digest(input).to_vec(),
        "sha2-512" => |input| Sha512::digest(input).to_vec(),
        _ => {
            let shown: String = algorithm.chars().take(32).collect();
            return Err(Failure::Bad(format!(
                "unsupported algorithm {shown:?}; this gateway has sha2-224, sha2-256, sha2-384 and sha2-512"
            )));
        }
    };
    let input = fields.text("input")?.unwrap_or_default();
    let wrong = |_| Failure::Bad("unable to decode input as base64".into());
    let input = Zeroizing::new(STANDARD.decode(input).map_err(wrong)?);
    Ok(one("sum", encoded(&digest(&input), fields, "hex")?))
}

fn encoded(bytes: &[u8], fields: &Fields, default: &str) -> Result<String, Failure> {
    match fields.text("format")?.filter(|format| !format.is_empty()).unwrap_or(default) {
        "hex" => Ok(hex::encode(bytes)),
        "base64" => Ok(STANDARD.encode(bytes)),
        _ => Err(Failure::Bad("unsupported encoding format; it must be \"hex\" or \"base64\"".into())),
    }
}

fn one(name: &str, value: String) -> Answer {
    Answer::data(Map::from_iter([(name.to_owned(), Value::String(value))]))
}
