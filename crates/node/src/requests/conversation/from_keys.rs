//! Requests that make a key from another key of the nodes.

use polyclave_api::key_block::KeyBlock;
use polyclave_api::{Derivation, KeyInfo, Reason, Refusal, Wrapping};
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::protocol::Session;
use polyclave_store::StoredKey;

use super::Serving;
use crate::computation::circuits::Circuits;
use crate::computation::modes::StepError;
use crate::error::of_store;
use crate::keys::unwrap::unauthentic;
use crate::keys::{derive, key_block, unwrap};
use crate::requests::agreement::agree;

impl Serving<'_, '_> {
    /// Notes the cipher of the keys that a base derives. Nothing is computed unless all nodes have noted the same cipher.
    pub(super) fn note_child(&mut self, base: &KeyInfo, cipher: &str) -> Result<(), StepError> {
        let other = self.service.store.note_child((base.id, base.account), cipher).map_err(of_store);
        let noted = other.and_then(|other| match other {
            None => Ok([0; 32]),
            Some(known) => {
                let told = derive::other_cipher(&base.properties.name, &known, cipher);
                Err(Refusal::new(Reason::Key, told))
            }
        });
        agree(noted, self.net()?)?.map_err(StepError::Refused)
    }

    /// Derives a key of the cipher of `circuits`.
    pub(super) fn derive(
        &mut self,
        protocol: &mut AnyServiceSession,
        base: &StoredKey,
        circuits: &Circuits,
        how: &Derivation,
    ) -> Result<AnyShared, StepError> {
        let of_base = self.circuits(&base.info.properties.cipher, protocol)?;
        let key = self.expanded(&base.info, &base.shares, protocol)?;
        let circuits = (&*of_base, circuits);
        let derived = derive::derive(how, &key, circuits, protocol, &mut self.partners()?);
        self.faults = protocol.faults();
        Ok(derived?)
    }

    /// Unwraps a key of the cipher of `circuits`. All nodes refuse one that does not authenticate.
    pub(super) fn unwrap(
        &mut self,
        protocol: &mut AnyServiceSession,
        kek: &StoredKey,
        circuits: &Circuits,
        wrapped: (&[u8], Wrapping),
    ) -> Result<AnyShared, StepError> {
        let of_kek = self.circuits(&kek.info.properties.cipher, protocol)?;
        let key = self.expanded(&kek.info, &kek.shares, protocol)?;
        let circuits = (&*of_kek, circuits);
        let unwrapped = unwrap::unwrap(wrapped, &key, circuits, protocol, &mut self.partners()?);
        self.faults = protocol.faults();
        unwrapped?.ok_or_else(|| StepError::Refused(unauthentic()))
    }

    /// Unwraps a key block into a key of the cipher of `circuits`. All nodes refuse one that does not authenticate.
    pub(super) fn unwrap_block(
        &mut self,
        protocol: &mut AnyServiceSession,
        kek: &StoredKey,
        circuits: &Circuits,
        block: &KeyBlock,
    ) -> Result<AnyShared, StepError> {
        let of_kek = self.circuits(&kek.info.properties.cipher, protocol)?;
        let key = self.expanded(&kek.info, &kek.shares, protocol)?;
        let unwrapped = key_block::unwrap(block, &key, (&of_kek, circuits), protocol, &mut self.partners()?);
        self.faults = protocol.faults();
        unwrapped?.map_err(StepError::Refused)
    }
}
