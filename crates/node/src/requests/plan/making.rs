//! Keys that are made: of what a client gives, and of other keys.

use polyclave_api::key_block::KeyBlock;
use polyclave_api::{
    Derivation, KeyCheck, KeyVersion, NewKey, Parity, Refusal, Right, SealedImport, Wrapping, check_new_key,
    key_of_component,
};
use polyclave_cipher::{Cipher, key_wrap};

use super::refusals::{
    key_for, key_refusal, malformed, refuse_key_of_blocks, refuse_state, refuse_two_keys, refuse_unchecked,
    refuse_unfit,
};
use super::{Draft, Task, UnwrappedBlock};
use crate::computation::key_circuits::padding;
use crate::error::of_store;
use crate::keys::unwrap::unauthentic;
use crate::keys::{derive, key_block, key_copy};
use crate::operator::clock::now;
use crate::requests::{components, sealed};

impl Draft<'_> {
    pub(super) fn import_component(
        &mut self,
        (new, number, of): (&NewKey, u8, u8),
        expected: Option<&KeyCheck>,
    ) -> Result<Task, Refusal> {
        let (service, client) = (self.service, self.client);
        refuse_two_keys(new)?;
        let which = (new, number, of);
        let given = components::give(service, client, which, expected, &mut self.taken)?;
        Ok(Task::ImportComponent(Box::new(given)))
    }

    pub(super) fn import_sealed(&mut self, sealed: &SealedImport) -> Result<Task, Refusal> {
        let service = self.service;
        refuse_two_keys(&sealed.new)?;
        let cipher = self.new_key(&sealed.new)?;
        Ok(Task::ImportSealed(Box::new(sealed::open(service, sealed, cipher)?)))
    }

    pub(super) fn combine(
        &mut self,
        key: &str,
        expected: Option<&KeyCheck>,
        parity: Parity,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let expected = (expected, parity);
        let combination = components::combine(service, key, expected, &mut self.taken)?;
        Ok(Task::Combine(Box::new(combination)))
    }

    pub(super) fn copy(&mut self, key: &str, id: &[u8; 16], new: &NewKey) -> Result<Task, Refusal> {
        let (service, client) = (self.service, self.client);
        self.new_key(new)?;
        let (info, source) = service.keys.with_id(key, *id)?;
        key_copy::may_be_made(&info, new).map_err(key_refusal)?;
        let rights = self.asked.iter().filter(|asked| asked.key == *key).map(|asked| asked.right);
        rights.into_iter().try_for_each(|right| refuse_state(service, client, &info, right))?;
        Ok(Task::Copy { source, new: new.clone() })
    }

    pub(super) fn derive(
        &mut self,
        base: &KeyVersion,
        new: &NewKey,
        how: &Derivation,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let cipher = self.new_key(new)?;
        refuse_two_keys(new)?;
        let base = key_for(self.by(), Right::Derive, base)?;
        let of_base = service.library.cipher(&base.info.properties.cipher)?;
        let blocks = derive::blocks(how, &of_base, &cipher).map_err(key_refusal)?;
        // The cipher is noted, and checked again, once all nodes have agreed on the request.
        let known = service.store.children(base.info.account).map_err(of_store)?;
        if let Some(known) = known.iter().find(|known| **known != cipher.name) {
            return Err(key_refusal(derive::other_cipher(&base.info.properties.name, known, &cipher.name)));
        }
        Ok(Task::Derive { base, new: new.clone(), cipher, how: how.clone(), blocks })
    }

    pub(super) fn unwrap(
        &mut self,
        unwrapping: &KeyVersion,
        wrapped: &[u8],
        how: Wrapping,
        new: &NewKey,
    ) -> Result<Task, Refusal> {
        let cipher = self.new_key(new)?;
        refuse_two_keys(new)?;
        let kek = key_for(self.by(), Right::Unwrap, unwrapping)?;
        refuse_key_of_blocks(&kek.info)?;
        refuse_unfit(how, &cipher)?;
        if wrapped.len() != key_wrap::wrapped_bytes(cipher.key_bytes) {
            return Err(unauthentic());
        }
        let blocks = key_wrap::blocks(padding(how), cipher.key_bytes);
        Ok(Task::Unwrap { kek, new: new.clone(), cipher, wrapped: wrapped.to_vec(), how, blocks })
    }

    pub(super) fn unwrap_block(
        &mut self,
        unwrapping: &KeyVersion,
        block: &[u8],
        new: &NewKey,
    ) -> Result<Task, Refusal> {
        let service = self.service;
        let cipher = self.new_key(new)?;
        refuse_two_keys(new)?;
        let kek = key_for(self.by(), Right::Unwrap, unwrapping)?;
        let of_kek = service.library.cipher(&kek.info.properties.cipher)?;
        let block = KeyBlock::parse(block).map_err(malformed)?;
        key_block::may_become(&block, &kek.info.properties, new, &cipher).map_err(key_refusal)?;
        let blocks = key_block::blocks(&of_kek, block.head.len(), block.encrypted.len());
        let task = UnwrappedBlock { kek, new: new.clone(), cipher, block, blocks };
        Ok(Task::UnwrapBlock(Box::new(task)))
    }

    /// Checks the properties of a key that is to be made, and takes its name.
    pub(super) fn new_key(&mut self, new: &NewKey) -> Result<Cipher, Refusal> {
        let (service, client) = (self.service, self.client);
        if key_of_component(&new.name).is_some() {
            let told = format!("'{}' is how a component of a key is called; choose another name", new.name);
            return Err(key_refusal(told));
        }
        let cipher = service.library.cipher(&new.cipher)?;
        check_new_key(new, &cipher).map_err(key_refusal)?;
        refuse_unchecked(service, &new.modes)?;
        if new.expires.is_some_and(|expires| expires <= now()) {
            return Err(key_refusal("the key would have expired already, by this node's clock".into()));
        }
        self.taken = Some(service.keys.take_name(&new.name)?);
        if service.keys.has(&new.name)? {
            return Err(key_refusal(format!(
                "there is a key '{}' already; choose another name or delete it",
                new.name
            )));
        }
        service.keys.refuse_too_many_of(new, &client.name)?;
        Ok(cipher)
    }
}
