//! The checks for every use of a key.

use std::sync::Arc;

use polyclave_api::{self as api, KeyInfo, KeyVersion, NewKey, Reason, Refusal, Right, Usage, Wrapping};
use polyclave_cipher::{Cipher, key_wrap};
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_store::StoredKey;

use crate::clients::client::Client;
use crate::clock::now;
use crate::computation::key_circuits::padding;
use crate::keys::states::refuse_retired;
use crate::requests::service::Service;

pub(super) fn key_refusal(message: String) -> Refusal {
    Refusal::new(Reason::Key, message)
}

pub(super) fn not_for_this(message: String) -> Refusal {
    Refusal::new(Reason::NotForThis, message)
}

pub(super) fn malformed(message: String) -> Refusal {
    Refusal::new(Reason::Malformed, message)
}

/// A key that is for such a use.
pub(super) fn key_for(
    (service, client): (&Service, &Client),
    right: Right,
    key: &KeyVersion,
) -> Result<Arc<StoredKey>, Refusal> {
    let (info, stored) = service.keys.for_use(&key.name, key.id.as_ref())?;
    refuse_other_usage(&info, right)?;
    refuse_state(service, client, &info, right)?;
    Ok(stored)
}

/// Refuses a use of a version that its state does not allow.
pub(super) fn refuse_state(
    service: &Service,
    client: &Client,
    info: &KeyInfo,
    right: Right,
) -> Result<(), Refusal> {
    let configures = service.rules.allows(client, Right::Configure, &info.properties.name);
    refuse_retired(info, right, configures, now())
}

/// Refuses to use a key for what it was not made for.
pub(super) fn refuse_other_usage(info: &KeyInfo, right: Right) -> Result<(), Refusal> {
    let (name, usage) = (&info.properties.name, &info.properties.usage);
    match right.usage() {
        Some(wanted) if !usage.contains(&wanted) => {
            let usage: Vec<String> = usage.iter().map(Usage::to_string).collect();
            Err(not_for_this(format!("the key '{name}' is for the usage {}, not {wanted}", usage.join(", "))))
        }
        _ => Ok(()),
    }
}

/// A key that protects key blocks does nothing else: otherwise what a block says about its key could be left
/// out.
pub(super) fn refuse_key_of_blocks(kek: &KeyInfo) -> Result<(), Refusal> {
    match kek.properties.modes.contains(&api::Mode::Tr31) {
        true => Err(not_for_this(format!(
            "the key '{}' was made for key blocks only (tr31)",
            kek.properties.name
        ))),
        false => Ok(()),
    }
}

/// Refuses to wrap a key of a cipher in a way that does not take it.
pub(super) fn refuse_unfit(how: Wrapping, cipher: &Cipher) -> Result<(), Refusal> {
    if key_wrap::takes(padding(how), cipher.key_bytes) {
        return Ok(());
    }
    let (bytes, name) = (cipher.key_bytes, &cipher.name);
    Err(key_refusal(format!(
        "kw wraps keys of 16 bytes and more, in multiples of 8; a key of {name} has {bytes}: take kwp"
    )))
}

/// Refuses to make a key for a mode that takes two from the bytes of one.
pub(super) fn refuse_two_keys(new: &NewKey) -> Result<(), Refusal> {
    match new.parts() {
        1 => Ok(()),
        _ => Err(key_refusal(
            "a key for siv is two keys: it is generated or imported whole, not derived, unwrapped or combined".into(),
        )),
    }
}

/// Refuses `envelope` under a protocol whose outputs are not checked.
pub(super) fn refuse_unchecked(service: &Service, modes: &[api::Mode]) -> Result<(), Refusal> {
    if !modes.iter().any(|mode| mode.needs_checked_outputs()) || service.config.verifies() {
        return Ok(());
    }
    let checked: Vec<&str> = catalog::serving()
        .filter(|protocol| protocol.adversary != Adversary::Passive)
        .map(|protocol| protocol.name)
        .collect();
    Err(key_refusal(format!(
        "there are no keys for envelope under {}: its outputs are not checked, and with a wrong key a file would be lost. Take a \
         cluster under {}; or a key for gcm, with which the nodes encrypt the data themselves",
        service.config.name(),
        checked.join(", ")
    )))
}
