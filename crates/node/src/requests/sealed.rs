//! What a node decides alone about a key that was sealed to the nodes, and its own part of it.
//!
//! # What holds
//!
//! The key is the sum of one part for each node ([`SealedImport`]), and each part is opened by its node alone. So whoever carries the file, and
//! any nodes but all of them, learn nothing of the parts that they do not have; and the nodes share and add the parts under the protocol, as
//! they do when they make a key. Then they compute the check value, and make the key only if it is the one in the file. A node that shares
//! another part makes another key: that passes with probability 2^-40 a try (2^-24 for ciphers with blocks of 8 bytes, whose check values have 3
//! bytes). A try that fails shows the node that adds a difference of its choice the check value of the key with that difference, so nodes
//! count tries, and refuse the file after [`MOST_TRIES`]. Every try has a line in the audit log.
//!
//! A try is counted where something could be learned of it and not before: when everything is computed, and the check value is all that is left to
//! open. What was opened until then was masked, and does not depend on the key. So an import that ends earlier, because the stock is dry, or
//! a node is busy or gone, costs no try, and tells nothing. All nodes count durably and say so to each other before any of them opens
//! its share of the check value. So an honest node that has opened one has counted, and so have all other honest nodes. The name of
//! the key is taken before the tries are looked at, so no two imports of one file run at once.
//!
//! The file can be imported once: each node notes it durably before it stores the key (`store/src/sealed.rs`), and refuses it once
//! the key was announced, also after it was deleted. All nodes take part, so one that remembers is enough. A file whose import was interrupted
//! before the key was announced anywhere can be imported again.

use polyclave_api::{CheckKind, KeyCheck, Lifetime, NewKey, Reason, Refusal, SealedImport};
use polyclave_cipher::{Cipher, modes};
use polyclave_config::{Moment, open_import};
use polyclave_store::KeyState;
use zeroize::Zeroizing;

use crate::error::of_store;
use crate::requests::service::Service;

/// How often nodes open the check value of a key that they have made of one file. More than once, because an import can be interrupted after
/// that.
const MOST_TRIES: u8 = 8;

/// A sealed key as this node has opened it.
pub(crate) struct SealedKey {
    pub(crate) new: NewKey,
    pub(crate) cipher: Cipher,
    pub(crate) expected: KeyCheck,
    pub(crate) nonce: [u8; 32],
    /// This node's part.
    pub(crate) part: Zeroizing<Vec<u8>>,
}

fn refusal(told: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Key, told)
}

/// Checks a sealed key, and opens this node's part of it.
pub(super) fn open(service: &Service, sealed: &SealedImport, cipher: Cipher) -> Result<SealedKey, Refusal> {
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
        let told =
            format!("a sealed key of {} parts for {} nodes", sealed.parts.len(), service.members.nodes);
        return Err(Refusal::new(Reason::Malformed, told));
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
    if note.tries >= MOST_TRIES {
        return Err(refusal(format!(
            "no key was made of this file in {MOST_TRIES} attempts: it is wrong, or a node is. See each node's log, and seal the key anew"
        )));
    }
    Ok(())
}
