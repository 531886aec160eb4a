//! Opens some keys under masks that the new nodes share: for a move to a cluster of another protocol, and
//! under protocols with MACs (`protocol/src/handover.rs`, which has the security argument).
//!
//! Only the key itself, if it may be wrapped, and the round keys move, as bytes: those are the same in all
//! circuits of a cipher. The new nodes compute anew what else its modes need (`reshare/receiving.rs`).
//!
//! Many keys move in one handover, at the cost in masks, checks and rounds of one value. The same part of all
//! keys of a cipher is one value, with one key a lane.
//!
//! A check that fails among the old nodes puts the node under quarantine, durably and before anything else,
//! as it would in a request (`material/quarantine.rs`). If the old nodes have a MAC key, the failure also
//! counts as one under it, and a node whose MAC key bears no more failures takes no part.

use std::collections::BTreeMap;

use polyclave_cipher::Cipher;
use polyclave_cipher::keyed::{key_shape, round_keys_shape};
use polyclave_protocol::among::{Among, in_network, in_network_of};
use polyclave_protocol::any::{AnyServiceSession, AnySetup, AnyShared};
use polyclave_protocol::authenticated::{Guesses, MAX_UNANSWERED};
use polyclave_protocol::handover::{Fault, Handover, Leaving, Sessions, Shape, Side};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::{Error, Party};
use polyclave_store::{MovedKey, Store, StoreError};

use super::Node;
use super::moving::NewSide;
use super::offers::{Common, MASKED};
use super::plan::Way;
use super::receiving::{Known, received};
use crate::clock::now;
use crate::computation::circuits::{Library, form};
use crate::computation::key::{RAW, ROUND_KEYS, SECOND};
use crate::error::system;
use crate::material::quarantine::{Failure, refuse_guessed};
use crate::{FaultInjection, Result};

/// How many keys move together, by the number of new nodes: the same at all nodes. Their material is in
/// memory, up to 2 MB a key. (Check values of HMAC take more, and are computed piece by piece.) Each new node
/// makes it with every other one. Nodes that have no part in a step hear nothing meanwhile and wait for
/// [`IDLE`](super::IDLE) at most, and the next try would be as slow. So the more nodes there are, the fewer
/// keys.
pub(super) fn keys_at_once(new_nodes: usize) -> usize {
    (128 / new_nodes.max(1)).clamp(8, 64)
}

/// An old node's side of the old cluster.
pub(super) struct OldSide {
    setup: AnySetup,
    session: AgreedSession,
}

impl OldSide {
    /// The old nodes meet once more, if keys move under masks.
    pub(super) fn agree(node: &Node<'_>, net: &mut dyn Net) -> Result<Option<OldSide>> {
        let plan = node.plan;
        let (Way::Masks, Some(me)) = (&plan.way, plan.role(node.me).old) else { return Ok(None) };
        refuse_guessed(node.store, plan.from.has_mac_key())?;
        let setup = node.store.setup().map_err(system)?;
        let setup = setup.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
        let places = plan.old_places();
        let agree = |net: &mut dyn Net| -> Result<OldSide> {
            let mut among = Among::with_absent(net, &places)?;
            let parameters =
                HandshakeParameters::new(plan.old.nodes()).with("cluster", &plan.old.lasting_digest());
            let session = hello(&plan.from.handshake(parameters), &mut among)?;
            let setup = plan.from.restore_setup(me, &setup.bytes)?;
            let setup = plan.from.renew(&setup, &mut among)?;
            Ok(OldSide { setup, session })
        };
        agree(net).map(Some).map_err(|e| judged(node, in_network_of(&places, e)))
    }
}

/// The same part of some keys of one cipher, which moves as one value: where its bytes stand among all that
/// moves.
pub(crate) struct KeyGroup<'k> {
    pub(super) part: &'static str,
    /// One a lane.
    pub(super) keys: Vec<&'k Common>,
    pub(crate) at: usize,
    pub(crate) shape: Shape,
}

impl KeyGroup<'_> {
    pub(super) fn cipher(&self) -> &str {
        &self.keys[0].info.properties.cipher
    }
}

/// Moves some keys. Returns them with a new node's shares; nothing at other nodes.
pub(super) fn move_piece(
    node: &Node<'_>,
    (piece, library): (&[Common], &Library),
    (old, new): (Option<&mut OldSide>, Option<&mut NewSide>),
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let plan = node.plan;
    let batches = layout(piece, library)?;
    let Some(last) = batches.last() else { return Ok(Vec::new()) };
    let (old_places, new_places) = (plan.old_places(), plan.new_places());
    let places: Vec<Option<Party>> = new_places.iter().copied().map(Some).collect();
    let handover = Handover {
        from: Side { config: &plan.from, places: &old_places },
        to: Side { config: &plan.to, places: &places },
        len: last.at + last.shape.bytes(),
    };
    let mut of_old = match old {
        Some(old) => Some(plan.from.join(&old.setup, old.session.stream(), plan.dealers)?),
        None => None,
    };
    let mut of_new = match new {
        Some(new) => Some((new.join_for_many(node)?, new.join(node)?, new.completions())),
        None => None,
    };
    let leaving = match &of_old {
        Some(session) => restored((node.store, &node.faults), (&batches, library), session)?,
        None => Vec::new(),
    };
    let mut sessions = Sessions { old: of_old.as_mut(), new: of_new.as_mut().map(|(session, ..)| session) };
    let message = |fault: Fault| match fault {
        Fault::Old(error) => judged(node, error),
        Fault::Elsewhere(error) => error,
    };
    let mut drawn = handover.draw(&mut sessions, net).map_err(message)?;
    node.faults.spoil_dealt([&mut drawn.differences[..]]);
    let arrived = handover.complete(drawn, &leaving, &mut sessions, net).map_err(message)?;
    match of_new {
        Some((mut session, stored, completions)) => {
            let mut among = Among::new(net, &new_places)?;
            let circuits = Known { library, stored: &stored, completions, by_bits: false };
            received((piece, &batches), &arrived, circuits, &mut session, &mut among)
                .map_err(|e| in_network(&new_places, e))
        }
        None => Ok(Vec::new()),
    }
}

/// Returns the error once this node has stored on its disk what it means for the old common secrets. Parties
/// are those of the common network.
fn judged(node: &Node<'_>, error: Error) -> Error {
    if node.plan.from.adversary() != Adversary::Abort {
        return error;
    }
    let name_of = |place: Party| node.plan.name(place).to_owned();
    let written = match Failure::of(&error, "keys moved to other nodes", name_of) {
        Some(failure) => failed(node, &failure),
        None if matches!(error, Error::Unanswered { .. }) && node.plan.from.has_mac_key() => {
            node.store.count_guesses(Guesses { failed: 0, unanswered: 1 })
        }
        None => Ok(()),
    };
    match written.and_then(|()| node.store.guesses()) {
        Ok(guesses) => unless_too_often(error, guesses),
        Err(e) => Error::System(format!("{error}; and this could not be written down: {e}")),
    }
}

/// A peer may hide a wrong guess behind each silence. So after as many as a MAC key bears in use, no try
/// follows another one by itself.
fn unless_too_often(error: Error, guesses: Guesses) -> Error {
    match error {
        Error::Unanswered { .. } if guesses.unanswered >= MAX_UNANSWERED => Error::System(format!(
            "{error}. {} checks were left without an answer under the MAC key in use, so this is not tried again by itself: find out              which machine falls silent, then give the command again",
            guesses.unanswered
        )),
        error => error,
    }
}

fn failed(node: &Node<'_>, failure: &Failure) -> Result<(), StoreError> {
    let is_first = node.store.quarantined()?.is_none();
    match node.plan.from.has_mac_key() {
        true => node.store.count_failure(&failure.quarantine(), true)?,
        false => node.store.quarantine(&failure.reason, now())?,
    }
    if is_first {
        failure.announce(node.logbook);
    }
    Ok(())
}

/// Where the parts of some keys stand, one after another: the same at all nodes.
pub(crate) fn layout<'k>(piece: &'k [Common], library: &Library) -> Result<Vec<KeyGroup<'k>>> {
    let mut ciphers: BTreeMap<&str, Vec<&Common>> = BTreeMap::new();
    for key in piece {
        let properties = &key.info.properties;
        let has = |part: &str| key.parts.contains_key(part);
        let is_whole = match has(ROUND_KEYS) {
            true => has(SECOND) == (properties.parts() > 1),
            false => has(RAW) && !has(SECOND) && key.info.component.is_some(),
        };
        if !is_whole || key.parts.keys().any(|part| !MASKED.contains(&part.as_str())) {
            let name = &properties.name;
            return Err(Error::System(format!(
                "the old nodes have other shares of the key {name} than its properties say"
            )));
        }
        ciphers.entry(&properties.cipher).or_default().push(key);
    }
    let (mut batches, mut at) = (Vec::new(), 0);
    for (name, keys) in ciphers {
        let cipher = cipher(library, name)?;
        for part in MASKED {
            let keys: Vec<&Common> =
                keys.iter().copied().filter(|key| key.parts.contains_key(part)).collect();
            if !keys.is_empty() {
                let (count, bits) = cells(&cipher, part);
                let shape = Shape { count, bits, lanes: keys.len() };
                batches.push(KeyGroup { part, keys, at, shape });
                at += shape.bytes();
            }
        }
    }
    Ok(batches)
}

fn cipher(library: &Library, name: &str) -> Result<Cipher> {
    let found = library.cipher(name).ok().filter(|cipher| cipher.key_bytes > 0);
    found.ok_or_else(|| Error::System(format!("this version knows no cipher '{name}' with a key")))
}

/// How many cells a part has, and the bits of each.
fn cells(cipher: &Cipher, part: &str) -> (usize, u8) {
    if part == RAW { key_shape(cipher) } else { round_keys_shape(cipher) }
}

/// At an old node: its stored values. Those with other images of their cells, of an older version of the
/// program, leave apart.
pub(crate) fn restored(
    (store, faults): (&Store, &FaultInjection),
    (batches, library): (&[KeyGroup<'_>], &Library),
    session: &AnyServiceSession,
) -> Result<Vec<Leaving>> {
    let mut leaving = Vec::new();
    for KeyGroup { part, keys, .. } in batches {
        let cipher = form(cipher(library, &keys[0].info.properties.cipher)?, session);
        let (count, bits) = cells(&cipher, part);
        let mut runs: Vec<Vec<AnyShared>> = Vec::new();
        for key in keys {
            let mut shares = store.shares_of(key.info.id).map_err(system)?;
            let missing =
                || Error::System(format!("the {part} of the key {} is gone", key.info.properties.name));
            let stored = shares.get_mut(*part).ok_or_else(missing)?;
            faults.spoil_stored(stored);
            let value = session.restore(stored)?;
            match runs.last_mut() {
                Some(values) if session.can_join(&values[0], &value) => values.push(value),
                _ => runs.push(vec![value]),
            }
        }
        for values in runs {
            let shape = Shape { count, bits, lanes: values.len() };
            leaving.push(Leaving { value: session.join_lanes(&values.iter().collect::<Vec<_>>()), shape });
        }
    }
    Ok(leaving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_new_nodes_there_are_the_fewer_keys_move_together() {
        let of: Vec<usize> = [1, 2, 3, 4, 9, 16, 64].into_iter().map(keys_at_once).collect();
        assert_eq!(of, [64, 64, 42, 32, 14, 8, 8]);
    }

    #[test]
    fn after_too_many_silences_no_try_follows_another_by_itself() {
        let silence = || Error::Unanswered { peer: Party(1), detail: "it is gone".into() };
        let after = |unanswered| unless_too_often(silence(), Guesses { failed: 0, unanswered });
        assert_eq!(after(MAX_UNANSWERED - 1), silence());
        assert!(matches!(after(MAX_UNANSWERED), Error::System(_)), "{:?}", after(MAX_UNANSWERED));
        let gone = Error::Closed { peer: Party(1), detail: "it is gone".into() };
        assert_eq!(unless_too_often(gone.clone(), Guesses { failed: 0, unanswered: u32::MAX }), gone);
    }
}
