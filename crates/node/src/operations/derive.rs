//! Keys and bytes that are derived from a key.

use std::sync::Arc;

use polyclave_api::operations::{Derive, Kdf};
use polyclave_api::{Derivation, KeyInfo, NewKey, Origin, Reason, Refusal, Right, Step};
use polyclave_cipher::Cipher;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::protocol::Session;
use polyclave_store::StoredKey;

use super::refusals::{key_for, key_refusal, refuse_two_keys};
use super::use_key::Used;
use crate::computation::circuits::Circuits;
use crate::computation::derive;
use crate::computation::modes::{self, StepError, misplaced};
use crate::error::of_store;
use crate::requests::agreement::agree;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned, identity};

impl Operation for Derive {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let Derive { base, new, how } = self;
        let service = draft.service;
        let cipher = draft.new_key(new)?;
        refuse_two_keys(new)?;
        let base = key_for(draft.by(), Right::Derive, base)?;
        let of_base = service.library.cipher(&base.info.properties.cipher)?;
        let blocks = derive::blocks(how, &of_base, &cipher).map_err(key_refusal)?;
        // The cipher is noted, and checked again, once all nodes have agreed on the request.
        let known = service.store.children(base.info.account).map_err(of_store)?;
        if let Some(known) = known.iter().find(|known| **known != cipher.name) {
            return Err(key_refusal(derive::other_cipher(&base.info.properties.name, known, &cipher.name)));
        }
        Ok(Box::new(Derived { base, new: new.clone(), cipher, how: how.clone(), blocks }))
    }
}

/// A key that is derived from another one.
struct Derived {
    base: Arc<StoredKey>,
    new: NewKey,
    cipher: Cipher,
    how: Derivation,
    blocks: u64,
}

impl Planned for Derived {
    fn identity(&self) -> Vec<u8> {
        identity(&self.base.info)
    }

    fn blocks(&mut self, first: Option<&Step>) -> Result<Vec<(&KeyInfo, u64)>, Refusal> {
        first.map_or(Ok(vec![(&self.base.info, self.blocks)]), |step| Err(misplaced(step)))
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        mut protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Derived { base, new, cipher, how, .. } = *self;
        serving.complete(&base.info, base.state)?;
        serving.note_child(&base.info, &cipher.name)?;
        let circuits = serving.circuits(&cipher.name, &protocol)?;
        let key = serving.derive(&mut protocol, &base, &circuits, &how)?;
        serving.keep(protocol, &[key], new, Origin::Derived, &circuits)
    }
}

impl Serving<'_, '_> {
    /// Notes the cipher of the keys that a base derives. Nothing is computed unless all nodes have noted the
    /// same cipher.
    fn note_child(&mut self, base: &KeyInfo, cipher: &str) -> Result<(), StepError> {
        let other = self.service.store.note_child((base.id, base.account), cipher).map_err(of_store);
        let noted = other.and_then(|other| match other {
            None => Ok([0; 32]),
            Some(known) => {
                let message = derive::other_cipher(&base.properties.name, &known, cipher);
                Err(Refusal::new(Reason::Key, message))
            }
        });
        agree(noted, self.net()?)?.map_err(StepError::Refused)
    }

    /// Derives a key of the cipher of `circuits`.
    fn derive(
        &mut self,
        protocol: &mut AnyServiceSession,
        base: &StoredKey,
        circuits: &Circuits,
        how: &Derivation,
    ) -> Result<AnyShared, StepError> {
        let of_base = self.circuits(&base.info.properties.cipher, protocol)?;
        let key = self.expanded((&base.info, &base.shares), &of_base, protocol)?;
        let circuits = (&*of_base, circuits);
        let derived = derive::derive(how, &key, circuits, protocol, &mut self.net_of_peers()?);
        self.faults = protocol.faults();
        Ok(derived?)
    }
}

impl Operation for Kdf {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let stored = key_for(draft.by(), Right::Kdf, &self.key)?;
        let cipher = draft.service.library.cipher(&stored.info.properties.cipher)?;
        let kdf = modes::kdf::Kdf::new(&self.how, self.bytes, &cipher).map_err(key_refusal)?;
        Ok(Box::new(Used::alone(stored.info.clone(), stored, Box::new(kdf))))
    }
}
