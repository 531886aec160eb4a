//! Keys that are wrapped under other keys, and ciphertexts that move from one key to another.

use std::sync::Arc;

use polyclave_api::key_block::KeyBlock;
use polyclave_api::operations::{Rewrap, Unwrap, UnwrapBlock, Wrap, WrapBlock};
use polyclave_api::{self as api, KeyInfo, KeyVersion, NewKey, Origin, Refusal, Right, Step, Wrapping};
use polyclave_cipher::{Cipher, key_wrap};
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::protocol::Session;
use polyclave_store::StoredKey;

use super::refusals::{
    key_for, key_refusal, malformed, not_for_this, refuse_key_of_blocks, refuse_other_usage, refuse_state,
    refuse_two_keys, refuse_unfit,
};
use super::use_key::{Other, Used};
use crate::clients::client::Client;
use crate::computation::circuits::Circuits;
use crate::computation::key_circuits::padding;
use crate::computation::modes::{self, StepError, misplaced};
use crate::computation::unwrap::unauthentic;
use crate::computation::{key_block, unwrap};
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned, identity};
use crate::requests::service::Service;

impl Operation for Wrap {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let (kek, wrapped) = to_wrap(draft.by(), (&self.wrapping, &self.key))?;
        refuse_key_of_blocks(&kek.info)?;
        let cipher = draft.service.library.cipher(&wrapped.info.properties.cipher)?;
        refuse_unfit(self.how, &cipher)?;
        let mode = Box::new(modes::wrap::Wrap::new(self.how, wrapped.clone(), cipher));
        Ok(Box::new(Used::with(kek, mode, vec![Other { key: wrapped, blocks: 0, computes: false }])))
    }
}

impl Operation for WrapBlock {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let service = draft.service;
        let (kek, wrapped) = to_wrap(draft.by(), (&self.wrapping, &self.key))?;
        let (of_kek, cipher) = (
            service.library.cipher(&kek.info.properties.cipher)?,
            service.library.cipher(&wrapped.info.properties.cipher)?,
        );
        let (kek_is, wrapped_is) = (&kek.info.properties, &wrapped.info.properties);
        let head = key_block::head(&self.header, kek_is, wrapped_is, (&of_kek, &cipher));
        let head = head.map_err(key_refusal)?;
        let mode = Box::new(modes::key_block::WrapBlock::new(head, wrapped.clone(), cipher, &of_kek));
        Ok(Box::new(Used::with(kek, mode, vec![Other { key: wrapped, blocks: 0, computes: false }])))
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

impl Operation for Rewrap {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let Rewrap { key, old, id, what } = self;
        let service = draft.service;
        let (rights, mode) = what.amounts_to();
        let old = service.keys.for_use(old, id.as_ref())?.1;
        let new = service.keys.get(key)?.1;
        for (stored, right) in [(&old, rights[0]), (&new, rights[1])] {
            refuse_to_rewrap(draft.by(), &stored.info, right, mode)?;
        }
        let rewrap = modes::rewrap::Rewrap::new(what, old.info.id, new.info.id)?;
        let other = Other { key: old, blocks: rewrap.blocks(), computes: true };
        Ok(Box::new(Used::with(new, Box::new(rewrap), vec![other])))
    }
}

/// Refuses to rewrap from or to a key that is not for it. The rights are those that each key's usage and
/// state have to allow. The client does not need them.
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

impl Operation for Unwrap {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let Unwrap { unwrapping, wrapped, how, new } = self;
        let cipher = draft.new_key(new)?;
        refuse_two_keys(new)?;
        let kek = key_for(draft.by(), Right::Unwrap, unwrapping)?;
        refuse_key_of_blocks(&kek.info)?;
        refuse_unfit(*how, &cipher)?;
        if wrapped.len() != key_wrap::wrapped_bytes(cipher.key_bytes) {
            return Err(unauthentic());
        }
        let blocks = key_wrap::blocks(padding(*how), cipher.key_bytes);
        let wrapped = Wrapped::Key(wrapped.clone(), *how);
        Ok(Box::new(Unwrapped { kek, new: new.clone(), cipher, wrapped, blocks }))
    }
}

impl Operation for UnwrapBlock {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let UnwrapBlock { unwrapping, block, new } = self;
        let cipher = draft.new_key(new)?;
        refuse_two_keys(new)?;
        let kek = key_for(draft.by(), Right::Unwrap, unwrapping)?;
        let of_kek = draft.service.library.cipher(&kek.info.properties.cipher)?;
        let block = KeyBlock::parse(block).map_err(malformed)?;
        key_block::may_become(&block, &kek.info.properties, new, &cipher).map_err(key_refusal)?;
        let blocks = key_block::blocks(&of_kek, block.head.len(), block.encrypted.len());
        let wrapped = Wrapped::Block(block);
        Ok(Box::new(Unwrapped { kek, new: new.clone(), cipher, wrapped, blocks }))
    }
}

/// A key in the form in which it comes.
enum Wrapped {
    Key(Vec<u8>, Wrapping),
    Block(KeyBlock),
}

/// A wrapped key that becomes a key of the nodes.
struct Unwrapped {
    kek: Arc<StoredKey>,
    new: NewKey,
    cipher: Cipher,
    wrapped: Wrapped,
    blocks: u64,
}

impl Planned for Unwrapped {
    fn identity(&self) -> Vec<u8> {
        identity(&self.kek.info)
    }

    fn blocks(&mut self, first: Option<&Step>) -> Result<Vec<(&KeyInfo, u64)>, Refusal> {
        first.map_or(Ok(vec![(&self.kek.info, self.blocks)]), |step| Err(misplaced(step)))
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        mut protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Unwrapped { kek, new, cipher, wrapped, .. } = *self;
        serving.complete(&kek.info, kek.state)?;
        let circuits = serving.circuits(&cipher.name, &protocol)?;
        let key = serving.unwrap(&mut protocol, &kek, &circuits, &wrapped)?;
        serving.keep(protocol, &[key], new, Origin::Unwrapped, &circuits)
    }
}

impl Serving<'_, '_> {
    /// Unwraps a key of the cipher of `circuits`. All nodes refuse one that does not authenticate.
    fn unwrap(
        &mut self,
        protocol: &mut AnyServiceSession,
        kek: &StoredKey,
        circuits: &Circuits,
        wrapped: &Wrapped,
    ) -> Result<AnyShared, StepError> {
        let of_kek = self.circuits(&kek.info.properties.cipher, protocol)?;
        let key = self.expanded((&kek.info, &kek.shares), &of_kek, protocol)?;
        let (circuits, net) = ((&*of_kek, circuits), &mut self.net_of_peers()?);
        let unwrapped = match wrapped {
            Wrapped::Key(wrapped, how) => unwrap::unwrap((wrapped, *how), &key, circuits, protocol, net)
                .map(|unwrapped| unwrapped.ok_or_else(unauthentic)),
            Wrapped::Block(block) => key_block::unwrap(block, &key, circuits, protocol, net),
        };
        self.faults = protocol.faults();
        unwrapped?.map_err(StepError::Refused)
    }
}
