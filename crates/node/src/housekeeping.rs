//! What a node does by the clock.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use polyclave_config::NodeDir;
use polyclave_protocol::PartySet;
use polyclave_protocol::service::ServiceScheme;

use crate::channels::PING_EVERY;
use crate::core::Core;
use crate::set_up::Leader;
use crate::threads::LOOK;

/// Reloads the policy when its file changes, pings channels, sees whether the nodes have to agree on common secrets, writes the audit log.
pub(crate) fn keep_house<S: ServiceScheme>(core: &Arc<Core<S>>, dir: &NodeDir, policy: &Path) {
    let modified = || policy.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let (mut policy_of, mut pinged, mut flushed) = (modified(), Instant::now(), Instant::now());
    let (mut noted, mut leader) = (None, Leader::default());
    while !core.is_stopping() {
        thread::sleep(LOOK);
        if modified() != policy_of {
            policy_of = modified();
            match dir.policy() {
                Ok(policy) => {
                    tracing::info!(clients = policy.rules().len(), "policy reloaded");
                    *core.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
                }
                Err(e) => {
                    tracing::error!(error = %e, "the policy cannot be read; the one before stays in force")
                }
            }
        }
        if pinged.elapsed() >= PING_EVERY {
            pinged = Instant::now();
            core.channels.ping();
        }
        leader.lead_if_due(core);
        if let Some(epoch) = core.epoch() {
            epoch.lots.note_missing(PartySet::all(core.nodes).without(core.peers.connected()));
        }
        if flushed.elapsed() >= Duration::from_secs(1) {
            flushed = Instant::now();
            core.settle_audit(&mut noted);
            core.settle_quarantine();
            core.count_stock();
            metrics::gauge!("polyclave_peers_connected").set(core.peers.connected().len() as f64 - 1.0);
            metrics::gauge!("polyclave_ready").set(f64::from(u8::from(core.is_ready())));
            metrics::gauge!("polyclave_keys").set(core.store.count().unwrap_or_default() as f64);
        }
    }
}
