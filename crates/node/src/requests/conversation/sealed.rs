//! A key that was sealed to the nodes: they share their parts, add them, and keep the key if its check value is right.
//!
//! The check value does not depend on the parity bits of keys of DES. So a node that shares another part could change these bits unnoticed. Therefore
//! the nodes compute them from the other bits, on shares: the key has odd parity, whatever the parts have.

use polyclave_api::{Origin, Parity};
use polyclave_cipher::parity::has_parity;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::protocol::Session;

use super::Serving;
use crate::computation::circuits::Circuits;
use crate::computation::modes::StepError;
use crate::error::{of_store, system};
use crate::keys::make::{expand_unopened, open_check_value, sum_of_parts};
use crate::requests::agreement::agree;
use crate::requests::sealed::SealedKey;

impl Serving<'_, '_> {
    /// Makes the key. Nothing is kept if its check value is another one than the file says.
    pub(super) fn take_sealed(
        &mut self,
        mut protocol: AnyServiceSession,
        sealed: SealedKey,
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        let SealedKey { new, expected, nonce, mut part, .. } = sealed;
        self.service.conduct.spoil_part(&mut part);
        let key = sum_of_parts(&mut protocol, &mut self.partners()?, circuits, &part);
        self.faults = protocol.faults();
        let key = match has_parity(&circuits.cipher) {
            true => self.sum(&mut protocol, &[key?], Parity::Set, circuits)?,
            false => key?,
        };
        let keys = [key];
        let expanded = expand_unopened(&keys, &new, &mut protocol, &mut self.partners()?, circuits);
        self.faults = protocol.faults();
        let (material, checks) = expanded?;
        // Until here nothing was opened that depends on the key, so what ended before, as where the stock is dry or a node is gone, was no try.
        // No node opens the check value before all have said that they have counted.
        let counted = self.service.store.try_sealed(nonce).map_err(of_store);
        agree(counted.map(|()| nonce), self.net()?)?.map_err(StepError::Refused)?;
        let check_value = open_check_value(&checks, &mut protocol, &mut self.partners()?);
        self.faults = protocol.faults();
        let check_value = check_value?;
        self.compare(&mut protocol, &material.round_keys, &check_value, (Some(&expected), circuits))?;
        let info = self.made(new, Origin::Imported, check_value)?;
        // Before anything is stored: a node that has the key, pending or announced, knows of which file.
        self.service.store.note_sealed(nonce, info.id).map_err(system)?;
        let raw = keys.first().filter(|_| info.properties.wrappable);
        let shares = material.save(raw, &protocol);
        self.store_everywhere(info, shares, &[])
    }
}
