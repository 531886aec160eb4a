//! What a node does by the clock.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use polyclave_config::NodeDir;
use polyclave_protocol::Party;
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::random_bytes;

use crate::channels::PING_EVERY;
use crate::core::Core;
use crate::set_up;
use crate::threads::LOOK;

/// Reloads the policy when its file changes, pings channels, has the nodes agree on common secrets, writes the audit log.
pub(crate) fn keep_house<S: ServiceScheme>(core: &Arc<Core<S>>, dir: &NodeDir, policy: &Path) {
    let modified = || policy.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let (mut policy_of, mut pinged, mut flushed) = (modified(), Instant::now(), Instant::now());
    let mut noted = None;
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
        let all_there = core.peers.connected().len() == core.nodes;
        if core.me == Party(0) && all_there && (core.set_up().is_err() || !core.peers.all_set_up()) {
            let mut name = [0; 16];
            if let Err(e) = random_bytes(&mut name).and_then(|()| set_up::lead(core, name)) {
                tracing::warn!(error = %e, "the common secrets were not agreed on");
                thread::sleep(LOOK * 10);
            } else {
                core.peers.note_all_set_up();
            }
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
