//! Some keys at a time: the old nodes deal their shares of them (`reshare/shares.rs`) or open them under
//! masks (`reshare/masks.rs`), and the new nodes verify what they get, compute the check values, and store
//! all of it beside what they have in use.
//!
//! A check value has 3 to 5 bytes. So it shows a mistake, and proves nothing against a cheater: that is what
//! the checks in `protocol/src/shamir/reshare.rs` and `protocol/src/handover.rs` are for. Under `shamir`,
//! where nobody cheats, a wrong share (of a damaged memory, say) passes with probability 2^-24 for ciphers
//! with blocks of 8 bytes, and 2^-40 for others.

use std::collections::HashMap;
use std::sync::Arc;

use polyclave_api::KeyInfo;
use polyclave_cipher::hmac::hash_of;
use polyclave_cipher::{Cells, Compiled, compile, keyed, modes};
use polyclave_protocol::among::{Among, in_network};
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession, AnySetup, AnyShared};
use polyclave_protocol::evaluate::release;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::MovedKey;
use zeroize::Zeroizing;

use super::offers::CommonKeys;
use super::plan::Way;
use super::receiving::Completions;
use super::{Node, masks, shares};
use crate::Result;
use crate::computation::circuits::{Library, form};
use crate::computation::hmac_circuits::{Hashing, HmacCircuits};
use crate::computation::key::{ROUND_KEYS, SECOND};
use crate::computation::pieces::evaluate_within;
use crate::computation::progress::Progress;
use crate::error::system;

/// What the evaluation of check values takes in memory at once, about. The same at all nodes.
const BYTES_AT_ONCE: usize = 32 << 20;

/// A new node's side of the new cluster.
pub(super) struct NewSide {
    setup: AnySetup,
    session: AgreedSession,
    /// In which form the protocol computes what keys need, if it has another one for that.
    for_many: Option<AnyServiceConfig>,
    /// By cipher: `zero` and `round_keys` to `check_value`, one key a lane.
    circuits: HashMap<String, Compiled>,
    hmac: Arc<HmacCircuits>,
    completions: Completions,
}

/// Moves all keys. Returns what a new node stores of the new common secrets.
pub(super) fn move_all(
    node: &mut Node<'_>,
    common: &CommonKeys,
    session: &mut AgreedSession,
    net: &mut dyn Net,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let places = node.plan.new_places();
    let at_once = match node.plan.way {
        Way::Shares(..) => shares::KEYS_AT_ONCE,
        Way::Masks => masks::keys_at_once(node.plan.new.nodes()),
    };
    let library = Library::default();
    let mut old = masks::OldSide::agree(node, net)?;
    let mut new = match node.plan.role(node.me).new {
        Some(_) => Some(NewSide::agree(node, &places, net).map_err(|e| in_network(&places, e))?),
        None => None,
    };
    let keys = &common.keys;
    // The first piece replaces what an earlier try left, so there is one even if there are no keys.
    let (first, rest) = keys.split_at(keys.len().min(at_once));
    let mut moved = 0;
    for (number, piece) in (0..).zip([first].into_iter().chain(rest.chunks(at_once))) {
        let keys = match &node.plan.way {
            Way::Shares(_, movement) => shares::move_piece(node, movement, piece, &session.stream(), net)?,
            Way::Masks => masks::move_piece(node, (piece, &library), (old.as_mut(), new.as_mut()), net)?,
        };
        if let Some(new) = &mut new {
            if let Way::Shares(..) = &node.plan.way {
                let mut among = Among::new(&mut *net, &places)?;
                new.compare_check_values(node, &keys, &mut among).map_err(|e| in_network(&places, e))?;
            }
            node.store.prepare_moved(number, &keys).map_err(system)?;
        }
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
        let setup = plan.to.setup(&mut among)?;
        let for_many = plan.to.for_many().filter(|_| matches!(plan.way, Way::Masks));
        let setup = for_many.as_ref().unwrap_or(&plan.to).renew(&setup, &mut among)?;
        Ok(NewSide {
            for_many,
            setup,
            session,
            circuits: HashMap::new(),
            hmac: Arc::default(),
            completions: Completions::default(),
        })
    }

    /// This node in the next stream of the new nodes' session.
    pub(super) fn join(&mut self, node: &Node<'_>) -> Result<AnyServiceSession> {
        node.plan.to.join(&self.setup, self.session.stream(), PartySet::all(node.plan.new.nodes()))
    }

    /// The same, where many keys are computed with material that is made for them.
    pub(super) fn join_for_many(&mut self, node: &Node<'_>) -> Result<AnyServiceSession> {
        let config = self.for_many.as_ref().unwrap_or(&node.plan.to);
        config.join(&self.setup, self.session.stream(), PartySet::all(node.plan.new.nodes()))
    }

    /// Circuits that were compiled for keys before.
    pub(super) fn completions(&mut self) -> &mut Completions {
        &mut self.completions
    }

    /// Computes the check value of each key from the new shares, and compares it with the one that was
    /// stored.
    fn compare_check_values(&mut self, node: &Node<'_>, keys: &[MovedKey], net: &mut dyn Net) -> Result<()> {
        // A component of a key has no round keys before it is combined. Only the check of what was dealt
        // speaks for it.
        let is_expanded =
            |key: &&MovedKey| key.info.component.is_none() || key.shares.contains_key(ROUND_KEYS);
        let keys: Vec<&MovedKey> = keys.iter().filter(is_expanded).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut protocol = self.join(node)?;
        // Keys with other images of their cells, of an older version of the program, are computed apart.
        let mut groups: Vec<Vec<Expanded<'_>>> = Vec::new();
        for key in keys {
            let key = Expanded::of(key, &protocol)?;
            match groups.iter_mut().find(|group| group[0].fits(&key, &protocol)) {
                Some(group) => group.push(key),
                None => groups.push(vec![key]),
            }
        }
        for group in groups {
            let values = self.check_values(&group, &mut protocol, net)?;
            for (key, value) in group.iter().zip(values) {
                refuse_wrong_check_value(&key.key.info, &value)?;
            }
        }
        protocol.check(net)
    }

    fn check_values(
        &mut self,
        group: &[Expanded<'_>],
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u8>>> {
        let name = group[0].cipher();
        let parts: Vec<&AnyShared> = group.iter().flat_map(|key| &key.parts).collect();
        let (round_keys, lanes) = (protocol.join_lanes(&parts), parts.len());
        let values = match hash_of(name) {
            Some(hash) => Hashing::new(hash, &self.hmac).check_values((&round_keys, lanes), protocol, net)?,
            None => {
                let circuit = self.check_values_of(name, protocol)?;
                evaluated_on_zeros(circuit, &round_keys, lanes, protocol, net)?.remove(0)
            }
        };
        let mut values = opened_check_values(&values, lanes, protocol, net)?.into_iter();
        Ok(group.iter().map(|key| values.by_ref().take(key.parts.len()).flatten().collect()).collect())
    }

    /// The circuit of check values for a cipher.
    fn check_values_of(&mut self, name: &str, protocol: &AnyServiceSession) -> Result<&Compiled> {
        let unknown = || Error::System(format!("this version knows no cipher '{name}'"));
        if !self.circuits.contains_key(name) {
            let cipher = keyed::find(name).filter(|cipher| cipher.key_bytes > 0).ok_or_else(unknown)?;
            let circuit = compile(&modes::check_values(&form(cipher, protocol)), protocol);
            self.circuits.insert(name.to_owned(), circuit);
        }
        self.circuits.get(name).ok_or_else(unknown)
    }
}

/// The outputs of a circuit that takes `zero` and `round_keys`, one key a lane.
pub(super) fn evaluated_on_zeros(
    circuit: &Compiled,
    round_keys: &AnyShared,
    lanes: usize,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<AnyShared>> {
    let zero = &circuit.inputs()[0];
    let zeros = Cells::zero(zero.cells.len(), zero.bits, lanes);
    let inputs = [Input::Public(&zeros), Input::Shared(round_keys)];
    let within = (BYTES_AT_ONCE, &Progress::new(Arc::default()));
    evaluate_within(session, net, circuit, lanes, &inputs, within)
}

/// Check values, one a lane. This is all that is opened of a key.
pub(super) fn opened_check_values(
    values: &AnyShared,
    lanes: usize,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<Vec<u8>>> {
    let opened = release(session, values, Owner::All, net)?;
    let opened = opened.ok_or_else(|| Error::System("the check values were not opened".into()))?;
    let bytes = opened.accept().to_blocks();
    Ok(bytes.chunks(bytes.len() / lanes).map(<[u8]>::to_vec).collect())
}

/// Ends the move unless the new nodes have computed the check value that is stored.
pub(super) fn refuse_wrong_check_value(key: &KeyInfo, computed: &[u8]) -> Result<()> {
    if key.check_value == computed {
        return Ok(());
    }
    Err(Error::System(format!(
        "the new nodes compute another check value of the key {} than the one that is stored: some old node has a wrong share. No key has \
         moved. Restore its backup, or leave it out",
        key.properties.name
    )))
}

/// A key with its round keys, and with those of the second key for a mode that takes two, whose check values
/// stand behind each other.
struct Expanded<'k> {
    key: &'k MovedKey,
    parts: Vec<AnyShared>,
}

impl<'k> Expanded<'k> {
    fn of(key: &'k MovedKey, protocol: &AnyServiceSession) -> Result<Self> {
        let name = &key.info.properties.name;
        let missing = || Error::System(format!("the key {name} has no round keys"));
        let first = protocol.restore(key.shares.get(ROUND_KEYS).ok_or_else(missing)?)?;
        let second = key.shares.get(SECOND).map(|bytes| protocol.restore(bytes)).transpose()?;
        if second.as_ref().is_some_and(|second| !protocol.can_join(&first, second)) {
            return Err(Error::System(format!("the two halves of the key {name} do not fit together")));
        }
        Ok(Expanded { key, parts: [first].into_iter().chain(second).collect() })
    }

    fn cipher(&self) -> &'k str {
        &self.key.info.properties.cipher
    }

    /// Whether another key can be computed together with this one.
    fn fits(&self, other: &Self, protocol: &AnyServiceSession) -> bool {
        self.cipher() == other.cipher() && protocol.can_join(&self.parts[0], &other.parts[0])
    }
}
