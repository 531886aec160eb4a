//! Rotation: the nodes make fresh common secrets and carry every stored key over to them. It ends a quarantine.
//!
//! Every operator orders it at their own node ([`crate::operator::admin`]); the order is durable. A node is in one of these states, all of
//! them on its disk ([`Store`](crate::store::Store)). S is the id of the common secrets in use, P the id of those prepared:
//!
//! ```text
//!   idle (S)  --operator-->  wanted (S)  --computed with all-->  prepared (S, P)  --all have prepared P-->  idle (P)
//!                                 ^                                   |
//!                                 +---- nobody is at P, some lack it -+
//! ```
//!
//! The first node leads: when all nodes want a rotation, or any node has something prepared, it orders a round. In a round no request runs.
//! All nodes are connected, tell each other (wants, S, P), and compare what each has heard. Then
//!
//! 1. *The S of one node is the P of another*, or *all have prepared the same P*: all nodes had stored P, so the nodes that have it
//!    prepared take it into use, and the round is over.
//! 2. Otherwise no node has taken anything into use, because no node does before all have said that they stored it. What is prepared is
//!    given up. If all want a rotation, the nodes make it: fresh common secrets, both sets renewed, every key that all nodes hold carried
//!    over, everything stored as prepared in one transaction. All nodes tell each other so. Then each node takes it into use in one
//!    transaction, which also ends the quarantine and the wish.
//!
//! So a crash at any moment leaves every node at S or at P with all keys, and a round with all nodes brings them together: a node at P knew
//! that all had stored P, and no node gives P up while another could be at P. A node with something prepared serves nothing, so that no key
//! is made, completed or deleted in addition to what the node carries over.
//!
//! A check that fails in a round ends the wish: the operators look first, and order the rotation again.
//!
//! The old MAC key was given up in memory when a check failed; here the nodes use it once more, as it was stored. The failed check may have
//! told a cheater something about it (no check opens anything of it: `spdz/check.rs`). After b failed checks, those of earlier rounds
//! included, what is carried over is right except with probability sum over j <= b of C(64, j) 2^-64
//! ([`Guesses`](polyclave_protocol::spdz::Guesses)). Every node counts durably what it has seen, and takes no part in a round once that
//! probability is more than 2^-40, after six checks, unless its operator accepts the risk ([`refuse_guessed`]). What is opened under the
//! old key is masked, whatever the cheater knows.
//!
//! A key is carried over if all nodes hold it, whether announced or pending. A key that is announced at some nodes, and missing or deleted
//! at others, stops the rotation until it is ordered again: a backup of the latter nodes could save the key, and no single node can delete
//! keys at others.

mod common;
#[cfg(test)]
mod fuzz;
mod standing;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::{ServiceConfig, Stored};
use polyclave_protocol::session::{AgreedSession, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{Reason, Refusal};
use zeroize::Zeroizing;

use crate::Result;
use crate::error::system;
use crate::keys::key::{HASH_KEY, Shares};
use crate::material::epoch::meet;
use crate::material::quarantine::{judge, refuse_guessed};
use crate::material::set_up;
use crate::material::state::Material;
use crate::operator::audit::Event;
use crate::peers::exchange::tell_all;
use crate::peers::orders::Order;
use crate::store::{CarriedKey, HeldKey, KeyState, Store};
use crate::threads::POLL_INTERVAL;
use common::common_keys;
use standing::{Course, Standing, course};

/// How long a rotation waits for running requests. They end at their next step.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// What a client is told during a rotation.
pub(crate) const ROTATING: &str = "the nodes are making fresh common secrets; try again later";

/// How far a rotation has come at a node.
#[derive(Default)]
pub(crate) struct Rotation {
    /// The operator has ordered fresh common secrets.
    pub(super) wanted: AtomicBool,
    /// The nodes are making fresh common secrets.
    running: AtomicBool,
    /// Fresh common secrets are stored and not yet in use.
    pub(super) prepared: AtomicBool,
    /// Requests hold it shared; a rotation holds it exclusively.
    gate: RwLock<()>,
}

impl Material {
    /// The nodes whose operators have ordered fresh common secrets.
    pub(crate) fn rotation_wanted_by(&self) -> PartySet {
        let own = self.rotation.wanted.load(Relaxed).then_some(self.members.me);
        self.network.peers.which(|state| state.wants_rotation).iter().chain(own).collect()
    }

    /// While this is held, no rotation changes shares of keys. It must be taken before any share is read.
    pub(crate) fn hold_off_rotation(&self) -> Result<RwLockReadGuard<'_, ()>, Refusal> {
        self.rotation.gate.try_read().ok_or_else(|| Refusal::new(Reason::Unavailable, ROTATING))
    }

    /// Whether common secrets are being made, or are prepared.
    pub(crate) fn is_rotating(&self) -> bool {
        self.rotation.running.load(Relaxed) || self.rotation.prepared.load(Relaxed)
    }
}

/// Loads the state of an unfinished rotation from the store.
pub(crate) fn load(material: &Material) -> Result<()> {
    material.rotation.wanted.store(material.store.rotation_wanted().map_err(system)?, Relaxed);
    material.rotation.prepared.store(material.store.prepared_rotation().map_err(system)?.is_some(), Relaxed);
    Ok(())
}

/// Whether a round is due; asked at the leading node.
pub(crate) fn is_due(material: &Material) -> bool {
    let all_there = material.network.is_complete();
    let unfinished =
        material.rotation.prepared.load(Relaxed) || material.network.peers.any(|state| state.prepared);
    let all_want =
        material.rotation.wanted.load(Relaxed) && !material.network.peers.any(|state| !state.wants_rotation);
    material.set_up().is_ok() && all_there && (unfinished || all_want)
}

/// Orders all nodes to take part in a round.
pub(crate) fn lead(material: &Material, name: [u8; 16]) -> Result<()> {
    material.network.order_all(Order::Rotate { name })?;
    join(material, name)
}

/// Takes part in a round.
pub(crate) fn join(material: &Material, name: [u8; 16]) -> Result<()> {
    let _alone = material.setting_up.lock();
    let mut net = meet(material, "rotation", name)?;
    let parameters = material.members.handshake();
    let mut session = hello(&material.config.handshake(parameters), &mut net)?;
    material.rotation.running.store(true, Relaxed);
    let done = Drained::wait(material).and_then(|_drained| round(material, &mut session, &mut net));
    material.rotation.running.store(false, Relaxed);
    done
}

/// While this exists, no request runs.
struct Drained<'c> {
    _gate: RwLockWriteGuard<'c, ()>,
}

impl Drained<'_> {
    fn wait(material: &Material) -> Result<Drained<'_>> {
        let until = Instant::now() + LAST_REQUESTS;
        loop {
            if let Some(gate) = material.rotation.gate.try_write() {
                return Ok(Drained { _gate: gate });
            }
            if Instant::now() > until || material.threads.is_stopping() {
                return Err(Error::System("running requests did not end in time".into()));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn round(material: &Material, session: &mut AgreedSession, net: &mut TlsNet) -> Result<()> {
    let mine = standing(&material.store)?;
    let mut all: Vec<(Party, Standing)> =
        tell_all(&mine.encode(), net)?.into_iter().map(|(party, s)| (party, Standing::decode(&s))).collect();
    all.push((material.members.me, mine));
    all.sort_by_key(|(party, _)| *party);
    let told: Vec<u8> = all.iter().flat_map(|(_, standing)| standing.encode()).collect();
    compare("standings", &told, net)?;
    match course(&all)? {
        Course::Complete(id) if mine.prepared == Some(id) => commit(material, id),
        Course::Complete(_) => Ok(()),
        Course::Nothing => discard(material),
        Course::Begin => {
            discard(material)?;
            refuse_guessed(&material.store).inspect_err(|_| give_up(material))?;
            let id = rotate(material, session, net).inspect_err(|e| {
                if judge(material, "making fresh common secrets", e) {
                    give_up(material);
                }
            })?;
            commit(material, id)
        }
    }
}

fn standing(store: &Store) -> Result<Standing> {
    let in_use = store.setup().map_err(system)?.filter(|setup| setup.agreed);
    let in_use = in_use.ok_or_else(|| Error::System("there are no common secrets to replace".into()))?;
    Ok(Standing {
        wants: store.rotation_wanted().map_err(system)?,
        in_use: in_use.id,
        prepared: store.prepared_rotation().map_err(system)?,
    })
}

fn discard(material: &Material) -> Result<()> {
    if material.rotation.prepared.load(Relaxed) {
        material.store.discard_rotation().map_err(system)?;
        material.rotation.prepared.store(false, Relaxed);
    }
    Ok(())
}

/// After a failed check nothing is tried again until the operators have ordered it once more.
fn give_up(material: &Material) {
    material.rotation.wanted.store(false, Relaxed);
    if let Err(e) = material.store.forget_rotation() {
        tracing::error!(error = %e, "could not write down that the rotation failed");
    }
}

/// Makes fresh common secrets, carries all keys over, and stores both beside what is in use. When this returns, all nodes have stored
/// theirs.
fn rotate(material: &Material, session: &mut AgreedSession, net: &mut TlsNet) -> Result<[u8; 32]> {
    let keys = common_keys(&material.store, net).inspect_err(|e| {
        // Before the operators have mended it, it would end like this again.
        if matches!(e, Error::System(_)) {
            give_up(material);
        }
    })?;
    material.end_epoch("fresh common secrets are made");
    let config = &material.config;
    let new = config.set_up(net)?;
    let bytes = config.save_setup(&new);
    let new = config.renew(&new, net)?;
    let stored = material.store.setup().map_err(system)?;
    let stored = stored.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let old = config.renew(&config.restore_setup(material.members.me, &stored.bytes)?, net)?;
    let mut carried = Vec::new();
    for HeldKey { id, info, state } in keys {
        let name = info.map(|info| info.properties.name).unwrap_or_default();
        let mut shares = Shares::new();
        for (part, bytes) in shares_of(&material.store, &name, id, state)? {
            let value = if part == HASH_KEY { Stored::Elements(&bytes) } else { Stored::Value(&bytes) };
            let bytes: Zeroizing<Vec<u8>> = config.carry_over(&old, &new, session.stream(), value, net)?;
            shares.insert(part, bytes);
        }
        carried.push(CarriedKey { name, id, shares });
    }
    let id = session.id();
    material.store.prepare_rotation(id, &bytes, &carried).map_err(system)?;
    material.rotation.prepared.store(true, Relaxed);
    tell_all(&[1], net)?;
    Ok(id)
}

fn shares_of(store: &Store, name: &str, id: [u8; 16], state: KeyState) -> Result<Shares> {
    let key = match state {
        KeyState::Announced => store.key(name).map_err(system)?.map(|key| (*key).clone()),
        _ => store.pending_key(name).map_err(system)?,
    };
    let key = key.filter(|key| key.info.id == id);
    Ok(key.ok_or_else(|| Error::System(format!("the key {name} is gone")))?.shares)
}

/// Takes what is prepared into use.
fn commit(material: &Material, id: [u8; 32]) -> Result<()> {
    material.end_epoch("fresh common secrets are taken into use");
    {
        let mut quarantine = material.quarantine.write();
        material.store.commit_rotation(id).map_err(system)?;
        *quarantine = None;
    }
    set_up::load(material)?;
    load(material)?;
    metrics::gauge!("polyclave_quarantined").set(0.0);
    tracing::info!(id = %hex::encode(&id[..8]), "fresh common secrets are in use, and all keys were carried over");
    material.logbook.note(&Event::of_node("rotation", "done"));
    Ok(())
}

/// All nodes have heard the same, or none goes on. Otherwise one node could make some of them take into use what others give up.
fn compare(what: &str, heard: &[u8], net: &mut TlsNet) -> Result<()> {
    let digest = blake3::derive_key("polyclave 2026 what was told in a rotation", heard);
    match tell_all(&digest, net)?.into_iter().find(|(_, theirs)| *theirs != digest) {
        Some((peer, _)) => Err(Error::System(format!(
            "{peer} says that it was told other {what} than this node: some node cheats, perhaps neither of the two"
        ))),
        None => Ok(()),
    }
}
