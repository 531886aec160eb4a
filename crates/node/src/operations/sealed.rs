//! A key that was sealed to the nodes: what a node decides alone, and how the nodes make the key of its
//! parts.
//!
//! # What holds
//!
//! The key is the sum of one part for each node ([`SealedImport`]), and each part is opened by its node
//! alone. So the carrier of the file, and any set of nodes that lacks one node, learn nothing of the parts
//! that they do not have. The nodes share and add the parts under the protocol, as they do when they make a
//! key. Then they compute the check value, and make the key only if it is the one in the file. A node that
//! shares another part makes another key: that passes with probability 2^-40 a try (2^-24 for ciphers with
//! blocks of 8 bytes, whose check values have 3 bytes). A node can add a difference of its choice; a try that
//! fails then shows it the check value of the key with that difference. So nodes count tries, and refuse the
//! file after [`MAX_TRIES`]. Every try has a line in the audit log.
//!
//! A try is counted where something could be learned of it and not before: when everything is computed, and
//! the check value is all that is left to open. What was opened until then was masked, and does not depend on
//! the key. So an import that ends earlier, because the stock is dry, or a node is busy or gone, costs no
//! try, and tells nothing. All nodes count durably and say so to each other before any of them opens its
//! share of the check value. So an honest node that has opened one has counted, and so have all other honest
//! nodes. The name of the key is taken before the tries are looked at, so no two imports of one file run at
//! once.
//!
//! The file can be imported once: each node notes it durably before it stores the key
//! (`store/src/sealed.rs`), and refuses it once the key was announced, also after it was deleted. All nodes
//! take part, so one that remembers is enough. A file whose import was interrupted before the key was
//! announced anywhere can be imported again.
//!
//! The check value does not depend on the parity bits of keys of DES. So a node that shares another part
//! could change these bits unnoticed. Therefore the nodes compute them from the other bits, on shares: the
//! key has odd parity for any parity of the parts.

use polyclave_api::{
    CheckKind, KeyCheck, Lifetime, NewKey, Origin, Parity, Reason, Refusal, SealedImport, Step,
};
use polyclave_cipher::parity::has_parity;
use polyclave_cipher::{Cipher, modes};
use polyclave_config::{Moment, open_import};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::protocol::Session;
use polyclave_store::KeyState;
use zeroize::Zeroizing;

use super::refusals::refuse_two_keys;
use crate::computation::circuits::Circuits;
use crate::computation::make::{expand_unopened, open_check_value, sum_of_parts};
use crate::computation::modes::StepError;
use crate::error::{of_store, system};
use crate::requests::agreement::agree;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned};
use crate::requests::service::Service;

/// How often nodes open the check value of a key that they have made of one file. More than once, because an
/// import can be interrupted after that.
const MAX_TRIES: u8 = 8;

/// A sealed key as this node has opened it.
struct SealedKey {
    new: NewKey,
    cipher: Cipher,
    expected: KeyCheck,
    nonce: [u8; 32],
    /// This node's part.
    part: Zeroizing<Vec<u8>>,
}

impl Operation for SealedImport {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        refuse_two_keys(&self.new)?;
        let cipher = draft.new_key(&self.new)?;
        Ok(Box::new(open(draft.service, self, cipher)?))
    }
}

impl Planned for SealedKey {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = serving.circuits(&self.cipher.name, &protocol)?;
        serving.take_sealed(protocol, *self, &circuits)
    }
}

fn refusal(message: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Key, message)
}

/// Checks a sealed key, and opens this node's part of it.
fn open(service: &Service, sealed: &SealedImport, cipher: Cipher) -> Result<SealedKey, Refusal> {
    let malformed = |e: polyclave_protocol::Error| Refusal::new(Reason::Malformed, e.to_string());
    sealed.check_size().map_err(malformed)?;
    if sealed.new.lifetime != Lifetime::Stored {
        return Err(refusal("a sealed key is no session key, of which nodes forget that they had it"));
    }
    let here = service.members.cluster.fingerprint();
    if sealed.cluster != here.bytes() {
        return Err(refusal(format!(
            "this key was sealed for the cluster file with the fingerprint {}, and this node's file has {here}: it is of another cluster, or a \
             node has another certificate or address since. Seal the key anew, with the current file",
            hex::encode(sealed.cluster)
        )));
    }
    let (now, end) = (Moment::now(), Moment::from_seconds(sealed.not_after));
    if now > end {
        return Err(refusal(format!(
            "this sealed key could be imported until {end}; by this node's clock it is {now}. Seal it anew"
        )));
    }
    if sealed.parts.len() != service.members.nodes || sealed.check.len() != modes::check_value_bytes(&cipher)
    {
        let message =
            format!("a sealed key of {} parts for {} nodes", sealed.parts.len(), service.members.nodes);
        return Err(Refusal::new(Reason::Malformed, message));
    }
    refuse_used(service, sealed)?;
    let part = open_import(sealed, service.members.me, cipher.key_bytes, &service.identity).map_err(|_| {
        let name = service.members.name_of(service.members.me);
        refusal(format!(
            "{name} cannot open its part of this sealed key: the file was altered, or the part was sealed to another certificate. Seal the key \
             anew, with the current cluster file"
        ))
    })?;
    let expected = KeyCheck { kind: CheckKind::Cmac, value: sealed.check.clone() };
    Ok(SealedKey { new: sealed.new.clone(), cipher, expected, nonce: sealed.nonce, part })
}

fn refuse_used(service: &Service, sealed: &SealedImport) -> Result<(), Refusal> {
    let note = service.store.sealed_note(sealed.nonce).map_err(of_store)?;
    if let Some(id) = note.id {
        let state = service.store.state(&sealed.new.name, id).map_err(of_store)?;
        if matches!(state, Some(KeyState::Announced | KeyState::Deleted)) {
            return Err(refusal(format!(
                "this sealed key was imported before, as the key with the id {}. A file counts once: seal the key anew",
                hex::encode(id)
            )));
        }
    }
    if note.tries >= MAX_TRIES {
        return Err(refusal(format!(
            "no key was made of this file in {MAX_TRIES} attempts: it is wrong, or a node is. See each node's log, and seal the key anew"
        )));
    }
    Ok(())
}

impl Serving<'_, '_> {
    /// Makes the key. Nothing is kept if its check value is another one than the file says.
    fn take_sealed(
        &mut self,
        mut protocol: AnyServiceSession,
        sealed: SealedKey,
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        let SealedKey { new, expected, nonce, mut part, .. } = sealed;
        self.service.faults.spoil_part(&mut part);
        let key = sum_of_parts(&mut protocol, &mut self.net_of_peers()?, circuits, &part);
        self.faults = protocol.faults();
        let key = match has_parity(&circuits.cipher) {
            true => self.sum(&mut protocol, &[key?], Parity::Set, circuits)?,
            false => key?,
        };
        let keys = [key];
        let expanded = expand_unopened(&keys, &new, &mut protocol, &mut self.net_of_peers()?, circuits);
        self.faults = protocol.faults();
        let (material, checks) = expanded?;
        // Until here nothing was opened that depends on the key, so what ended before, as where the stock is
        // dry or a node is gone, was no try. No node opens the check value before all have said that they
        // have counted.
        let counted = self.service.store.try_sealed(nonce).map_err(of_store);
        agree(counted.map(|()| nonce), self.net()?)?.map_err(StepError::Refused)?;
        let check_value = open_check_value(&checks, &mut protocol, &mut self.net_of_peers()?);
        self.faults = protocol.faults();
        let check_value = check_value?;
        self.compare(&mut protocol, &material.round_keys, &check_value, (Some(&expected), circuits))?;
        let info = self.made(new, Origin::Imported, check_value)?;
        // Before anything is stored: a node that has the key, pending or announced, knows which file it came
        // from.
        self.service.store.note_sealed(nonce, info.id).map_err(system)?;
        let raw = keys.first().filter(|_| info.properties.wrappable);
        let shares = material.save(raw, &protocol);
        self.store_everywhere(info, shares, &[])
    }
}
