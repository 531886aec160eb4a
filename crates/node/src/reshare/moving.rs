//! Some keys at a time: the old nodes deal their shares of them, and the new nodes verify what they get, compute the check values, and store
//! all of it beside what they have in use.
//!
//! A check value has 3 to 5 bytes. So it shows a mistake, and proves nothing against a cheater: that is what the check in
//! `protocol/src/shamir/reshare.rs` is for. Under `shamir`, where nobody cheats, a wrong share (of a damaged memory, say) passes with
//! probability 2^-24 for ciphers with blocks of 8 bytes, and 2^-40 for others.

use std::collections::HashMap;

use polyclave_cipher::{Cells, Compiled, catalog, compile, modes};
use polyclave_protocol::among::{Among, in_network};
use polyclave_protocol::any::{AnyServiceSession, AnySetup};
use polyclave_protocol::evaluate::release;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::{ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, Stream, hello};
use polyclave_protocol::shamir::reshare::{Fault, Shapes};
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Node;
use super::offers::{Common, CommonKeys, stored};
use crate::Result;
use crate::computation::pieces::run;
use crate::error::system;
use crate::keys::key::{ROUND_KEYS, Shares};
use crate::store::MovedKey;

/// How many keys move together: these are in memory.
const KEYS_AT_ONCE: usize = 128;

/// A new node's side of the new cluster.
struct NewSide {
    setup: AnySetup,
    session: AgreedSession,
    /// By cipher: `zero` and `round_keys` to `check_value`, one key a lane.
    circuits: HashMap<String, Compiled>,
}

/// Moves all keys. Returns what a new node stores of the new common secrets.
pub(super) fn move_all(
    node: &mut Node<'_>,
    common: &CommonKeys,
    session: &mut AgreedSession,
    net: &mut dyn Net,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let places = node.plan.new_places();
    let mut new = match node.plan.role(node.me).new {
        Some(_) => Some(NewSide::agree(node, &places, net).map_err(|e| in_network(&places, e))?),
        None => None,
    };
    let keys = &common.keys;
    // The first piece replaces what an earlier try left, so there is one even if there are no keys.
    let (first, rest) = keys.split_at(keys.len().min(KEYS_AT_ONCE));
    let mut moved = 0;
    for (number, piece) in (0..).zip([first].into_iter().chain(rest.chunks(KEYS_AT_ONCE))) {
        move_piece(node, (number, piece), new.as_mut(), &session.stream(), net)?;
        moved += piece.len();
        if moved > 0 {
            (node.tell)(&format!("{moved} of {} keys", keys.len()));
        }
    }
    Ok(new.map(|new| node.plan.to.save_setup(&new.setup)))
}

impl NewSide {
    fn agree(node: &Node<'_>, places: &[Party], net: &mut dyn Net) -> Result<NewSide> {
        let (plan, mut among) = (node.plan, Among::new(net, places)?);
        let parameters =
            HandshakeParameters::new(plan.new.nodes()).with("cluster", &plan.new.lasting_digest());
        let session = hello(&plan.to.handshake(parameters), &mut among)?;
        let setup = plan.to.set_up(&mut among)?;
        let setup = plan.to.renew(&setup, &mut among)?;
        Ok(NewSide { setup, session, circuits: HashMap::new() })
    }
}

fn move_piece(
    node: &Node<'_>,
    (number, piece): (u32, &[Common]),
    new: Option<&mut NewSide>,
    stream: &Stream,
    net: &mut dyn Net,
) -> Result<()> {
    let public: Vec<Stored<'_>> = piece.iter().flat_map(Common::public).collect();
    let shapes = Shapes::parse(&public)?;
    let dealt = if public.is_empty() { Vec::new() } else { exchange(node, piece, &shapes, stream, net)? };
    let Some(new) = new else { return Ok(()) };
    let places = node.plan.new_places();
    let mut among = Among::new(net, &places)?;
    let moved = match public.is_empty() {
        true => Vec::new(),
        false => node
            .plan
            .movement
            .take(&shapes, &dealt, &mut among)
            .map_err(|fault| told(node, &places, fault))?,
    };
    drop(dealt);
    let mut moved = moved.into_iter();
    let mut keys = Vec::with_capacity(piece.len());
    for key in piece {
        let shares: Shares = key.parts.keys().cloned().zip(moved.by_ref()).collect();
        keys.push(MovedKey { info: key.info.clone(), spent: key.spent, shares });
    }
    new.compare_check_values(node, &keys, &mut among).map_err(|e| in_network(&places, e))?;
    node.store.prepare_moved(number, &keys).map_err(system)
}

/// The old nodes deal; returns what each of them dealt to this node, if it is a new one.
fn exchange(
    node: &Node<'_>,
    piece: &[Common],
    shapes: &Shapes,
    stream: &Stream,
    net: &mut dyn Net,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let (plan, role, me) = (node.plan, node.plan.role(node.me), net.me());
    let mut dealt = match role.old {
        Some(old) => deal(node, old, piece, stream)?,
        None => Vec::new(),
    };
    let own =
        role.new.filter(|_| role.old.is_some()).map(|number| std::mem::take(&mut dealt[number.index()]));
    let to = |(place, receiver): (Party, super::plan::Role)| match receiver.new {
        Some(number) if place != me => dealt.get(number.index()).map_or(&[][..], |message| &message[..]),
        _ => &[][..],
    };
    let out: Vec<&[u8]> = plan.roles().map(to).collect();
    let is_due = |(place, dealer): (Party, super::plan::Role)| {
        role.new.is_some() && place != me && dealer.old.is_some()
    };
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

fn deal(node: &Node<'_>, old: Party, piece: &[Common], stream: &Stream) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let setup = node.store.setup().map_err(system)?;
    let setup = setup.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let mut shares = Vec::with_capacity(piece.len());
    for key in piece {
        shares.push(node.store.shares_of(key.info.id).map_err(system)?);
    }
    let values: Vec<Stored<'_>> = shares.iter().flatten().map(|(part, bytes)| stored(part, bytes)).collect();
    node.plan.movement.deal(&setup.bytes, old, stream, &values)
}

/// A fault, with the names of those who are to blame.
fn told(node: &Node<'_>, places: &[Party], fault: Fault) -> Error {
    let (old, new) = (|nodes| node.plan.old_names(nodes), |nodes| node.plan.new_names(nodes));
    let alone = |node: Party| -> PartySet { [node].into_iter().collect() };
    let told = match fault {
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
    Error::System(format!("{told}. No key has moved; find the machine, and leave it out"))
}

impl NewSide {
    /// Computes the check value of each key from the new shares, and compares it with the one that was stored.
    fn compare_check_values(&mut self, node: &Node<'_>, keys: &[MovedKey], net: &mut dyn Net) -> Result<()> {
        // A component of a key has no round keys before it is combined. Only the check of what was dealt speaks for it.
        let is_expanded =
            |key: &&MovedKey| key.info.component.is_none() || key.shares.contains_key(ROUND_KEYS);
        let keys: Vec<&MovedKey> = keys.iter().filter(is_expanded).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut protocol = node.plan.to.join(&self.setup, self.session.stream(), net.members())?;
        // Keys with other images of their cells, of an older version of the program, are computed apart.
        let mut groups: Vec<(Form<'_>, Vec<&MovedKey>)> = Vec::new();
        for key in keys {
            let form = Form::of(key)?;
            match groups.iter_mut().find(|(other, _)| *other == form) {
                Some((_, group)) => group.push(key),
                None => groups.push((form, vec![key])),
            }
        }
        for (form, group) in groups {
            let values = self.check_values(&form, &group, &mut protocol, net)?;
            let wrong = group.iter().zip(values).find(|(key, value)| key.info.check_value != *value);
            if let Some((key, _)) = wrong {
                return Err(Error::System(format!(
                    "the new nodes compute another check value of the key {} than the one that is stored: some old node has a wrong share. \
                     No key has moved. Restore its backup, or leave it out",
                    key.info.properties.name
                )));
            }
        }
        protocol.check(net)
    }

    fn check_values(
        &mut self,
        form: &Form<'_>,
        group: &[&MovedKey],
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u8>>> {
        let unknown = || Error::System(format!("this version knows no cipher '{}'", form.cipher));
        if !self.circuits.contains_key(form.cipher) {
            let cipher =
                catalog::find(form.cipher).filter(|cipher| cipher.key_bytes > 0).ok_or_else(unknown)?;
            let circuit = compile(&modes::check_values(&protocol.form(cipher)), protocol);
            self.circuits.insert(form.cipher.to_owned(), circuit);
        }
        let circuit = self.circuits.get(form.cipher).ok_or_else(unknown)?;
        let parts = group.iter().map(|key| protocol.restore(round_keys(key)?)).collect::<Result<Vec<_>>>()?;
        let round_keys = protocol.join_lanes(&parts.iter().collect::<Vec<_>>());
        let (zero, lanes) = (&circuit.inputs()[0], group.len());
        let zeros = Cells::zero(zero.cells.len(), zero.bits, lanes);
        let inputs = [Input::Public(&zeros), Input::Shared(&round_keys)];
        let values = run(protocol, net, circuit, lanes, &inputs)?.remove(0);
        let values = release(protocol, &values, Owner::All, net)?;
        let values = values
            .ok_or_else(|| Error::System("the check values were not opened".into()))?
            .accept()
            .to_blocks();
        Ok(values.chunks(values.len() / lanes).map(<[u8]>::to_vec).collect())
    }
}

/// What keys have to have in common to be computed together.
#[derive(PartialEq, Eq)]
struct Form<'k> {
    cipher: &'k str,
    bytes: usize,
}

impl<'k> Form<'k> {
    fn of(key: &'k MovedKey) -> Result<Self> {
        Ok(Form { cipher: &key.info.properties.cipher, bytes: round_keys(key)?.len() })
    }
}

fn round_keys(key: &MovedKey) -> Result<&[u8]> {
    let missing = || Error::System(format!("the key {} has no round keys", key.info.properties.name));
    key.shares.get(ROUND_KEYS).map(|bytes| &bytes[..]).ok_or_else(missing)
}
