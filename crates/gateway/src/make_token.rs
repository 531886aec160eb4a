//! A token: 32 random bytes. The gateway's file has only their hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use polyclave_api::Right;
use polyclave_config::GatewayToken;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::Result;

/// What tokens begin with, so that programs that look for secrets in files find them.
const PREFIX: &str = "polyclave.";

/// Draws a token for a name. Returns it, and the entry for `gateway.toml`.
pub fn make_token(
    name: &str,
    rights: &[Right],
    keys: &[String],
) -> Result<(Zeroizing<String>, GatewayToken)> {
    let token = random_token()?;
    polyclave_config::check_name("token", name)?;
    let hash = GatewayToken::hash_of(&token);
    let entry = GatewayToken { name: name.into(), hash, rights: rights.to_vec(), keys: keys.to_vec() };
    entry.check()?;
    Ok((token, entry))
}

/// Draws a token.
pub(crate) fn random_token() -> Result<Zeroizing<String>> {
    let mut drawn = Zeroizing::new([0; 32]);
    random_bytes(&mut *drawn).map_err(polyclave_client::Error::from)?;
    let encoded = Zeroizing::new(URL_SAFE_NO_PAD.encode(*drawn));
    Ok(Zeroizing::new([PREFIX, &encoded].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_their_entries_know_them() {
        let make = || make_token("billing", &[Right::Encrypt], &["billing-*".into()]).expect("made");
        let ((one, entry), (other, _)) = (make(), make());
        assert!(*one != *other && one.len() == PREFIX.len() + 43);
        assert_eq!(entry.hash, GatewayToken::hash_of(&one));
        assert!(!entry.to_text().contains(&one[PREFIX.len()..]));
        assert!(make_token("a b", &[Right::Encrypt], &["*".into()]).is_err());
        assert!(make_token("billing", &[Right::Wrap], &["*".into()]).is_err());
    }
}
