//! Old nodes deal their shares of some keys to the new ones, under Shamir sharing
//! (`protocol/src/shamir/reshare.rs`).

use polyclave_protocol::among::{Among, in_network};
use polyclave_protocol::net::Net;
use polyclave_protocol::service::Stored;
use polyclave_protocol::session::Stream;
use polyclave_protocol::shamir::reshare::{Fault, Move, Shapes};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::MovedKey;
use zeroize::Zeroizing;

use super::Node;
use super::offers::{Common, stored};
use super::plan::Role;
use crate::Result;
use crate::computation::key::Shares;
use crate::error::system;

/// How many keys move together: these are in memory.
pub(super) const KEYS_AT_ONCE: usize = 128;

/// Moves some keys. Returns them with a new node's shares; nothing at other nodes.
pub(super) fn move_piece(
    node: &Node<'_>,
    movement: &Move,
    piece: &[Common],
    stream: &Stream,
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let public: Vec<Stored<'_>> = piece.iter().flat_map(Common::public).collect();
    let shapes = Shapes::parse(&public)?;
    let dealt =
        if public.is_empty() { Vec::new() } else { exchange(node, movement, (piece, &shapes), stream, net)? };
    if node.plan.role(node.me).new.is_none() {
        return Ok(Vec::new());
    }
    let places = node.plan.new_places();
    let mut among = Among::new(net, &places)?;
    let moved = match public.is_empty() {
        true => Vec::new(),
        false => {
            movement.take(&shapes, &dealt, &mut among).map_err(|fault| message_of(node, &places, fault))?
        }
    };
    drop(dealt);
    let mut moved = moved.into_iter();
    let mut keys = Vec::with_capacity(piece.len());
    for key in piece {
        let shares: Shares = key.parts.keys().cloned().zip(moved.by_ref()).collect();
        keys.push(key.moved(shares));
    }
    Ok(keys)
}

/// The old nodes deal; returns what each of them dealt to this node, if it is a new one.
fn exchange(
    node: &Node<'_>,
    movement: &Move,
    (piece, shapes): (&[Common], &Shapes),
    stream: &Stream,
    net: &mut dyn Net,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let (plan, role, me) = (node.plan, node.plan.role(node.me), net.me());
    let mut dealt = match role.old {
        Some(old) => deal(node, movement, old, piece, stream)?,
        None => Vec::new(),
    };
    let own =
        role.new.filter(|_| role.old.is_some()).map(|number| std::mem::take(&mut dealt[number.index()]));
    let to = |(place, receiver): (Party, Role)| match receiver.new {
        Some(number) if place != me => dealt.get(number.index()).map_or(&[][..], |message| &message[..]),
        _ => &[][..],
    };
    let out: Vec<&[u8]> = plan.roles().map(to).collect();
    let is_due = |(place, dealer): (Party, Role)| role.new.is_some() && place != me && dealer.old.is_some();
    let mut into: Vec<Zeroizing<Vec<u8>>> = plan
        .roles()
        .map(|dealer| Zeroizing::new(vec![0; if is_due(dealer) { shapes.message_bytes() } else { 0 }]))
        .collect();
    net.exchange(&out, &mut into.iter_mut().map(|m| m.as_mut_slice()).collect::<Vec<_>>())?;
    if let Some(own) = own {
        into[me.index()] = own;
    }
    // Old nodes come first.
    into.truncate(plan.dealers.len());
    Ok(into)
}

fn deal(
    node: &Node<'_>,
    movement: &Move,
    old: Party,
    piece: &[Common],
    stream: &Stream,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let setup = node.store.setup().map_err(system)?;
    let setup = setup.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let mut shares = Vec::with_capacity(piece.len());
    for key in piece {
        shares.push(node.store.shares_of(key.info.id).map_err(system)?);
    }
    let values: Vec<Stored<'_>> = shares.iter().flatten().map(|(part, bytes)| stored(part, bytes)).collect();
    let mut dealt = movement.deal(&setup.bytes, old, stream, &values)?;
    node.faults.spoil_dealt(dealt.iter_mut().map(|message| &mut message[..]));
    Ok(dealt)
}

/// A fault, with the names of the nodes that caused it.
fn message_of(node: &Node<'_>, places: &[Party], fault: Fault) -> Error {
    let (old, new) = (|nodes| node.plan.old_names(nodes), |nodes| node.plan.new_names(nodes));
    let alone = |node: Party| -> PartySet { [node].into_iter().collect() };
    let message = match fault {
        Fault::Failed(error) => return in_network(places, error),
        Fault::Dealers(dealers) => format!(
            "{} sent something else than a sharing of its shares: it cheats, or its disk or memory is damaged",
            old(dealers)
        ),
        Fault::Receivers(receivers) => {
            format!("{} contradicts more old nodes than can cheat: it cheats, or is damaged", new(receivers))
        }
        Fault::Contradiction { dealer, receivers } => format!(
            "{} and {} contradict each other about what the first sent: one of them cheats, or is damaged",
            old(alone(dealer)),
            new(receivers)
        ),
        Fault::Undecided => format!(
            "the shares of {} do not fit together, and too few old nodes take part to find out whose is wrong",
            old(node.plan.dealers)
        ),
    };
    Error::System(format!("{message}. No key has moved; find the machine, and leave it out"))
}
