//! A key that is made by the first encryption under its name, as Vault does it for a token that may create.
//!
//! Whether it is derived follows from whether the request has a context. A request that could not be answered
//! under the new key makes none. If two requests make one name at once, the nodes refuse one of them, which
//! asks again until the key is there.

use std::time::Duration;

use polyclave_api::Right;

use super::fields::Fields;
use super::item::{HIGHER, bound_to, has_context, version_of};
use super::{Caller, Vault, keys};
use crate::failure::Failure;

/// How often the nodes are asked at most while another request makes the key, and the pauses between.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(500);

/// Makes the key for a request to encrypt, and returns what to warn of.
pub(super) async fn make(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    fields: &Fields,
) -> Result<Vec<String>, Failure> {
    caller.allow_key(vault, Right::Generate, key)?;
    let items = fields.batch()?.unwrap_or_else(|| vec![fields.clone()]);
    let derived = has_context(&items[0])?;
    if !derived && fields.flag("convergent_encryption")? == Some(true) {
        return Err(bad("convergent encryption requires derivation to be enabled, so context is required"));
    }
    let of_type = keys::type_wanted(fields, derived)?;
    let form = of_type
        .form()
        .ok_or_else(|| bad(&format!("key type {} not supported for this operation", of_type.name)))?;
    let fits = |item: &Fields| match version_of(item)? {
        None | Some(1) => bound_to(item, form).map(drop),
        Some(_) => Err(bad(HIGHER)),
    };
    if !items.iter().any(|item| fits(item).is_ok()) {
        fits(&items[0])?;
    }
    let mut tries = 1;
    let made = loop {
        match keys::make(vault, caller, key, of_type).await {
            Err(Failure::Unavailable(_)) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            outcome => break outcome?,
        }
    };
    tracing::info!(token = caller.token.entry.name, key, new = made.is_new, "made a key for an encryption");
    let before = "Attempted creation of the key during the encrypt operation, but it was created beforehand";
    let existed = (!made.is_new).then(|| before.to_owned());
    Ok(existed.into_iter().chain(made.warning).collect())
}

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}
