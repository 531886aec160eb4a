//! What a node does at regular times.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use polyclave_api::Refusal;
use polyclave_config::{NodeDir, NodeOperation};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::versions;
use polyclave_store::Store;
use polyclave_traces::SpanCounts;

use crate::audit::Event;
use crate::clock::{Dates, now};
use crate::core::Core;
use crate::material::refresh;
use crate::material::setup::Leader;
use crate::operator::certificates::Watch;
use crate::operator::reload;
use crate::operator::soon::KeysOfSoon;
use crate::requests::channels::PING_EVERY;
use crate::threads::POLL_INTERVAL;
use crate::traces::Traces;

/// The pause before a retry of something that failed, perhaps because the disk is full.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How often keys are counted: it takes about 100 ms for 10,000 of them.
const COUNT_KEYS_EVERY: Duration = Duration::from_secs(300);

/// Ends session keys and components, reloads the policy and the certificates of authorities when their files
/// change, pings channels, starts an
/// agreement on common secrets if one is due, orders a refresh if one is due, writes the audit log.
pub(crate) fn keep_house(core: &Arc<Core>, dir: &NodeDir, policy: &Path) {
    let modified = || policy.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let (mut policy_of, mut pinged, mut flushed) = (modified(), Instant::now(), Instant::now());
    let (mut noted, mut leader, mut misfit, mut not_erased) = (None, Leader::default(), None, None);
    let (mut certificates, mut leftovers) = (Watch::default(), Leftovers::default());
    let mut keys_counted: Option<Instant> = None;
    let is_first = core.members.is_first_worker();
    if is_first {
        end_keys(core);
        leftovers.remove(core);
    }
    look_over_keys(&core.store);
    let mut edition = core.store.edition();
    while !core.threads.is_stopping() {
        thread::sleep(POLL_INTERVAL);
        // What it says is told where it matters: in refusals, and by whether the node is ready.
        let _ = core.material.sync();
        if !is_first && core.store.edition() != edition {
            edition = core.store.edition();
            certificates.look_again();
            reload::follow(&core.rules, &core.store);
        }
        if modified() != policy_of {
            policy_of = modified();
            certificates.look_again();
            match dir.policy() {
                Ok(policy) => reload::take(core, dir, policy),
                Err(e) => {
                    tracing::error!(error = %e, "the policy cannot be read; the previous one stays in force")
                }
            }
        }
        reload::read_authorities(core, dir);
        if pinged.elapsed() >= PING_EVERY {
            pinged = Instant::now();
            core.service.channels.ping();
        }
        leader.lead_if_due(&core.material);
        if let Some(epoch) = core.material.epoch() {
            epoch.lots.note_missing(core.members.all().without(core.network.peers.connected()));
        }
        if flushed.elapsed() >= Duration::from_secs(1) {
            flushed = Instant::now();
            if is_first {
                end_keys(core);
                leftovers.remove(core);
            }
            core.service.keys.release_leftover_claims();
            reload::log(core);
            core.logbook.settle(&mut noted);
            core.material.strategy.settle(&core.material);
            Dates::watch(core.clock_misfit(), &mut misfit);
            certificates.look(&core.dates, &core.rules, core.warn_days);
            metrics::gauge!("polyclave_store_damaged")
                .set(f64::from(u8::from(core.store.file_damage().is_some())));
            core.material.count_stock();
            if let Some(delay) = core.service.delay.known() {
                metrics::gauge!("polyclave_round_trip_seconds").set(delay.as_secs_f64());
            }
            metrics::gauge!("polyclave_peers_connected")
                .set(core.network.peers.connected().len() as f64 - 1.0);
            metrics::gauge!("polyclave_ready").set(f64::from(u8::from(core.is_ready())));
            count_peers(core);
            count_spans(core);
            metrics::counter!("polyclave_blocks_computed_total")
                .absolute(core.service.computed.load(Relaxed));
            let status = core.status();
            if is_first && keys_counted.is_none_or(|at| at.elapsed() >= COUNT_KEYS_EVERY) {
                keys_counted = Some(Instant::now());
                count_keys(core);
            }
            if is_first {
                refresh(core, dir.settings().refresh.every_days);
                erase_replaced(&core.store, &mut not_erased);
            }
            metrics::gauge!("polyclave_keys").set(status.keys as f64);
            metrics::gauge!("polyclave_keys_damaged").set(status.damaged as f64);
            metrics::gauge!("polyclave_keys_lacking").set(status.lacking as f64);
        }
    }
}

/// Counts the other nodes, and those whose program is of another release.
fn count_peers(core: &Core) {
    let peers = &core.network.peers;
    let others = core.members.others().filter_map(|peer| peers.program(peer));
    let of_other_releases = others.filter(|program| program.release != versions::release()).count();
    metrics::gauge!("polyclave_peers_of_other_releases").set(of_other_releases as f64);
    metrics::gauge!("polyclave_peers").set(core.members.nodes as f64 - 1.0);
    metrics::gauge!("polyclave_nodes_needed").set(core.service.config.quorum() as f64);
    if core.service.strategy.corrects() {
        let all_are_there = peers.connected().len() >= core.members.nodes;
        metrics::gauge!("polyclave_corrects").set(f64::from(u8::from(all_are_there)));
    }
}

/// Counts what has become of the spans of traces.
fn count_spans(core: &Core) {
    if let Some(SpanCounts { sent, dropped, failed }) = core.traces.as_ref().map(Traces::counts) {
        for (outcome, count) in [("sent", sent), ("dropped", dropped), ("failed", failed)] {
            metrics::counter!("polyclave_trace_spans_total", "outcome" => outcome).absolute(count);
        }
    }
}

/// Counts the keys that a person has to do something about soon. All keys are read for it.
fn count_keys(core: &Core) {
    if let Some(soon) = KeysOfSoon::of_store(&core.store, now()) {
        metrics::gauge!("polyclave_keys_nearly_spent").set(soon.nearly_spent as f64);
        metrics::gauge!("polyclave_keys_expiring").set(soon.expiring as f64);
    }
}

/// Orders a refresh if one is due by the settings, and tells how it stands. Without a number of days no
/// refresh is ordered. The time of the last one is recorded all the same.
fn refresh(core: &Core, every_days: Option<u32>) {
    let needs =
        core.rules.policy().approvals_for_node(NodeOperation::Refresh).first().map(|rule| rule.message());
    match refresh::order_if_due(&core.material, every_days, needs.as_deref()) {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!("a refresh is ordered, as node.toml has it; it begins when all nodes want it");
            core.logbook.note(&Event { detail: "scheduled", ..Event::of_node("rotate", "done") });
        }
        Err(e) => {
            tracing::error!(error = core.members.message(&e), "a refresh is due and could not be ordered");
        }
    }
    let progress = core.material.refresh_progress();
    let wanted = core.material.refresh_wanted_by().contains(core.members.me);
    metrics::gauge!("polyclave_refresh_wanted").set(f64::from(u8::from(wanted)));
    metrics::gauge!("polyclave_refresh_running").set(f64::from(u8::from(progress.running)));
    if let Ok(Some(since)) = core.store.secrets_since() {
        metrics::gauge!("polyclave_refreshed_timestamp_seconds").set(since as f64);
    }
}

/// Removes the session keys and components whose time has ended, unless a refresh is under way, which carries
/// over what it has found.
fn end_keys(core: &Core) {
    let Ok(Some(_held_off)) = core.material.hold_off_refresh(false) else { return };
    match core.store.end_keys(now()) {
        Ok(0) => {}
        Ok(ended) => tracing::debug!(ended, "session keys or components of keys have ended"),
        Err(e) => tracing::error!(error = %e, "keys whose time has ended could not be removed"),
    }
}

/// What a crash has left of components whose key was made. It is removed once after a start, and nothing may
/// prevent that for good.
#[derive(Default)]
struct Leftovers {
    are_removed: bool,
    not_before: Option<Instant>,
}

impl Leftovers {
    fn remove(&mut self, core: &Core) {
        self.attempt(|| {
            let _held_off = core.material.hold_off_refresh(false).ok().flatten()?;
            Some(core.service.keys.remove_combined())
        });
    }

    /// Tries it, until it is done. `removal` returns nothing while a refresh is under way. After a failure
    /// there is a pause.
    fn attempt(&mut self, removal: impl FnOnce() -> Option<Result<usize, Refusal>>) {
        if self.are_removed || self.not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        match removal() {
            None => {}
            Some(Ok(removed)) => {
                self.are_removed = true;
                if removed > 0 {
                    tracing::info!(removed, "components are removed whose key was made before a crash");
                }
            }
            Some(Err(e)) => {
                self.not_before = Some(Instant::now() + AFTER_FAILURE);
                let text = "components of keys that are made could not be removed; this is tried again";
                tracing::error!(error = e.message, "{text}");
            }
        }
    }
}

/// Erases what a refresh has replaced. If that fails, mostly because the disk is full, it is tried again
/// after a while.
fn erase_replaced(store: &Store, failed: &mut Option<Instant>) {
    if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
        return;
    }
    *failed = None;
    match store.erase_replaced() {
        Ok(false) => {}
        Ok(true) => tracing::info!("shares and common secrets from before the refresh are erased"),
        Err(e) => {
            *failed = Some(Instant::now());
            tracing::error!(error = %e, "shares from before a refresh could not be erased; this is tried again");
        }
    }
}

/// Damage of a key should be known before the key is used.
fn look_over_keys(store: &Store) {
    match store.look_over() {
        Ok(damaged) if damaged.is_empty() => {}
        Ok(damaged) => tracing::error!(
            keys = damaged.join(", "),
            "records of keys are damaged: other nodes serve where enough have them; restore a backup of this node"
        ),
        Err(e) => tracing::error!(error = %e, "the keys could not be checked"),
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Reason;

    use super::*;

    #[test]
    fn what_is_left_of_components_is_removed_as_soon_as_nothing_prevents_it_and_once() {
        let (mut leftovers, mut tries) = (Leftovers::default(), Vec::new());
        let mut attempt = |leftovers: &mut Leftovers, outcome: Option<Result<usize, Reason>>| {
            let outcome = outcome.map(|done| done.map_err(|reason| Refusal::new(reason, "full")));
            let mut tried = false;
            leftovers.attempt(|| {
                tried = true;
                outcome
            });
            tries.push(tried);
        };
        attempt(&mut leftovers, None);
        attempt(&mut leftovers, Some(Err(Reason::Internal)));
        attempt(&mut leftovers, Some(Ok(2)));
        leftovers.not_before = Some(Instant::now());
        attempt(&mut leftovers, Some(Ok(2)));
        attempt(&mut leftovers, Some(Ok(0)));
        assert_eq!(tries, [true, true, false, true, false], "a refresh, a failure, its pause, done");
    }
}
