//! The two threads that keep a node's standby pairs.
//!
//! One begins each pair once the nodes have common secrets, ends it when these are replaced, and removes
//! shares of keys that are gone ([`keep`]). The other gives the pairs the keys that they lack, as the first
//! node orders it ([`give`]). It waits for peers as long as these may compute, and does nothing else: a peer
//! that stalls holds up nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_config::{Cluster, NodeDir};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_store::{Secret, StandbyBinding, Store};

use super::pair::Pair;
use super::transfer::{self, Given};
use super::{Pairs, pairs_of};
use crate::Result;
use crate::core::{Core, PairOrder};
use crate::error::system;
use crate::keys::standby::PairShares;
use crate::peers::orders::Order;
use crate::threads::POLL_INTERVAL;

/// How often a node looks for keys that its pairs lack.
const LOOK: Duration = Duration::from_secs(1);
/// The pause of the first node after an order that gave nothing, and after one that failed.
const SHORT_PAUSE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_secs(5);

/// Keeps the pairs of this node until it stops.
pub(crate) fn keep(core: &Arc<Core>, dir: &NodeDir, pairs: &Pairs) {
    let of_node = pairs_of(&core.members.cluster, core.members.me);
    let keeper = Keeper { core, dir, pairs, of_node };
    let mut looked = None::<Instant>;
    while !core.threads.is_stopping() {
        thread::sleep(POLL_INTERVAL);
        if looked.is_some_and(|at| at.elapsed() < LOOK) {
            continue;
        }
        looked = Some(Instant::now());
        if let Err(e) = keeper.look() {
            let error = core.members.message(&e);
            tracing::error!(error, "standby pairs cannot be kept up; this is tried again");
        }
    }
    pairs.0.write().drain(..).for_each(|pair| pair.stop());
}

/// Takes part in giving pairs keys until this node stops. The first node orders it.
pub(crate) fn give(core: &Arc<Core>, pairs: &Pairs, orders: &Receiver<PairOrder>) {
    let mut not_before = Instant::now();
    while !core.threads.is_stopping() {
        match orders.recv_timeout(POLL_INTERVAL) {
            Ok((name, pair)) => drop(carry_out(core, pairs, name, pair)),
            Err(_) if Instant::now() >= not_before => {
                not_before = Instant::now() + lead_if_due(core, pairs).unwrap_or_default();
            }
            Err(_) => {}
        }
    }
}

struct Keeper<'k> {
    core: &'k Arc<Core>,
    dir: &'k NodeDir,
    pairs: &'k Pairs,
    /// The pairs that this node is in, by their numbers.
    of_node: Vec<(u8, Cluster)>,
}

impl Keeper<'_> {
    /// Looks after all pairs, and tells operators how they stand.
    fn look(&self) -> Result<()> {
        for (number, cluster) in &self.of_node {
            self.keep_up(*number, cluster)?;
        }
        self.tell_states();
        Ok(())
    }

    /// Begins a pair that should be there, ends one that is over, and notes what it lacks.
    fn keep_up(&self, number: u8, cluster: &Cluster) -> Result<()> {
        let (core, Some(set)) = (self.core, cluster.pair()) else { return Ok(()) };
        let Ok(secrets) = core.material.setup().map(|setup| setup.id) else { return Ok(()) };
        if let Some(old) = self.pairs.of(set) {
            let all_are_there = core.network.is_complete() && core.material.context().is_ok();
            if old.secrets != secrets || old.is_over() || old.is_stuck(all_are_there) {
                self.end(&old)?;
            }
        }
        let pair = match self.pairs.of(set) {
            Some(pair) => pair,
            None => self.begin(cluster, set, secrets)?,
        };
        let runs = pair.run(core, &self.dir.settings().stock)?;
        // In this order: a key that is given meanwhile is held.
        let there = pair.shares.ids();
        let held = core.service.keys.standby().wanted(&core.store)?;
        let gone: Vec<[u8; 16]> = there.difference(&held).copied().collect();
        // Before it runs, the nodes have to meet.
        let lacks = !runs || held.difference(&there).next().is_some();
        if !gone.is_empty() {
            let changing = core.service.keys.standby().change();
            pair.shares.remove(&changing, &gone).map_err(system)?;
        }
        let bit = 1 << number;
        match lacks {
            true => core.material.lacks_standby.fetch_or(bit, Relaxed),
            false => core.material.lacks_standby.fetch_and(!bit, Relaxed),
        };
        Ok(())
    }

    fn begin(&self, cluster: &Cluster, set: PartySet, secrets: [u8; 32]) -> Result<Arc<Pair>> {
        let path = self.path(set);
        let secret = Secret::from_bytes(*self.dir.secret().map_err(system)?);
        let mut store = Store::standby(&path, &secret).map_err(system)?;
        let mut binding = store.standby_binding().map_err(system)?;
        if binding.is_some_and(|binding| binding.secrets != secrets) {
            drop(store);
            Store::remove_standby_file(&path).map_err(system)?;
            store = Store::standby(&path, &secret).map_err(system)?;
            binding = None;
        }
        if binding.is_none() {
            let mut own = [0; 16];
            random_bytes(&mut own)?;
            store.bind_standby(&StandbyBinding { secrets, own, partner: None }).map_err(system)?;
        }
        let shares = Arc::new(PairShares::of(Arc::new(store)).map_err(system)?);
        let pair = Pair::new(cluster.clone(), shares.clone(), secrets)?;
        self.core.service.keys.standby().change().set(set, Some(shares));
        self.pairs.0.write().push(pair.clone());
        Ok(pair)
    }

    /// Ends a pair for good: its shares are destroyed.
    fn end(&self, pair: &Arc<Pair>) -> Result<()> {
        self.pairs.0.write().retain(|other| other.set != pair.set);
        pair.stop();
        let mut standby = self.core.service.keys.standby().change();
        standby.set(pair.set, None);
        Store::remove_standby_file(&self.path(pair.set)).map_err(system)?;
        tracing::info!(
            partner = self.partner(pair.set),
            "a standby pair has ended, and its shares are destroyed"
        );
        Ok(())
    }

    fn path(&self, set: PartySet) -> std::path::PathBuf {
        self.dir.standby_path(&self.partner(set))
    }

    fn partner(&self, set: PartySet) -> String {
        let others: PartySet = set.iter().filter(|party| *party != self.core.members.me).collect();
        self.core.members.names_of(others).concat()
    }

    /// Tells operators how the pairs stand.
    fn tell_states(&self) {
        let states = self.core.pair_states();
        for state in &states {
            let labels = [("partner", state.partner.clone())];
            metrics::gauge!("polyclave_standby_ready", &labels).set(f64::from(u8::from(state.ready)));
            metrics::gauge!("polyclave_standby_serves", &labels).set(f64::from(u8::from(state.serves)));
            metrics::gauge!("polyclave_standby_keys_lacking", &labels).set(state.lacking as f64);
            metrics::counter!("polyclave_standby_blocks_total", &labels).absolute(state.blocks);
        }
        *self.core.pairs.seen.lock() = states;
    }
}

/// At the first node: orders that a pair gets keys, if one of its nodes says that it lacks some. Returns
/// the pause until the next order, if there was one.
fn lead_if_due(core: &Core, pairs: &Pairs) -> Option<Duration> {
    let material = &core.material;
    let is_able = core.members.me == Party(0)
        && core.network.is_complete()
        && material.context().is_ok()
        && !material.is_refreshing();
    if !is_able {
        return None;
    }
    let lacks = |pair: u8| {
        let bit = 1 << pair;
        let has_bit = |lacking: u8| lacking & bit != 0;
        has_bit(material.lacks_standby.load(Relaxed))
            || core.network.peers.any(|state| has_bit(state.lacks_standby))
    };
    let pair = (0..core.members.cluster.pairs().len() as u8).find(|pair| lacks(*pair))?;
    let mut name = [0; 16];
    let ordered = random_bytes(&mut name).and_then(|()| {
        core.network.order_all(Order::Standby { name, pair })?;
        Ok(())
    });
    Some(if ordered.is_ok() { carry_out(core, pairs, name, pair) } else { PAUSE })
}

/// Takes part in giving a pair keys. Returns the pause until the next order.
fn carry_out(core: &Core, pairs: &Pairs, name: [u8; 16], number: u8) -> Duration {
    let given = match transfer::join(core, pairs, number, name) {
        Ok(given) => given,
        Err(e) => {
            tracing::warn!(error = core.members.message(&e), "a standby pair was not given keys");
            return PAUSE;
        }
    };
    match given {
        Given::Keys(keys) => {
            tracing::debug!(keys, pair = number, "a standby pair was given keys");
            Duration::ZERO
        }
        Given::NotReady => SHORT_PAUSE,
        Given::Anew(pair) => {
            let partner = pair.partner(core);
            tracing::warn!(
                partner,
                "has another store of this standby pair than before; the pair begins anew"
            );
            pair.give_up();
            SHORT_PAUSE
        }
    }
}
