//! How a standby pair gets keys: all three nodes hand some of them over, from the sharing among three to the
//! sharing with MACs of the two (`protocol/src/handover.rs`, which has the security argument).
//!
//! 1. The two nodes of the pair tell the ids of their stores. A node whose partner has another store than
//!    before ends the pair: the partner has lost what it had, or was put back to an older copy.
//! 2. They tell which keys they lack, and all three tell which of these they hold.
//! 3. The three compare the keys in a hello, with all properties, and the two agree on a session of their
//!    own.
//! 4. The key itself, if it may be wrapped, and the round keys move as bytes under masks. The two compute
//!    what else the key's modes need, and the check value, which has to be the one that is recorded.
//!
//! A check that fails among the three is judged as in a request of theirs, and one that fails between the two
//! as in a request of the pair.

use std::sync::Arc;

use polyclave_api as api;
use polyclave_protocol::among::{Among, in_network};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::handover::{Fault, Handover, Sessions, Side};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::{AgreedSession, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::{KeyState, MovedKey, StandbyBinding};
use polyclave_transport::TlsNet;

use super::Pairs;
use super::pair::{Pair, protocol};
use crate::Result;
use crate::core::Core;
use crate::error::system;
use crate::keys::standby::wanted;
use crate::material::epoch::{Allowance, SessionContext, meet};
use crate::material::quarantine::judge_named;
use crate::peers::exchange::tell_all;
use crate::reshare::masks::{layout, restored};
use crate::reshare::offers::Common;
use crate::reshare::receiving::{Known, received};

/// The most keys that move together. Their material is in memory, up to 2 MB a key, besides that of check
/// values of HMAC, which are computed piece by piece.
const KEYS_AT_ONCE: usize = 16;
/// What a failed check interrupts, for people.
const DURING: &str = "giving keys to a standby pair";

type Id = [u8; 16];

/// What came of an order.
pub(super) enum Given {
    /// The pair has shares of so many more keys.
    Keys(usize),
    /// The two nodes have no epoch yet, or no key is held by all three.
    NotReady,
    /// The partner has another store than before.
    Anew(Arc<Pair>),
}

/// Takes part in giving keys to the pair of this number.
pub(super) fn join(core: &Core, pairs: &Pairs, number: u8, name: [u8; 16]) -> Result<Given> {
    let all = core.members.cluster.pairs();
    let cluster = all.get(usize::from(number)).ok_or_else(|| Error::misuse("there is no such pair"))?;
    let set = cluster.pair().unwrap_or_default();
    let mine = pairs.of(set);
    let context = core.material.context().map_err(|refusal| Error::System(refusal.message))?;
    let mut net = meet(&core.material, "standby", name)?;
    let net = &mut net;
    match compare_stores(set, mine.as_deref(), net)? {
        Stores::Fit => {}
        Stores::NotReady => return Ok(Given::NotReady),
        Stores::Differ => return Ok(mine.map_or(Given::NotReady, Given::Anew)),
    }
    let keys = choose(core, mine.as_deref(), net)?;
    if keys.is_empty() {
        return Ok(Given::NotReady);
    }
    let config = protocol(cluster)?;
    let of_pair = mine.as_ref().and_then(|pair| pair.core());
    let pair = mine.as_deref().zip(of_pair.as_deref());
    let transfer = Transfer { core, set, config: &config, pair, context: &context, number };
    let moved = transfer.run(&keys, net)?;
    if let Some(pair) = &mine {
        store(core, pair, moved)?;
    }
    // Nobody reports it before all have stored it.
    tell_all(&[1], net)?;
    Ok(Given::Keys(keys.len()))
}

/// How the stores of the two nodes fit together.
enum Stores {
    Fit,
    NotReady,
    Differ,
}

/// All three nodes tell what the two nodes of the pair have.
fn compare_stores(set: PartySet, mine: Option<&Pair>, net: &mut TlsNet) -> Result<Stores> {
    const READY: u8 = 1;
    let binding = mine.map(|pair| pair.shares.store.standby_binding()).transpose().map_err(system)?.flatten();
    let mut told = [0; 33];
    if let (Some(pair), Some(StandbyBinding { own, partner, .. })) = (mine, binding) {
        told[0] = u8::from(pair.why_not_ready().is_none());
        told[1..17].copy_from_slice(&own);
        told[17..].copy_from_slice(&partner.unwrap_or_default());
    }
    let heard = tell_all(&told, net)?;
    let me = net.me();
    let of_pair: Vec<[u8; 33]> =
        heard.iter().filter(|(party, _)| set.contains(*party)).map(|(_, told)| *told).collect();
    if let (Some(pair), Some(binding), [theirs]) = (mine, binding, &of_pair[..]) {
        let [partner, known]: [Id; 2] = [1, 17].map(|at| {
            let id = theirs[at..at + 16].first_chunk();
            id.copied().unwrap_or_default()
        });
        if partner == Id::default() {
            return Ok(Stores::NotReady);
        }
        if binding.partner.is_some_and(|before| before != partner) {
            return Ok(Stores::Differ);
        }
        // The partner knows another store of this node, and will begin anew. That one is then its store.
        if known != Id::default() && known != binding.own {
            return Ok(Stores::NotReady);
        }
        if binding.partner.is_none() {
            let binding = StandbyBinding { partner: Some(partner), ..binding };
            pair.shares.store.bind_standby(&binding).map_err(system)?;
        }
    }
    let mut ready = heard.iter().map(|(party, told)| (*party, told[0])).chain([(me, told[0])]);
    match ready.all(|(party, told)| !set.contains(party) || told == READY) {
        true => Ok(Stores::Fit),
        false => Ok(Stores::NotReady),
    }
}

/// The keys that move: those that a node of the pair lacks, and all three nodes hold. The same at all nodes.
fn choose(core: &Core, mine: Option<&Pair>, net: &mut TlsNet) -> Result<Vec<Common>> {
    const BYTES: usize = 1 + 16 * KEYS_AT_ONCE;
    let held = wanted(&core.store)?;
    let mut told = [0; BYTES];
    if let Some(pair) = mine {
        let lacking = held.iter().filter(|info| !pair.shares.holds(&info.id)).take(KEYS_AT_ONCE);
        for info in lacking {
            let count = usize::from(told[0]);
            told[1 + 16 * count..][..16].copy_from_slice(&info.id);
            told[0] += 1;
        }
    }
    let heard = tell_all(&told, net)?;
    let ids = |told: &[u8; BYTES]| -> Vec<Id> {
        let count = usize::from(told[0]).min(KEYS_AT_ONCE);
        told[1..].as_chunks().0.iter().take(count).copied().collect()
    };
    let mut wanted: Vec<Id> = heard.iter().flat_map(|(_, told)| ids(told)).chain(ids(&told)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted.truncate(64);
    let mut mask = 0_u64;
    for (bit, id) in wanted.iter().enumerate() {
        mask |= u64::from(held.iter().any(|info| info.id == *id)) << bit;
    }
    let common = tell_all(&mask.to_le_bytes(), net)?
        .into_iter()
        .fold(mask, |common, (_, theirs)| common & u64::from_le_bytes(theirs));
    let chosen = wanted.iter().enumerate().filter(|(bit, _)| common >> bit & 1 == 1).map(|(_, id)| id);
    let mut keys = Vec::new();
    for id in chosen.take(KEYS_AT_ONCE) {
        let Some(info) = held.iter().find(|info| info.id == *id) else { continue };
        let shares = core.store.shares_of(*id).map_err(system)?;
        keys.push(Common::stays(info.clone(), shares.keys()));
    }
    Ok(keys)
}

/// Stores this node's shares of keys that it still has.
fn store(core: &Core, pair: &Pair, moved: Vec<MovedKey>) -> Result<()> {
    let changing = core.service.keys.standby().change();
    let mut keys = Vec::new();
    for MovedKey { info, shares, .. } in moved {
        let state = core.store.state(&info.properties.name, info.id).map_err(system)?;
        if state == Some(KeyState::Announced) {
            keys.push((info.id, shares));
        }
    }
    pair.shares.put(&changing, &keys).map_err(system)
}

/// A handover of some keys to a pair.
struct Transfer<'t> {
    core: &'t Core,
    /// The two nodes, by their numbers among all.
    set: PartySet,
    /// The protocol of the pair.
    config: &'t AnyServiceConfig,
    /// At a node of the pair: the pair, and its parts.
    pair: Option<(&'t Pair, &'t Core)>,
    context: &'t SessionContext,
    number: u8,
}

impl Transfer<'_> {
    fn run(&self, keys: &[Common], net: &mut TlsNet) -> Result<Vec<MovedKey>> {
        let (core, service) = (self.core, &self.core.service);
        let mut session = self.agree(keys, net)?;
        let places: Vec<Party> = self.set.iter().collect();
        let mut of_pair = match self.pair {
            Some((_, of_pair)) => Some(self.agree_in_pair(of_pair, &places, net)?),
            None => None,
        };
        let batches = layout(keys, &service.library)?;
        let Some(last) = batches.last() else { return Ok(Vec::new()) };
        let from: Vec<Option<Party>> = core.members.all().iter().map(Some).collect();
        let to: Vec<Option<Party>> = places.iter().copied().map(Some).collect();
        let handover = Handover {
            from: Side { config: &service.config, places: &from },
            to: Side { config: self.config, places: &to },
            len: last.at + last.shape.bytes(),
        };
        let memory = service.memory.part_bytes();
        let allowance = Allowance { memory, takes_circuits: false };
        let stock = self.context.stock(&core.material, allowance);
        let mut old = self.context.join(&core.material, stock, session.stream(), core.members.all())?;
        let both = PartySet::all(places.len());
        let mut new = match (&mut of_pair, self.pair) {
            (Some((context, session)), Some((_, of_pair))) => {
                let mut join = || context.join_unstocked(&of_pair.material, session.stream(), both);
                Some((join()?, join()?))
            }
            _ => None,
        };
        let leaving = restored((&core.store, &service.faults), (&batches, &service.library), &old)?;
        let mut sessions = Sessions { old: Some(&mut old), new: new.as_mut().map(|(session, _)| session) };
        let drawn = handover.draw(&mut sessions, net);
        let mut drawn = drawn.map_err(|fault| self.judged(fault))?;
        service.faults.spoil_dealt([&mut drawn.differences[..]]);
        let arrived = handover.complete(drawn, &leaving, &mut sessions, net);
        let arrived = arrived.map_err(|fault| self.judged(fault))?;
        let (Some((mut session, stored)), Some((pair, of_pair))) = (new, self.pair) else {
            return Ok(Vec::new());
        };
        let (library, mut completions) = (&of_pair.service.library, pair.completions.lock());
        let known = Known { library, stored: &stored, completions: &mut completions, by_bits: true };
        let mut among = Among::new(net, &places)?;
        let moved = received((keys, &batches), &arrived, known, &mut session, &mut among);
        moved.map_err(|e| self.judged(Fault::Elsewhere(in_network(&places, e))))
    }

    /// All three nodes compare what they are about to do.
    fn agree(&self, keys: &[Common], net: &mut TlsNet) -> Result<AgreedSession> {
        let mut digest = blake3::Hasher::new_derive_key("polyclave 2026 keys for a standby pair");
        for Common { info, parts, .. } in keys {
            let info = api::encode(info).map_err(system)?;
            let parts: Vec<u8> = parts.keys().flat_map(|part| [part.as_bytes(), &[0]].concat()).collect();
            for field in [info, parts] {
                digest.update(&(field.len() as u64).to_le_bytes()).update(&field);
            }
        }
        let context = self.context.id();
        let parameters = self.core.members.handshake();
        let parameters = parameters
            .with("common secrets", &context.setup)
            .with("epoch", &context.epoch)
            .with("standby pair", &[self.number])
            .with("keys for a standby pair", digest.finalize().as_bytes());
        hello(&self.core.service.config.handshake(parameters), net)
    }

    /// The two nodes of the pair agree on a session.
    fn agree_in_pair(
        &self,
        of_pair: &Core,
        places: &[Party],
        net: &mut TlsNet,
    ) -> Result<(SessionContext, AgreedSession)> {
        let context = of_pair.material.context().map_err(|refusal| Error::System(refusal.message))?;
        let id = context.id();
        let parameters = of_pair.members.handshake();
        let parameters = parameters
            .with("common secrets", &id.setup)
            .with("epoch", &id.epoch)
            .with("purpose", b"keys for a standby pair");
        let mut among = Among::new(net, places)?;
        let session = hello(&self.config.handshake(parameters), &mut among);
        Ok((context, session.map_err(|e| in_network(places, e))?))
    }

    /// The error, once it is judged under the common secrets in whose session it was found. Nodes have the
    /// numbers that they have among all.
    fn judged(&self, fault: Fault) -> Error {
        let core = self.core;
        let name_of = |party: Party| core.members.name_of(party).to_owned();
        match fault {
            Fault::Old(error) => {
                core.material.strategy.judge(&core.material, DURING, self.context.epoch(), &error);
                error
            }
            Fault::Elsewhere(error) => {
                if let Some((_, of_pair)) = self.pair {
                    let epoch = of_pair.material.epoch();
                    judge_named(&of_pair.material, DURING, epoch.as_deref(), &error, name_of);
                }
                error
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs_of;
    use super::*;

    #[test]
    fn a_node_takes_part_for_its_own_pairs_and_as_the_third_one_for_the_other() {
        use polyclave_config::Cluster;
        let dir = tempfile::tempdir().expect("a directory");
        let made = crate::local::create(&dir.path().join("c"), "replicated-active", 3, 1).expect("made");
        let file = polyclave_config::NodeDir::open(&made.nodes[0]).expect("its directory");
        let mut cluster: Cluster = file.cluster().expect("read").expect("it has one");
        cluster.set_standby(true).expect("it can have pairs");
        let numbers =
            |me| pairs_of(&cluster, Party(me)).iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!([numbers(0), numbers(1), numbers(2)], [[0, 1], [0, 2], [1, 2]]);
    }
}
