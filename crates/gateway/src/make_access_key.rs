//! An access key: an id, which requests show, and a secret, with which they are signed.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use polyclave_api::Right;
use polyclave_config::GatewayAccessKey;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::Result;

/// What secrets begin with, so that programs that look for secrets in files find them. KMS takes secrets of
/// 43 to 64 letters, digits, `+`, `/` and `=`, and no others.
const PREFIX: &str = "polyclave/";
/// What ids begin with. KMS takes ids of 20 to 30 characters of the alphabet, and no others.
const ID_PREFIX: &str = "POLY";
/// Characters of ids, five bits each.
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Draws an access key for a name. Returns its secret, and the entry for `gateway.toml`, which names the file
/// with the secret.
pub fn make_access_key(
    name: &str,
    rights: &[Right],
    keys: &[String],
    file: &Path,
) -> Result<(Zeroizing<String>, GatewayAccessKey)> {
    polyclave_config::check_name("access key", name)?;
    let (mut drawn, mut id) = (Zeroizing::new([0; 32]), [0; 16]);
    random_bytes(&mut *drawn).map_err(polyclave_client::Error::from)?;
    random_bytes(&mut id).map_err(polyclave_client::Error::from)?;
    let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(*drawn));
    let secret = Zeroizing::new([PREFIX, &encoded].concat());
    let id = id.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    let entry = GatewayAccessKey {
        name: name.into(),
        id: ID_PREFIX.chars().chain(id).collect(),
        secret: file.into(),
        rights: rights.to_vec(),
        keys: keys.to_vec(),
    };
    entry.check()?;
    Ok((secret, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_keys_differ_and_their_entries_have_no_secret() {
        let make = |rights: &[Right]| make_access_key("pos", rights, &["pin-*".into()], Path::new("s"));
        let ((one, entry), (other, of_other)) =
            (make(&[Right::Pay]).expect("made"), make(&[Right::Pay]).expect("made"));
        assert!(*one != *other && entry.id != of_other.id && entry.id.len() == 20);
        assert!(!entry.to_text().contains(&one[PREFIX.len()..]));
        let of_kms = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        assert!((43..=64).contains(&one.len()) && one.chars().all(of_kms));
        assert!(entry.id.bytes().all(|c| ALPHABET.contains(&c)));
        assert!(make(&[Right::Random]).is_err() && make(&[]).is_err());
        assert!(make_access_key("a b", &[Right::Pay], &["*".into()], Path::new("s")).is_err());
    }
}
