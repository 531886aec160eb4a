//! What a worker learns of the others of its party (`store/src/worker.rs`).
//!
//! The first worker alone agrees with the other nodes on common secrets, refreshes keys to fresh ones,
//! removes what has ended, and takes changed rules for clients into force. The others serve, with the state
//! that is in the store. When they find new common secrets there, they compute nothing more and start again:
//! that takes a moment, and leaves nothing of the old ones in memory.

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Relaxed;

use polyclave_api::Refusal;
use polyclave_config::Role;
use polyclave_store::{Store, StoreError};

use crate::error::of_store;
use crate::material::refresh;
use crate::material::state::Material;

/// What a worker that is not the first waits for when it starts.
pub(crate) const NO_SECRETS: &str =
    "the nodes have not yet agreed on their common secrets, which their first workers do; start those";

impl Material {
    /// Learns what other workers have changed in the store. Called before shares are read for a request, and
    /// at regular times.
    pub(crate) fn sync(&self) -> Result<(), Refusal> {
        let synced = self.store.sync();
        if matches!(synced, Err(StoreError::Renewed)) && !self.members.is_first_worker() {
            self.is_outdated.store(true, Relaxed);
        }
        self.is_cut_off.store(matches!(synced, Err(StoreError::Server { .. })), Relaxed);
        synced.map_err(of_store)?;
        let edition = self.store.edition();
        if self.heard.swap(edition, Relaxed) != edition {
            self.hear_store().inspect_err(|_| self.heard.store(0, Relaxed)).map_err(of_store)?;
        }
        Ok(())
    }

    fn hear_store(&self) -> Result<(), StoreError> {
        let heard = {
            // Held while the store is asked: a refresh that ends a quarantine holds it until that is on the
            // disk.
            let mut current = self.quarantine.write();
            if current.is_none() {
                *current = self.store.quarantined()?;
                current.clone()
            } else {
                None
            }
        };
        if let Some(quarantine) = heard {
            tracing::error!(
                reason = quarantine.reason,
                "another worker is under quarantine, and so is this one"
            );
            self.strategy.give_up(self, "a check failed at another worker");
            metrics::gauge!("polyclave_quarantined").set(1.0);
        }
        self.hear_features()?;
        self.hear_round()?;
        refresh::read(self)
    }

    /// Learns whether another worker has switched a feature on. One that this program does not know ends its
    /// work: it may not be able to read the store any more. When it starts again it says what it lacks.
    fn hear_features(&self) -> Result<(), StoreError> {
        let features = self.store.features();
        if matches!(features, Err(StoreError::File(_))) {
            self.is_outdated.store(true, Relaxed);
        }
        self.members.note_features(features?);
        Ok(())
    }

    /// Learns whether another worker refreshes keys, if only the first worker makes the material of this one.
    /// During that time it makes none, and may wait for a request here that makes a key. So no request here
    /// waits for material.
    fn hear_round(&self) -> Result<(), StoreError> {
        let cluster = &self.members.cluster;
        let makers = cluster.worker_groups() - cluster.roles().serve_only.len();
        if self.role() != Role::Serve || makers > 1 || !self.strategy.pauses_for_refresh() {
            return Ok(());
        }
        let is_held_back = self.store.others_refresh()?;
        self.epoch().iter().for_each(|epoch| epoch.lots.hold_back(is_held_back));
        Ok(())
    }

    /// Whether the server of the store did not answer the last time.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Relaxed)
    }

    /// Whether this worker has to start again, because the common secrets that it began with are replaced.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Relaxed)
    }
}

/// Whether the nodes have agreed on common secrets.
pub(crate) fn have_agreed(store: &Store) -> Result<bool, StoreError> {
    Ok(store.setup()?.is_some_and(|setup| setup.agreed))
}
