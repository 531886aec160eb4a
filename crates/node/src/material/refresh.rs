//! Refresh: the nodes make fresh common secrets and carry every stored key over to them, with fresh
//! shares. Old shares and old common secrets are of no use together with the new ones. It ends a quarantine.
//!
//! **Adversary**: mobile (Ostrovsky and Yung 1991; Herzberg, Jarecki, Krawczyk and Yung 1995). Between two
//! refreshes it has at most t nodes, or copies of their disks and backups; over time it may have had all of
//! them. A node that it has during a refresh counts for both times. It must be driven out of the others
//! before, and cannot act in their name any more. `shamir/refresh.rs` and `spdz/refresh.rs` of the protocol
//! crate say why shares before and after do not combine. This requires that a node keeps no share, no common
//! secret and no material from before after [`commit`]. The exceptions are requests that were running, for
//! [`gate::LONGEST_OLD`] at most, and sealed bytes in free pages of the database (docs/security/refresh.md).
//!
//! Every operator orders it at their own node ([`crate::operator::admin`]), or `node.toml` does
//! ([`order_if_due`]); the order is durable. A node is in one of these states, all of them on its disk
//! ([`Store`](polyclave_store::Store)). S is the id of the common secrets in use, P the id of those prepared:
//!
//! ```text
//!   idle (S)  --operator-->  wanted (S)  --computed with all-->  prepared (S, P)  --all have prepared P-->  idle (P)
//!                                 ^                                   |
//!                                 +---- nobody is at P, some lack it -+
//! ```
//!
//! The first node leads: when all nodes want a refresh, or any node has something prepared, it orders a
//! round. In a round no key is made or deleted. Under active protocols that abort no request runs at all,
//! since the epoch ends. Under the other protocols keys are used during the whole round, under S. Only the
//! moment in which P is taken into use has to wait until no request is between reading shares and noting
//! which common secrets they belong to. (Nodes compare these common secrets in every request, so shares of S
//! and of P never meet.) All nodes are connected, tell each other (wants, S, P), and compare what each has
//! heard. Then
//!
//! 1. *The S of one node is the P of another*, or *all have prepared the same P*: all nodes had stored P, so
//!    the nodes that have it prepared take it into use, and the round is over.
//! 2. Otherwise no node has taken anything into use, because no node does before all have said that they
//!    stored it. What is prepared is given up. If all want a refresh, the nodes make it: fresh common
//!    secrets, both sets renewed, every key that all nodes hold carried over and stored beside the old one,
//!    piece by piece, and last the common secrets stored as prepared. All nodes tell each other so. Then each
//!    node takes all of it into use in one transaction, which also ends the quarantine and the wish.
//!
//! Carrying over is checked by the protocols before anything is prepared, so no key's check value is computed
//! again. Under Shamir sharing the nodes test that the values added to shares are sharings of zero. Under
//! protocols with MACs the opened values have MACs. Under replicated sharing every node adds the same zeros,
//! and each two nodes compare the shares that both hold afterwards.
//!
//! So a crash at any moment leaves every node at S or at P with all keys, and a round with all nodes brings
//! them together: a node at P knew that all had stored P, and no node gives P up while another could be at P.
//! A node with something prepared makes and deletes no key, so that its keys stay exactly those that were
//! refreshed.
//!
//! A failure that would come again ends the wish at the nodes that see it: a check that fails, and shares of
//! a stored key that cannot be read, or that do not fit those of another node ([`would_repeat`],
//! [`refresh`]). Then the nodes serve as before, the operators look first, and order the refresh again. By
//! the settings alone a node orders none for a day. Other failures, such as a connection that ends, lead to
//! another try.
//!
//! The old MAC key was given up in memory when a check failed; here the nodes use it once more, as it was
//! stored. The failed check may have told a cheater something about it (no check opens anything of it:
//! `authenticated/check.rs`). After b failed checks, those of earlier rounds included, what is refreshed is
//! right except with probability sum over j <= b of C(64, j) 2^-64
//! ([`Guesses`](polyclave_protocol::authenticated::Guesses)). Every node counts durably what it has seen, and
//! takes no part in a round once that probability is more than 2^-40, after six checks, unless its operator
//! accepts the risk ([`refuse_guessed`]). All values that are opened under the old key are masked, so they
//! stay secret even from a cheater that knows the key.
//!
//! A key is refreshed if all nodes hold it, whether announced or pending. A deletion that was interrupted is
//! completed or given up first (`refresh/common.rs`). Any other key that is announced at some nodes, and
//! missing or deleted at others, stops the refresh until it is ordered again: a backup of the latter nodes
//! could save the key, and no single node can delete keys at others.

mod common;
#[cfg(test)]
mod fuzz;
mod gate;
mod state;
mod stored;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{AgreedSession, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::{HeldKey, Store, StoreError};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::audit::Event;
use crate::clock::now;
use crate::error::system;
use crate::material::epoch::meet;
use crate::material::quarantine::refuse_guessed;
use crate::material::setup;
use crate::material::state::Material;
use crate::peers::exchange::tell_all;
use crate::peers::orders::Order;
use common::{Held, common_keys};
use gate::Drained;
pub(crate) use gate::HeldOff;
use state::{NextStep, RefreshState, next_step};
use stored::refresh_values;

/// How many keys the nodes refresh together: these are in memory.
const KEYS_AT_ONCE: usize = 128;
const DAY: Duration = Duration::from_secs(86_400);
/// What a client is told during a refresh.
pub(crate) const REFRESHING: &str = "a refresh is under way, in which the nodes give all keys fresh shares: ask again when it is done, which \
    `polyclave node status` says at each node";

/// How far a refresh has come at a node.
#[derive(Default)]
pub(crate) struct Refresh {
    /// The operator has ordered fresh common secrets.
    pub(super) wanted: AtomicBool,
    /// The nodes are making fresh common secrets.
    running: AtomicBool,
    /// A round has waited so long for requests that these get no further step.
    ends_requests: AtomicBool,
    /// Fresh common secrets are stored and not yet in use.
    pub(super) prepared: AtomicBool,
    /// Requests that make or delete keys hold it shared; a round holds it exclusively. Under protocols that
    /// pause for a refresh this holds for all requests.
    gate: RwLock<()>,
    /// Requests hold it shared while they read shares and common secrets. While it is held exclusively, fresh
    /// ones are taken into use.
    moment: RwLock<()>,
    /// How many keys have been refreshed in this round, and of how many.
    refreshed: AtomicUsize,
    of: AtomicUsize,
    /// Why the last round failed.
    trouble: Mutex<Option<String>>,
    /// When this node last took fresh common secrets into use.
    renewed: Mutex<Option<Instant>>,
    /// When a failure last ended a wish of this node.
    given_up: Mutex<Option<Instant>>,
}

/// What a refresh is doing at a node, for its operator.
pub(crate) struct Progress {
    pub(crate) running: bool,
    pub(crate) refreshed: usize,
    pub(crate) of: usize,
    pub(crate) trouble: Option<String>,
}

impl Material {
    /// The nodes whose operators have ordered fresh common secrets.
    pub(crate) fn refresh_wanted_by(&self) -> PartySet {
        let own = self.refresh.wanted.load(Relaxed).then_some(self.members.me);
        self.network.peers.which(|state| state.wants_refresh).iter().chain(own).collect()
    }

    /// Remembers why a refresh failed, or what it has made of no use, for the operator.
    pub(crate) fn note_trouble(&self, error: &Error) {
        *self.refresh.trouble.lock() = Some(self.members.message(error));
    }

    /// What a refresh is doing.
    pub(crate) fn refresh_progress(&self) -> Progress {
        let Refresh { running, refreshed, of, trouble, .. } = &self.refresh;
        Progress {
            running: running.load(Relaxed),
            refreshed: refreshed.load(Relaxed),
            of: of.load(Relaxed),
            trouble: trouble.lock().clone(),
        }
    }

    /// Whether common secrets are being made, or are prepared.
    pub(crate) fn is_refreshing(&self) -> bool {
        self.refresh.running.load(Relaxed) || self.refresh.prepared.load(Relaxed)
    }
}

/// Loads the state of an unfinished refresh from the store.
pub(crate) fn load(material: &Material) -> Result<()> {
    read(material).map_err(system)
}

/// The same, with the error of the store.
pub(crate) fn read(material: &Material) -> Result<(), StoreError> {
    material.refresh.wanted.store(material.store.refresh_wanted()?, Relaxed);
    material.refresh.prepared.store(material.store.prepared_refresh()?.is_some(), Relaxed);
    Ok(())
}

/// Whether a round is due; asked at the leading node.
pub(crate) fn is_due(material: &Material) -> bool {
    let all_there = material.network.is_complete();
    let unfinished =
        material.refresh.prepared.load(Relaxed) || material.network.peers.any(|state| state.prepared);
    let all_want =
        material.refresh.wanted.load(Relaxed) && !material.network.peers.any(|state| !state.wants_refresh);
    let is_ready = material.setup().is_ok() && material.refuse_uncounted().is_ok();
    material.members.is_first_worker() && is_ready && all_there && (unfinished || all_want)
}

/// Orders all nodes to take part in a round.
pub(crate) fn lead(material: &Material, name: [u8; 16]) -> Result<()> {
    material.network.order_all(Order::Rotate { name })?;
    join(material, name)
}

/// Orders a refresh by itself if the common secrets are so many days old, and returns whether it has. A node
/// that does not know how old they are counts from now on. If a refresh needs approval, which is what `needs`
/// says, it only tells the operator that one is due. After a failure that ended a wish it orders none for a
/// day, so that it does not keep the nodes from serving.
pub(crate) fn order_if_due(
    material: &Material,
    every_days: Option<u32>,
    needs: Option<&str>,
) -> Result<bool> {
    if material.setup().is_err() {
        return Ok(false);
    }
    let now = now();
    let Some(since) = material.store.secrets_since().map_err(system)? else {
        material.store.note_secrets_since(now).map_err(system)?;
        return Ok(false);
    };
    let age = Duration::from_secs(now.saturating_sub(since));
    if every_days.is_none_or(|days| age < DAY * days) || material.refresh.wanted.load(Relaxed) {
        return Ok(false);
    }
    if material.refresh.given_up.lock().is_some_and(|at| at.elapsed() < DAY) {
        return Ok(false);
    }
    if let Some(needs) = needs {
        material.note_trouble(&Error::misuse(format!("a refresh is due, and it needs approval: {needs}")));
        return Ok(false);
    }
    refuse_guessed(&material.store, material.strategy.has_mac_key())?;
    material.store.want_refresh().map_err(system)?;
    load(material)?;
    Ok(true)
}

/// Takes part in a round.
pub(crate) fn join(material: &Material, name: [u8; 16]) -> Result<()> {
    let _alone = material.setting_up.lock();
    material.refuse_uncounted()?;
    let mut net = meet(material, "rotation", name)?;
    let parameters = material.members.handshake();
    let mut session = hello(&material.config.handshake(parameters), &mut net)?;
    material.refresh.running.store(true, Relaxed);
    let done = Drained::wait(material).and_then(|_drained| round(material, &mut session, &mut net));
    for count in [&material.refresh.refreshed, &material.refresh.of] {
        count.store(0, Relaxed);
    }
    material.refresh.running.store(false, Relaxed);
    material.refresh.ends_requests.store(false, Relaxed);
    match &done {
        Ok(()) => *material.refresh.trouble.lock() = None,
        Err(e) => material.note_trouble(e),
    }
    done
}

fn round(material: &Material, session: &mut AgreedSession, net: &mut TlsNet) -> Result<()> {
    let mine = refresh_state(&material.store)?;
    let mut all: Vec<(Party, RefreshState)> = tell_all(&mine.encode(), net)?
        .into_iter()
        .map(|(party, s)| (party, RefreshState::decode(&s)))
        .collect();
    all.push((material.members.me, mine));
    all.sort_by_key(|(party, _)| *party);
    let message: Vec<u8> = all.iter().flat_map(|(_, refresh_state)| refresh_state.encode()).collect();
    compare("standings", &message, net)?;
    match next_step(&all)? {
        NextStep::Complete(id) if mine.prepared == Some(id) => commit(material, id),
        NextStep::Complete(_) => Ok(()),
        NextStep::Nothing => discard(material),
        NextStep::Begin => {
            discard(material)?;
            refuse_guessed(&material.store, material.strategy.has_mac_key())
                .inspect_err(|_| give_up(material))?;
            let id = renew(material, session, net).inspect_err(|e| {
                let quarantined = material.strategy.judge(material, "making fresh common secrets", None, e);
                if quarantined || would_repeat(e, material.strategy.has_mac_key()) {
                    give_up(material);
                }
            })?;
            commit(material, id)
        }
    }
}

fn refresh_state(store: &Store) -> Result<RefreshState> {
    let in_use = store.setup().map_err(system)?.filter(|setup| setup.agreed);
    let in_use = in_use.ok_or_else(|| Error::System("there are no common secrets to replace".into()))?;
    Ok(RefreshState {
        wants: store.refresh_wanted().map_err(system)?,
        in_use: in_use.id,
        prepared: store.prepared_refresh().map_err(system)?,
    })
}

fn discard(material: &Material) -> Result<()> {
    if material.refresh.prepared.load(Relaxed) {
        material.store.discard_refresh().map_err(system)?;
        material.refresh.prepared.store(false, Relaxed);
    }
    Ok(())
}

/// Whether a round that ended like this would end like this again, without an end, so that the operators have
/// to look first. Stored shares that make no sense are a [`Error::Misuse`]. Under a MAC key, failures are
/// judged as a quarantine or belong to an earlier one.
fn would_repeat(error: &Error, has_mac_key: bool) -> bool {
    match error {
        Error::Misuse(_) => true,
        Error::Unanswered { .. } => false,
        error => !has_mac_key && error.may_be_a_wrong_guess(),
    }
}

/// After such a failure nothing is tried again until the operators have ordered it once more.
fn give_up(material: &Material) {
    material.refresh.wanted.store(false, Relaxed);
    *material.refresh.given_up.lock() = Some(Instant::now());
    if let Err(e) = material.store.forget_refresh() {
        tracing::error!(error = %e, "could not write down that the refresh failed");
    }
}

/// Makes fresh common secrets, carries all keys over, and stores both beside what is in use. When this
/// returns, all nodes have stored theirs.
fn renew(material: &Material, session: &mut AgreedSession, net: &mut TlsNet) -> Result<[u8; 32]> {
    let held = common_keys(&material.store, net).inspect_err(|e| {
        // Before the operators have mended it, it would end like this again.
        if matches!(e, Error::System(_)) {
            give_up(material);
        }
    })?;
    let keys = settle_deletions(material, held)?;
    material.strategy.give_up(material, "fresh common secrets are made");
    let config = &material.config;
    let new = config.setup(net)?;
    let bytes = config.save_setup(&new);
    let new = config.renew(&new, net)?;
    let stored = material.store.setup().map_err(system)?;
    let stored = stored.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let old = config.restore_setup(material.members.me, &stored.bytes)?;
    config.guard_guesses(&old, material.guard(true));
    let old = config.renew(&old, net)?;
    material.refresh.of.store(keys.len(), Relaxed);
    // The first piece replaces what an earlier round left, so there is one even if there are no keys.
    let (first, rest) = keys.split_at(keys.len().min(KEYS_AT_ONCE));
    for (number, piece) in (0..).zip([first].into_iter().chain(rest.chunks(KEYS_AT_ONCE))) {
        let refreshed = refresh_values(material, [&old, &new], piece, session, net)?;
        material.store.prepare_keys(number, &refreshed).map_err(system)?;
        material.refresh.refreshed.fetch_add(piece.len(), Relaxed);
    }
    let id = session.id();
    material.store.prepare_refresh(id, &bytes).map_err(system)?;
    material.refresh.prepared.store(true, Relaxed);
    tell_all(&[1], net)?;
    Ok(id)
}

/// Completes the deletions that other nodes have completed, gives up those that no node has, and returns the
/// keys that all nodes hold.
fn settle_deletions(material: &Material, Held { common, deleted }: Held) -> Result<Vec<HeldKey>> {
    for key in deleted {
        let name = key.info.map(|info| info.properties.name).unwrap_or_default();
        material.store.delete(&name, key.id).map_err(system)?;
        tracing::info!(key = %name, id = %hex::encode(key.id), "a deletion that was interrupted is complete");
        material.logbook.note(&Event { key: &name, ..Event::of_node("deletion", "completed") });
    }
    material.store.withdraw_deletions().map_err(system)?;
    Ok(common)
}

/// Takes what is prepared into use.
fn commit(material: &Material, id: [u8; 32]) -> Result<()> {
    let _moment = material.refresh.moment()?;
    material.strategy.give_up(material, "fresh common secrets are taken into use");
    {
        let mut quarantine = material.quarantine.write();
        material.store.commit_refresh(id, now()).map_err(system)?;
        *quarantine = None;
    }
    *material.refresh.renewed.lock() = Some(Instant::now());
    setup::load(material)?;
    load(material)?;
    metrics::gauge!("polyclave_quarantined").set(0.0);
    tracing::info!(id = %hex::encode(&id[..8]), "fresh common secrets are in use, and all keys have fresh shares");
    material.logbook.note(&Event::of_node("rotation", "done"));
    Ok(())
}

/// All nodes have heard the same, or none goes on. Otherwise one node could make some of them take into use
/// what others give up.
fn compare(what: &str, heard: &[u8], net: &mut TlsNet) -> Result<()> {
    let digest = blake3::derive_key("polyclave 2026 what was told in a rotation", heard);
    match tell_all(&digest, net)?.into_iter().find(|(_, theirs)| *theirs != digest) {
        Some((peer, _)) => Err(Error::System(format!(
            "{peer} says that it was told other {what} than this node: some node cheats, perhaps neither of the two"
        ))),
        None => Ok(()),
    }
}
