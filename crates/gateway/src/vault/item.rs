//! What a message of a request says of itself: alone, or as an item of a batch.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ciphertext;
use super::fields::Fields;
use super::types::Form;
use crate::failure::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// As Vault says it.
pub(super) const HIGHER: &str = "requested version for encryption is higher than the latest key version";

/// Whether a context is given with it.
pub(super) fn has_context(item: &Fields) -> Result<bool> {
    Ok(item.text("context")?.is_some_and(|text| !text.is_empty()))
}

pub(super) fn ciphertext_of(item: &Fields) -> Result<(u32, Vec<u8>)> {
    let text = item.text("ciphertext")?.filter(|text| !text.is_empty());
    ciphertext::parse(text.ok_or_else(|| bad("missing ciphertext to decrypt"))?)
}

/// The version that is asked for; `None` for the latest.
pub(super) fn version_of(item: &Fields) -> Result<Option<u32>> {
    match item.number("key_version")?.unwrap_or_default() {
        0 => Ok(None),
        ..0 => Err(bad("requested version for encryption is negative")),
        version => u32::try_from(version).map(Some).map_err(|_| bad(HIGHER)),
    }
}

/// What a message is bound to.
pub(super) fn bound_to(item: &Fields, form: Form) -> Result<Vec<u8>> {
    let of = |name| base64(item.text(name)?.unwrap_or_default(), name);
    form.bind(&of("context")?, of("associated_data")?)
}

pub(super) fn base64(text: &str, name: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|_| bad(&format!("failed to base64-decode {name}")))
}

pub(super) fn refuse_nonce(item: &Fields) -> Result<()> {
    match item.text("nonce")?.is_some_and(|nonce| !nonce.is_empty()) {
        true => Err(bad("provided nonce not allowed for this key")),
        false => Ok(()),
    }
}

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}
