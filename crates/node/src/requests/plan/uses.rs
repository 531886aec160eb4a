//! Uses of keys that make none.

use std::sync::Arc;

use polyclave_api::{
    self as api, BlockHeader, Choice, Derivation, KeyInfo, KeyVersion, NewKey, Refusal, Rewrapped, Right,
    Use, Wrapping, why_apart,
};
use polyclave_store::StoredKey;

use super::refusals::{
    key_for, key_refusal, not_for_this, refuse_key_of_blocks, refuse_other_usage, refuse_state,
    refuse_unchecked, refuse_unfit,
};
use super::{Draft, Other, Task};
use crate::clients::rules::Client;
use crate::computation::modes::kdf::Kdf;
use crate::computation::modes::key_block::WrapBlock;
use crate::computation::modes::rewrap::Rewrap;
use crate::computation::modes::wrap::Wrap;
use crate::computation::modes::{envelope, machine};
use crate::keys::key_block;
use crate::requests::service::Service;

impl Draft<'_> {
    pub(super) fn use_key(&self, key: &str, id: Option<&[u8; 16]>, how: &Use) -> Result<Task, Refusal> {
        let (service, client) = (self.service, self.client);
        let (wanted, right) = how.needs();
        let (info, stored) = service.keys.for_use(key, id)?;
        if !info.properties.modes.contains(&wanted) {
            let modes: Vec<String> = info.properties.modes.iter().map(api::Mode::to_string).collect();
            let told = format!("the key '{key}' was made for {}, not for {wanted}", modes.join(", "));
            return Err(not_for_this(told));
        }
        refuse_other_usage(&info, right)?;
        refuse_undoing(&info, wanted, right)?;
        refuse_state(service, client, &info, right)?;
        refuse_chosen_nonce(&info, how)?;
        refuse_unchecked(service, &[wanted])?;
        if let Use::EnvelopeWrite(envelope) = how {
            envelope::owns(envelope, &client.name)?;
        }
        let mode = machine(how, &service.library.cipher(&info.properties.cipher)?, info.id)?;
        Ok(Task::Use { info, key: stored, mode, other: None })
    }

    pub(super) fn wrap(
        &self,
        wrapping: &KeyVersion,
        key: &KeyVersion,
        how: Wrapping,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let (kek, wrapped) = to_wrap(self.by(), (wrapping, key))?;
        refuse_key_of_blocks(&kek.info)?;
        let cipher = service.library.cipher(&wrapped.info.properties.cipher)?;
        refuse_unfit(how, &cipher)?;
        let mode = Box::new(Wrap::new(how, wrapped.clone(), cipher));
        Ok(Task::Use {
            info: kek.info.clone(),
            key: kek,
            mode,
            other: Some(Other { key: wrapped, blocks: 0 }),
        })
    }

    pub(super) fn rewrap(
        &self,
        (old, id): (&str, Option<&[u8; 16]>),
        key: &str,
        what: &Rewrapped,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let by = self.by();
        let (rights, mode) = what.amounts_to();
        let old = service.keys.for_use(old, id)?.1;
        let new = service.keys.get(key)?.1;
        for (stored, right) in [(&old, rights[0]), (&new, rights[1])] {
            refuse_to_rewrap(by, &stored.info, right, mode)?;
        }
        let rewrap = Rewrap::new(what, old.info.id, new.info.id)?;
        let other = Some(Other { key: old, blocks: rewrap.blocks() });
        Ok(Task::Use { info: new.info.clone(), key: new, mode: Box::new(rewrap), other })
    }

    pub(super) fn wrap_block(
        &self,
        wrapping: &KeyVersion,
        key: &KeyVersion,
        header: &BlockHeader,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let (kek, wrapped) = to_wrap(self.by(), (wrapping, key))?;
        let (of_kek, cipher) = (
            service.library.cipher(&kek.info.properties.cipher)?,
            service.library.cipher(&wrapped.info.properties.cipher)?,
        );
        let head =
            key_block::head(header, &kek.info.properties, &wrapped.info.properties, (&of_kek, &cipher));
        let head = head.map_err(key_refusal)?;
        let mode = Box::new(WrapBlock::new(head, wrapped.clone(), cipher, &of_kek));
        Ok(Task::Use {
            info: kek.info.clone(),
            key: kek,
            mode,
            other: Some(Other { key: wrapped, blocks: 0 }),
        })
    }

    pub(super) fn kdf(&self, key: &KeyVersion, how: &Derivation, bytes: u32) -> Result<Task, Refusal> {
        let service = self.service;
        let stored = key_for(self.by(), Right::Kdf, key)?;
        let cipher = service.library.cipher(&stored.info.properties.cipher)?;
        let mode = Box::new(Kdf::new(how, bytes, cipher.block_bytes).map_err(key_refusal)?);
        Ok(Task::Use { info: stored.info.clone(), key: stored, mode, other: None })
    }
}

/// A key that wraps, and a key that may be wrapped under it.
fn to_wrap(
    (service, client): (&Service, &Client),
    (wrapping, key): (&KeyVersion, &KeyVersion),
) -> Result<(Arc<StoredKey>, Arc<StoredKey>), Refusal> {
    let kek = key_for((service, client), Right::Wrap, wrapping)?;
    let (info, wrapped) = service.keys.for_use(&key.name, key.id.as_ref())?;
    let name = &key.name;
    // It leaves to be used elsewhere.
    refuse_state(service, client, &info, Right::Wrap)?;
    if !info.properties.wrappable {
        return Err(not_for_this(format!(
            "the key '{name}' never leaves the nodes: it was not made wrappable, or that was withdrawn"
        )));
    }
    if info.id == kek.info.id {
        return Err(not_for_this(format!("the key '{name}' cannot wrap itself")));
    }
    Ok((kek, wrapped))
}

/// Refuses to rewrap from or to a key that is not for it. The rights are those that each key's usage and state have to allow; the client needs
/// none of them.
fn refuse_to_rewrap(
    (service, client): (&Service, &Client),
    info: &KeyInfo,
    right: Right,
    mode: Option<api::Mode>,
) -> Result<(), Refusal> {
    let KeyInfo { properties: NewKey { name, cipher, modes, .. }, component, .. } = info;
    if component.is_some() || !cipher.starts_with("aes-") {
        return Err(not_for_this(format!("'{name}' is no key of AES, and only such keys rewrap")));
    }
    match mode {
        Some(mode) if !modes.contains(&mode) => {
            return Err(not_for_this(format!("the key '{name}' was not made for {mode}")));
        }
        None => refuse_key_of_blocks(info)?,
        _ => {}
    }
    refuse_other_usage(info, right)?;
    refuse_state(service, client, info, right)
}

/// Refuses a nonce of a client under a key that does not take one.
fn refuse_chosen_nonce(info: &KeyInfo, how: &Use) -> Result<(), Refusal> {
    if how.chosen() == Choice::Nothing || info.properties.caller_nonces {
        return Ok(());
    }
    let name = &info.properties.name;
    Err(not_for_this(format!(
        "the key '{name}' takes no nonces or initial blocks of its clients. It was not made for them, and that cannot be changed"
    )))
}

/// For keys made before it was refused to allow CBC together with a mode that undoes it. Nothing more is encrypted under them in CBC; what
/// was encrypted can be decrypted.
fn refuse_undoing(info: &KeyInfo, wanted: api::Mode, right: Right) -> Result<(), Refusal> {
    if (wanted, right) != (api::Mode::Cbc, Right::Encrypt) {
        return Ok(());
    }
    let Some(why) = why_apart(&info.properties.modes) else { return Ok(()) };
    let name = &info.properties.name;
    Err(not_for_this(format!(
        "the key '{name}' was made before this was refused: {why}. What there is can be decrypted"
    )))
}
