//! Some keys are opened under masks, which the new nodes share: to a cluster of another protocol, and under protocols with MACs
//! (`protocol/src/handover.rs`, which has the security argument).
//!
//! Only the key itself, if it may be wrapped, and the round keys move, as bytes: those are the same in all circuits of a cipher. The new nodes
//! compute anew what else its modes need, in the same way as for a key that is made.
//!
//! A check that fails among the old nodes counts as one under their MAC key, durably and before anything else, and puts the node under
//! quarantine, as it would in a request (`material/quarantine.rs`). A node whose MAC key bears no more failures takes no part.

use std::collections::HashMap;

use polyclave_cipher::{Cells, Cipher, CompiledPort, Port};
use polyclave_protocol::among::{Among, in_network, in_network_of};
use polyclave_protocol::any::{AnyServiceSession, AnySetup, AnyShared};
use polyclave_protocol::handover::{Arrived, Fault, Handover, Leaving, Sessions, Side};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig, Session};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::spdz::Guesses;
use polyclave_protocol::{Error, Party};

use super::Node;
use super::moving::NewSide;
use super::offers::{Common, MASKED};
use super::plan::Way;
use crate::Result;
use crate::computation::circuits::Library;
use crate::error::system;
use crate::keys::key::{RAW, ROUND_KEYS, SECOND, Shares, only_itself};
use crate::keys::make::complete;
use crate::material::quarantine::refuse_guessed;
use crate::operator::clock::now;
use crate::store::MovedKey;

/// How many keys move together. Nodes that have no part in a step wait as long as it takes.
pub(super) const KEYS_AT_ONCE: usize = 8;

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
        if plan.from.adversary() == Adversary::Abort {
            refuse_guessed(node.store)?;
        }
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

/// What moves of a key: where its bytes stand among all that moves.
struct Part<'k> {
    key: &'k Common,
    part: &'k str,
    at: usize,
    bytes: usize,
}

/// Moves some keys. Returns them with a new node's shares; nothing at other nodes.
pub(super) fn move_piece(
    node: &Node<'_>,
    (piece, library): (&[Common], &Library),
    (old, new): (Option<&mut OldSide>, Option<&mut NewSide>),
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let plan = node.plan;
    let parts = layout(piece, library)?;
    let Some(last) = parts.last() else { return Ok(Vec::new()) };
    let (old_places, new_places) = (plan.old_places(), plan.new_places());
    let places: Vec<Option<Party>> = new_places.iter().copied().map(Some).collect();
    let handover = Handover {
        from: Side { config: &plan.from, places: &old_places },
        to: Side { config: &plan.to, places: &places },
        len: last.at + last.bytes,
    };
    let mut of_old = match old {
        Some(old) => Some(plan.from.join(&old.setup, old.session.stream(), plan.dealers)?),
        None => None,
    };
    let mut of_new = match new {
        Some(new) => Some(new.join(node)?),
        None => None,
    };
    let values = match &of_old {
        Some(session) => restored(node, (&parts, library), session)?,
        None => Vec::new(),
    };
    let leaving: Vec<Leaving<'_>> =
        values.iter().map(|(value, count, bits)| Leaving { value, count: *count, bits: *bits }).collect();
    let mut sessions = Sessions { old: of_old.as_mut(), new: of_new.as_mut() };
    let told = |fault: Fault| match fault {
        Fault::Old(error) => judged(node, error),
        Fault::Elsewhere(error) => error,
    };
    let mut drawn = handover.draw(&mut sessions, net).map_err(told)?;
    node.conduct.spoil_dealt([&mut drawn.differences[..]]);
    let arrived = handover.complete(drawn, &leaving, &mut sessions, net).map_err(told)?;
    match of_new {
        Some(mut session) => {
            let mut among = Among::new(net, &new_places)?;
            taken((piece, library), &parts, &arrived, &mut session, &mut among)
                .map_err(|e| in_network(&new_places, e))
        }
        None => Ok(Vec::new()),
    }
}

/// The error, after what it means for the old common secrets is on this node's disk.
fn judged(node: &Node<'_>, error: Error) -> Error {
    if node.plan.from.adversary() != Adversary::Abort || !error.may_be_a_wrong_guess() {
        return error;
    }
    let unanswered = matches!(error, Error::Unanswered { .. });
    let guesses = Guesses { failed: u32::from(!unanswered), unanswered: u32::from(unanswered) };
    let noted = node.store.count_guesses(guesses).and_then(|()| match unanswered {
        true => Ok(()),
        false => node.store.quarantine("a check failed while keys moved to other nodes", now()),
    });
    match noted {
        Ok(()) => error,
        Err(e) => Error::System(format!("{error}; and this could not be written down: {e}")),
    }
}

/// Where the parts of some keys stand, one after another: the same at all nodes.
fn layout<'k>(piece: &'k [Common], library: &Library) -> Result<Vec<Part<'k>>> {
    let (mut parts, mut at) = (Vec::new(), 0);
    for key in piece {
        let properties = &key.info.properties;
        let cipher = cipher(library, &properties.cipher)?;
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
        for part in key.parts.keys() {
            let port = port(&cipher, part);
            let bytes = Cells::block_bytes(port.cells.len(), port.bits);
            parts.push(Part { key, part, at, bytes });
            at += bytes;
        }
    }
    Ok(parts)
}

fn cipher(library: &Library, name: &str) -> Result<Cipher> {
    let found = library.cipher(name).ok().filter(|cipher| cipher.key_bytes > 0);
    found.ok_or_else(|| Error::System(format!("this version knows no cipher '{name}' with a key")))
}

/// The cells of a part.
fn port<'c>(cipher: &'c Cipher, part: &str) -> &'c Port {
    if part == RAW { &cipher.key_schedule.inputs()[0] } else { &cipher.key_schedule.outputs()[0] }
}

/// At an old node: its stored values, with the number and width of their cells.
fn restored(
    node: &Node<'_>,
    (parts, library): (&[Part<'_>], &Library),
    session: &AnyServiceSession,
) -> Result<Vec<(AnyShared, usize, u8)>> {
    let mut forms: HashMap<&str, Cipher> = HashMap::new();
    let mut values = Vec::with_capacity(parts.len());
    for Part { key, part, .. } in parts {
        let name = &key.info.properties.cipher;
        if !forms.contains_key(name.as_str()) {
            forms.insert(name, session.form(cipher(library, name)?));
        }
        let port = port(&forms[name.as_str()], part);
        let mut shares = node.store.shares_of(key.info.id).map_err(system)?;
        let missing = || Error::System(format!("the {part} of the key {} is gone", key.info.properties.name));
        let stored = shares.get_mut(*part).ok_or_else(missing)?;
        node.conduct.spoil_stored(stored);
        let value = session.restore(stored)?;
        values.push((value, port.cells.len(), port.bits));
    }
    Ok(values)
}

/// At a new node: the keys, with everything that their modes need.
fn taken(
    (piece, library): (&[Common], &Library),
    parts: &[Part<'_>],
    arrived: &Arrived,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let mut keys = Vec::with_capacity(piece.len());
    for key in piece {
        let properties = &key.info.properties;
        let unknown = || Error::System(format!("this version knows no cipher '{}'", properties.cipher));
        let circuits = library.of(&properties.cipher, session).ok_or_else(unknown)?;
        let mut value = |part: &str| -> Result<Option<AnyShared>> {
            let mut placed = parts.iter().filter(|p| p.key.info.id == key.info.id);
            let Some(Part { at, .. }) = placed.find(|p| p.part == part) else { return Ok(None) };
            let port: &CompiledPort =
                if part == RAW { &circuits.key } else { &circuits.key_schedule.outputs()[0] };
            arrived.value(*at, (port.cells.len(), port.bits), &port.views(), session, net).map(Some)
        };
        let (raw, round_keys, second) = (value(RAW)?, value(ROUND_KEYS)?, value(SECOND)?);
        let shares: Shares = match (round_keys, &raw) {
            (Some(round_keys), _) => {
                let all = [Some(round_keys), second].into_iter().flatten().collect();
                complete(all, properties, session, net, &circuits)?.save(raw.as_ref(), session)
            }
            (None, Some(raw)) => only_itself(raw, session),
            (None, None) => {
                return Err(Error::System(format!("nothing of the key {} has arrived", properties.name)));
            }
        };
        keys.push(MovedKey { info: key.info.clone(), spent: key.spent, shares });
    }
    session.check(net)?;
    Ok(keys)
}
