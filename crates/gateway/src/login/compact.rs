//! A token in its compact form (RFC 7515, section 7.1; RFC 7519): three parts in base64url. Here its parts
//! are taken apart and the header is read, within limits.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use polyclave_config::SignatureAlgorithm;
use serde_json::{Map, Value};

use super::refused::Refused;
use super::strict;

/// The longest token, in bytes.
pub(super) const MAX_TOKEN: usize = 16 << 10;

/// A token whose signature nobody has looked at yet.
pub(super) struct Compact<'t> {
    pub(super) algorithm: SignatureAlgorithm,
    /// By which name the issuer knows the key.
    pub(super) key_id: Option<String>,
    /// The bytes that are signed.
    pub(super) signed: &'t [u8],
    pub(super) signature: Vec<u8>,
    claims: &'t str,
}

impl<'t> Compact<'t> {
    /// Takes a token apart.
    pub(super) fn parse(text: &'t str) -> Result<Compact<'t>, Refused> {
        if text.len() > MAX_TOKEN {
            return Err(Refused::TooLong(MAX_TOKEN));
        }
        let parts: Vec<&str> = text.split('.').take(6).collect();
        let [header, claims, signature] = parts[..] else {
            return Err(if parts.len() == 5 { Refused::Encrypted } else { Refused::NotCompact });
        };
        let decoded = URL_SAFE_NO_PAD.decode(header).map_err(|_| Refused::Base64("header"))?;
        let (algorithm, key_id) = read_header(&decoded)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refused::Base64("signature"))?;
        let signed = &text.as_bytes()[..header.len() + 1 + claims.len()];
        Ok(Compact { algorithm, key_id, signed, signature, claims })
    }

    /// The bytes of its claims.
    pub(super) fn claims(&self) -> Result<Vec<u8>, Refused> {
        URL_SAFE_NO_PAD.decode(self.claims).map_err(|_| Refused::Base64("claims"))
    }
}

/// The algorithm and the key that a header names. What else is in a header changes nothing: keys and
/// addresses of keys in it (`jwk`, `jku`, `x5c`, `x5u`) are the sender's word, and nobody looks at them.
fn read_header(bytes: &[u8]) -> Result<(SignatureAlgorithm, Option<String>), Refused> {
    let header = strict::object(bytes).map_err(|flaw| Refused::Json("header", flaw))?;
    let algorithm = match text(&header, "alg")? {
        None => return Err(Refused::NoAlgorithm),
        Some(name) if name.eq_ignore_ascii_case("none") => return Err(Refused::Unsigned),
        Some(name) if name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("HS")) => {
            return Err(Refused::Symmetric);
        }
        Some(name) => SignatureAlgorithm::named(name).ok_or(Refused::UnknownAlgorithm)?,
    };
    if header.contains_key("crit") {
        return Err(Refused::Critical);
    }
    let is_jwt = |content: &str| content.to_ascii_lowercase().trim_start_matches("application/") == "jwt";
    if text(&header, "cty")?.is_some_and(is_jwt) {
        return Err(Refused::Nested);
    }
    Ok((algorithm, text(&header, "kid")?.map(str::to_owned)))
}

fn text<'h>(header: &'h Map<String, Value>, name: &'static str) -> Result<Option<&'h str>, Refused> {
    match header.get(name) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or(Refused::HeaderNoText(name)),
    }
}
