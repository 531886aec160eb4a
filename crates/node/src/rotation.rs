//! Rotation: fresh common secrets, with every stored key carried over to them. It ends a quarantine.
//!
//! Every operator orders it at his own node ([`crate::admin`], durable). A node is in one of these states, each of them
//! on its disk ([`Store`](crate::store::Store)); S is the id of the common secrets in use, P of what is prepared:
//!
//! ```text
//!   idle (S)  --operator-->  wanted (S)  --computed with all-->  prepared (S, P)  --all have prepared P-->  idle (P)
//!                                 ^                                   |
//!                                 +---- nobody is at P, some lack it -+
//! ```
//!
//! The first node leads: when all nodes want it, or any has something prepared, it orders a round. In a round no request runs;
//! all nodes are there and tell each other (wants, S, P), and compare what each has heard. Then
//!
//! 1. *Somebody's S is another's P*, or *all have prepared the same P*: all nodes had stored P, so who has it prepared takes it
//!    into use, and the round is over.
//! 2. Otherwise nobody has taken anything into use, since nobody does before all have said that they stored it. What is
//!    prepared is given up. If all want a rotation it is made: fresh common secrets, both sets renewed, every key that all
//!    nodes hold carried over, everything stored as prepared in one transaction; all tell each other so; everybody takes it into use
//!    in one transaction, which also ends the quarantine and the wish.
//!
//! So a crash at any moment leaves every node at S or at P with all keys, and a round with all nodes brings them together: whoever
//! is at P knew that all had stored P, and nobody gives P up while somebody could be there. A node with something prepared serves
//! nothing, so that no key is made, completed or deleted beside what it carries over.
//!
//! A check that fails in a round ends the wish: the operators look first, and order it again.
//!
//! The old MAC key was given up in memory when a check failed; here it serves once more, as it was stored. That a check failed may
//! have told a cheater something of it (no check opens anything of it: `spdz/check.rs`): after b failed checks, those of earlier rounds
//! included, what is carried over is right but for sum over j <= b of C(64, j) 2^-64 ([`Guesses`](polyclave_protocol::spdz::Guesses)). Every
//! node counts what it has seen, durably, and takes no part in a round once that is more than 2^-40, after six, unless its
//! operator takes the risk ([`refuse_guessed`]). What is opened under the old key is masked, whatever the cheater knows.
//!
//! A key is carried over if all nodes hold it, be it announced or pending. One that is announced at some nodes, and missing or
//! deleted at others, stops the rotation until it is ordered again: with a backup of those it could be saved, and no single node
//! has keys deleted at others.

#[cfg(test)]
mod fuzz;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::service::{ServiceScheme, Stored};
use polyclave_protocol::session::{Session, Terms, hello};
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, Reason, Refusal};
use zeroize::Zeroizing;

use crate::Result;
use crate::agreement::tell_all;
use crate::audit::Event;
use crate::core::{Core, system};
use crate::epoch::meet;
use crate::key::{HASH_KEY, Shares};
use crate::peers::Order;
use crate::quarantine::{judge, refuse_guessed};
use crate::set_up;
use crate::store::{CarriedKey, HeldKey, KeyState};
use crate::threads::POLL_INTERVAL;

/// Requests under way get so much time: they end at their next step.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// What a client is told meanwhile.
pub(crate) const ROTATING: &str = "the nodes are making fresh common secrets; try again later";
/// The most keys that a node believes another to hold.
const MOST_KEYS: usize = 1 << 20;
/// Bytes of a key in a list: its id, its state, and a digest of what it is.
const LISTED: usize = 16 + 1 + 32;

/// Where a node stands, as it tells the others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Standing {
    wants: bool,
    in_use: [u8; 32],
    prepared: Option<[u8; 32]>,
}

/// What is to be done in a round.
#[derive(Debug, PartialEq, Eq)]
enum Course {
    /// All nodes have stored what has this id: who has it prepared takes it into use.
    Complete([u8; 32]),
    /// Nobody has taken anything into use that this node lacks.
    Begin,
    /// Some nodes do not want it (yet).
    Nothing,
}

impl Core {
    /// No rotation changes shares of keys while this is held: to be taken before any are read.
    pub(crate) fn hold_off_rotation(&self) -> Result<RwLockReadGuard<'_, ()>, Refusal> {
        match self.gate.try_read() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Refusal::new(Reason::Unavailable, ROTATING)),
        }
    }

    /// Whether common secrets are being made, or are prepared.
    pub(crate) fn is_rotating(&self) -> bool {
        self.rotating.load(Relaxed) || self.prepared.load(Relaxed)
    }
}

/// What the store says of an unfinished rotation.
pub(crate) fn load(core: &Core) -> Result<()> {
    core.wants_rotation.store(core.store.rotation_wanted().map_err(system)?, Relaxed);
    core.prepared.store(core.store.prepared_rotation().map_err(system)?.is_some(), Relaxed);
    Ok(())
}

/// Whether a round is due; asked at the node that leads.
pub(crate) fn is_due(core: &Core) -> bool {
    let all_there = core.peers.connected().len() == core.nodes;
    let unfinished = core.prepared.load(Relaxed) || core.peers.any(|state| state.prepared);
    let all_want = core.wants_rotation.load(Relaxed) && !core.peers.any(|state| !state.wants_rotation);
    core.scheme.renews() && core.set_up().is_ok() && all_there && (unfinished || all_want)
}

/// Has all nodes take part in a round.
pub(crate) fn lead(core: &Core, name: [u8; 16]) -> Result<()> {
    for peer in Party::all(core.nodes).filter(|p| *p != core.me) {
        core.peers.order(peer, Order::Rotate { name })?;
    }
    join(core, name)
}

/// Takes part in a round.
pub(crate) fn join(core: &Core, name: [u8; 16]) -> Result<()> {
    let _alone = core.setting_up.lock().unwrap_or_else(PoisonError::into_inner);
    let mut net = meet(core, "rotation", name)?;
    let terms = Terms::new(core.nodes).with("cluster", &core.cluster_digest);
    let mut session = hello(&core.scheme.terms(terms), &mut net)?;
    core.rotating.store(true, Relaxed);
    let done = Drained::wait(core).and_then(|_drained| round(core, &mut session, &mut net));
    core.rotating.store(false, Relaxed);
    done
}

/// No request runs while this is there.
struct Drained<'c> {
    _gate: RwLockWriteGuard<'c, ()>,
}

impl Drained<'_> {
    fn wait(core: &Core) -> Result<Drained<'_>> {
        let until = Instant::now() + LAST_REQUESTS;
        loop {
            match core.gate.try_write() {
                Ok(gate) => return Ok(Drained { _gate: gate }),
                Err(TryLockError::Poisoned(gate)) => return Ok(Drained { _gate: gate.into_inner() }),
                Err(TryLockError::WouldBlock) => {}
            }
            if Instant::now() > until || core.is_stopping() {
                return Err(Error::System("requests that are under way did not end".into()));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn round(core: &Core, session: &mut Session, net: &mut TlsNet) -> Result<()> {
    let mine = standing(core)?;
    let mut all: Vec<(Party, Standing)> =
        tell_all(&mine.encode(), net)?.into_iter().map(|(party, s)| (party, Standing::decode(&s))).collect();
    all.push((core.me, mine));
    all.sort_by_key(|(party, _)| *party);
    let told: Vec<u8> = all.iter().flat_map(|(_, standing)| standing.encode()).collect();
    compare("standings", &told, net)?;
    match course(&all)? {
        Course::Complete(id) if mine.prepared == Some(id) => commit(core, id),
        Course::Complete(_) => Ok(()),
        Course::Nothing => discard(core),
        Course::Begin => {
            discard(core)?;
            refuse_guessed(&core.store).inspect_err(|_| give_up(core))?;
            let id = rotate(core, session, net).inspect_err(|e| {
                if judge(core, "making fresh common secrets", e) {
                    give_up(core);
                }
            })?;
            commit(core, id)
        }
    }
}

fn standing(core: &Core) -> Result<Standing> {
    let in_use = core.store.setup().map_err(system)?.filter(|setup| setup.agreed);
    let in_use = in_use.ok_or_else(|| Error::System("there are no common secrets to replace".into()))?;
    Ok(Standing {
        wants: core.store.rotation_wanted().map_err(system)?,
        in_use: in_use.id,
        prepared: core.store.prepared_rotation().map_err(system)?,
    })
}

/// What all nodes conclude from where all of them stand.
fn course(all: &[(Party, Standing)]) -> Result<Course> {
    let prepared = all.iter().find_map(|(_, s)| s.prepared.filter(|p| all.iter().all(|(_, s)| s.stored(p))));
    if let Some(id) = prepared {
        return Ok(Course::Complete(id));
    }
    // Each has said so of itself; whose word is true, and who was left behind, this does not show.
    if let Some((party, _)) = all.iter().find(|(_, s)| s.in_use != all[0].1.in_use) {
        return Err(Error::System(format!(
            "{party} says that it uses other common secrets than {}; restore the backup of the node that was left behind",
            all[0].0
        )));
    }
    Ok(if all.iter().all(|(_, s)| s.wants) { Course::Begin } else { Course::Nothing })
}

impl Standing {
    /// Whether what has this id is on its disk.
    fn stored(&self, id: &[u8; 32]) -> bool {
        self.in_use == *id || self.prepared == Some(*id)
    }

    fn encode(&self) -> [u8; 65] {
        let mut bytes = [u8::from(self.wants); 65];
        bytes[1..33].copy_from_slice(&self.in_use);
        bytes[33..].copy_from_slice(&self.prepared.unwrap_or_default());
        bytes
    }

    fn decode(bytes: &[u8; 65]) -> Standing {
        let id = |from: usize| {
            let mut id = [0; 32];
            id.copy_from_slice(&bytes[from..from + 32]);
            id
        };
        let prepared = Some(id(33)).filter(|prepared| *prepared != [0; 32]);
        Standing { wants: bytes[0] == 1, in_use: id(1), prepared }
    }
}

fn discard(core: &Core) -> Result<()> {
    if core.prepared.load(Relaxed) {
        core.store.discard_rotation().map_err(system)?;
        core.prepared.store(false, Relaxed);
    }
    Ok(())
}

/// After a check that failed nothing is tried again until the operators have ordered it once more.
fn give_up(core: &Core) {
    core.wants_rotation.store(false, Relaxed);
    if let Err(e) = core.store.forget_rotation() {
        tracing::error!(error = %e, "that the rotation failed could not be written down");
    }
}

/// Makes fresh common secrets, carries all keys over, and stores both beside what is in use. When it returns, all nodes
/// have stored theirs.
fn rotate(core: &Core, session: &mut Session, net: &mut TlsNet) -> Result<[u8; 32]> {
    let keys = common_keys(core, net).inspect_err(|e| {
        // Before the operators have mended it, it would end like this again.
        if matches!(e, Error::System(_)) {
            give_up(core);
        }
    })?;
    core.end_epoch("fresh common secrets are made");
    let scheme = &core.scheme;
    let new = scheme.set_up(net)?;
    let bytes = scheme.save_setup(&new);
    let new = scheme.renew(&new, net)?;
    let stored = core.store.setup().map_err(system)?;
    let stored = stored.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let old = scheme.renew(&scheme.restore_setup(core.me, &stored.bytes)?, net)?;
    let mut carried = Vec::new();
    for HeldKey { id, info, state } in keys {
        let name = info.map(|info| info.properties.name).unwrap_or_default();
        let mut shares = Shares::new();
        for (part, bytes) in shares_of(core, &name, id, state)? {
            let value = if part == HASH_KEY { Stored::Elements(&bytes) } else { Stored::Value(&bytes) };
            let bytes: Zeroizing<Vec<u8>> = scheme.carry_over(&old, &new, session.stream(), value, net)?;
            shares.insert(part, bytes);
        }
        carried.push(CarriedKey { name, id, shares });
    }
    let id = session.id();
    core.store.prepare_rotation(id, &bytes, &carried).map_err(system)?;
    core.prepared.store(true, Relaxed);
    tell_all(&[1], net)?;
    Ok(id)
}

fn shares_of(core: &Core, name: &str, id: [u8; 16], state: KeyState) -> Result<Shares> {
    let key = match state {
        KeyState::Announced => core.store.key(name).map_err(system)?.map(|key| (*key).clone()),
        _ => core.store.pending_key(name).map_err(system)?,
    };
    let key = key.filter(|key| key.info.id == id);
    Ok(key.ok_or_else(|| Error::System(format!("the key {name} is gone")))?.shares)
}

/// Takes what is prepared into use.
fn commit(core: &Core, id: [u8; 32]) -> Result<()> {
    core.end_epoch("fresh common secrets are taken into use");
    {
        let mut quarantine = core.quarantine.write().unwrap_or_else(PoisonError::into_inner);
        core.store.commit_rotation(id).map_err(system)?;
        *quarantine = None;
    }
    set_up::load(core)?;
    load(core)?;
    metrics::gauge!("polyclave_quarantined").set(0.0);
    tracing::info!(id = %hex::encode(&id[..8]), "fresh common secrets are in use, and all keys were carried over");
    core.note(&Event::of_node("rotation", "done"));
    Ok(())
}

/// All nodes have heard the same, or none goes on: otherwise one could have some of them take into use what others give up.
fn compare(what: &str, heard: &[u8], net: &mut TlsNet) -> Result<()> {
    let digest = blake3::derive_key("polyclave 2026 what was told in a rotation", heard);
    match tell_all(&digest, net)?.into_iter().find(|(_, theirs)| *theirs != digest) {
        Some((peer, _)) => Err(Error::System(format!(
            "{peer} says that it was told other {what} than this node: some node cheats, perhaps neither of the two"
        ))),
        None => Ok(()),
    }
}

/// The keys that all nodes hold, in the same order at all of them.
fn common_keys(core: &Core, net: &mut TlsNet) -> Result<Vec<HeldKey>> {
    let held = core.store.held_keys().map_err(system)?;
    let mine = held.iter().map(listed).collect::<Result<Vec<_>>>()?;
    let lists = tell_lists(&mine, net)?;
    let mut heard: Vec<&[Listed]> = lists.iter().map(Vec::as_slice).collect();
    heard.insert(core.me.index(), &mine);
    compare("keys", &heard.concat().concat(), net)?;
    let common = common(&mine, &lists)?;
    Ok(held.into_iter().filter(|key| common.binary_search(&key.id).is_ok()).collect())
}

type Listed = [u8; LISTED];

const PENDING: u8 = 1;
const ANNOUNCED: u8 = 2;
const DELETED: u8 = 3;

fn listed(key: &HeldKey) -> Result<Listed> {
    let mut bytes = [0; LISTED];
    bytes[..16].copy_from_slice(&key.id);
    bytes[16] = match key.state {
        KeyState::Pending => PENDING,
        KeyState::Announced => ANNOUNCED,
        KeyState::Deleted => DELETED,
    };
    if let Some(info) = &key.info {
        let digest = blake3::derive_key("polyclave 2026 properties of a key", &wire::encode(info)?);
        bytes[17..].copy_from_slice(&digest);
    }
    Ok(bytes)
}

/// The ids of the keys that all nodes hold, in their order: decided from all lists, so alike at all nodes. Nobody's word deletes a
/// key here.
fn common(mine: &[Listed], theirs: &[Vec<Listed>]) -> Result<Vec<[u8; 16]>> {
    let nodes = 1 + theirs.len();
    let mut entries: BTreeMap<[u8; 16], Vec<&Listed>> = BTreeMap::new();
    for list in [mine].into_iter().chain(theirs.iter().map(Vec::as_slice)) {
        let mut ids: Vec<[u8; 16]> = list.iter().map(id_of).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::System("a node lists a key twice".into()));
        }
        list.iter().for_each(|key| entries.entry(id_of(key)).or_default().push(key));
    }
    let mut common = Vec::new();
    for (id, entries) in entries {
        let is = |state: u8| entries.iter().any(|key| key[16] == state);
        let alike = entries.iter().all(|key| key[17..] == entries[0][17..]);
        match () {
            () if entries.len() == nodes && alike && !is(DELETED) => common.push(id),
            () if is(ANNOUNCED) => {
                return Err(Error::System(format!(
                    "not all nodes hold the key with the id {}: restore the backup of the node that lacks it, or delete it at \
                     all of them, and order the rotation again",
                    hex::encode(id)
                )));
            }
            // Its making never came to an end, or it is gone everywhere.
            () => {}
        }
    }
    Ok(common)
}

fn id_of(key: &Listed) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&key[..16]);
    id
}

/// Sends a list to every other node, and returns what each has sent.
fn tell_lists(mine: &[Listed], net: &mut TlsNet) -> Result<Vec<Vec<Listed>>> {
    let me = net.me();
    let bytes = mine.concat();
    let mut lens = vec![0; net.parties()];
    for (party, len) in tell_all(&(mine.len() as u64).to_le_bytes(), net)? {
        lens[party.index()] = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
        if lens[party.index()] > MOST_KEYS {
            return Err(Error::System(format!(
                "{party} lists more keys, deleted ones included, than {MOST_KEYS}"
            )));
        }
    }
    let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; len * LISTED]).collect();
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if p == me { &[][..] } else { &bytes[..] }).collect();
    net.exchange(&out, &mut buffers.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    let others = Party::all(net.parties()).zip(buffers).filter(|(p, _)| *p != me);
    Ok(others.map(|(_, list)| list.as_chunks().0.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: [u8; 32] = [1; 32];
    const P: [u8; 32] = [2; 32];

    /// Whether a rotation is wanted, the set-up in use, and the one prepared.
    type Brief = (bool, [u8; 32], Option<[u8; 32]>);

    fn at(standings: &[Brief]) -> Result<Course> {
        let all = Party::all(standings.len()).zip(standings.iter());
        let all =
            all.map(|(party, &(wants, in_use, prepared))| (party, Standing { wants, in_use, prepared }));
        course(&all.collect::<Vec<_>>())
    }

    #[test]
    fn what_all_have_stored_is_completed_and_nothing_else() {
        let (wanted, ready, done) = ((true, S, None), (true, S, Some(P)), (false, P, None));
        assert_eq!(at(&[wanted, wanted]), Ok(Course::Begin));
        assert_eq!(at(&[wanted, (false, S, None)]), Ok(Course::Nothing));
        assert_eq!(at(&[ready, wanted]), Ok(Course::Begin), "nobody can be at P");
        assert_eq!(at(&[ready, ready]), Ok(Course::Complete(P)));
        assert_eq!(at(&[ready, done]), Ok(Course::Complete(P)));
        assert_eq!(at(&[done, ready, ready]), Ok(Course::Complete(P)));
        assert_eq!(at(&[ready, (true, S, Some([3; 32]))]), Ok(Course::Begin));
        assert!(at(&[done, wanted]).is_err(), "that one was restored from before");
    }

    #[test]
    fn a_standing_is_read_as_it_was_told() {
        for (wants, prepared) in [(true, None), (false, Some(P))] {
            let standing = Standing { wants, in_use: S, prepared };
            assert!(Standing::decode(&standing.encode()) == standing);
        }
    }

    fn entry(id: u8, state: u8) -> Listed {
        let mut bytes = [9; LISTED];
        bytes[..16].fill(id);
        bytes[16] = state;
        bytes
    }

    #[test]
    fn keys_that_all_hold_are_carried_over() {
        let mine = [entry(1, ANNOUNCED), entry(2, PENDING), entry(3, PENDING), entry(5, DELETED)];
        let theirs = vec![entry(1, PENDING), entry(2, PENDING), entry(5, DELETED), entry(7, PENDING)];
        assert_eq!(common(&mine, &[theirs]), Ok(vec![[1; 16], [2; 16]]));
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![]]).is_err(), "a backup could save it");
        let deleted = common(&[entry(1, ANNOUNCED)], &[vec![entry(1, DELETED)]]);
        assert!(deleted.is_err(), "one node's word deletes nothing");
        let mut other = entry(1, ANNOUNCED);
        other[40] ^= 1;
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![other]]).is_err(), "another key under the same id");
        assert!(common(&[], &[vec![entry(1, ANNOUNCED); 2]]).is_err(), "one node speaks once for a key");
    }
}
