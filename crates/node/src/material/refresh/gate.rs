//! What keeps requests and a refresh apart.
//!
//! A request that makes or deletes keys holds the gate until it ends, and a round holds it exclusively. Under
//! protocols that pause for a refresh every request does so. All requests hold the *moment* while they read
//! shares and note which common secrets these belong to. A thread that takes fresh ones into use holds it
//! exclusively. So no request ever has shares of one set and common secrets of another.
//!
//! A request that a round holds up waits for the end of the round (`server/together.rs`).
//!
//! Under protocols that pause, a round waits for requests, and material is made by the thread that waits. So
//! no request waits for material meanwhile: it takes what is in stock, or ends as one that finds the stock
//! dry.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use polyclave_api::{Reason, Refusal};
use polyclave_protocol::Error;

use super::{REFRESHING, Refresh};
use crate::Result;
use crate::error::{of_store, system};
use crate::material::epoch::Epoch;
use crate::material::state::Material;
use crate::threads::POLL_INTERVAL;

/// How long a refresh lets requests go on that have begun. Most of them end meanwhile.
const GRACE: Duration = Duration::from_secs(2);
/// How long a refresh waits for running requests. After [`GRACE`] they end at their next step.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// How long requests wait for the epoch after a refresh.
const AFTER_ROUND: Duration = Duration::from_secs(30);
/// How long a request waits while fresh common secrets are taken into use.
const MOMENT: Duration = Duration::from_secs(10);
/// How long after that a request that began before may still be served, with the shares that it began with.
pub(super) const LONGEST_OLD: Duration = Duration::from_secs(60);

/// Keeps a refresh from taking fresh common secrets into use.
pub(crate) struct HeldOff<'m> {
    _gate: Option<RwLockReadGuard<'m, ()>>,
    moment: Option<RwLockReadGuard<'m, ()>>,
}

impl HeldOff<'_> {
    /// The request has its shares, and knows which common secrets they belong to.
    pub(crate) fn has_read(&mut self) {
        self.moment = None;
    }
}

impl Refresh {
    /// Waits until no request is between reading shares and noting which common secrets they belong to, and
    /// lets none begin.
    pub(super) fn moment(&self) -> Result<RwLockWriteGuard<'_, ()>> {
        let moment = self.moment.try_write_for(LAST_REQUESTS);
        moment.ok_or_else(|| Error::System("running requests did not end in time".into()))
    }
}

impl Material {
    /// While this is held, no refresh changes shares of keys. It must be taken before any share is read, by a
    /// request that only uses keys or by one that makes or deletes one. `None` while the request has to wait
    /// for a refresh.
    pub(crate) fn hold_off_refresh(&self, only_uses: bool) -> Result<Option<HeldOff<'_>>, Refusal> {
        self.sync()?;
        if !only_uses && self.store.others_refresh().map_err(of_store)? {
            return Ok(None);
        }
        let gate = match self.waits_for_refreshes(only_uses) {
            false => None,
            true if self.is_refreshing() => return Ok(None),
            true => match self.refresh.gate.try_read() {
                // A round that has just ended may have prepared something.
                Some(gate) if !self.is_refreshing() => Some(gate),
                _ => return Ok(None),
            },
        };
        let moment = self.refresh.moment.try_read_for(MOMENT);
        let moment = moment.ok_or_else(|| Refusal::new(Reason::Unavailable, REFRESHING))?;
        Ok(Some(HeldOff { _gate: gate, moment: Some(moment) }))
    }

    /// Whether a request waits for refreshes, and they for it.
    fn waits_for_refreshes(&self, only_uses: bool) -> bool {
        !only_uses || self.strategy.pauses_for_refresh()
    }

    /// Whether a refresh may be waiting for a request that has not begun.
    pub(crate) fn is_in_the_way(&self, only_uses: bool) -> bool {
        self.waits_for_refreshes(only_uses) && self.is_refreshing()
    }

    /// Whether requests that have begun get no further step, because a round waits for them.
    pub(crate) fn refresh_ends_requests(&self) -> bool {
        self.refresh.ends_requests.load(Relaxed)
    }

    /// Whether the nodes are making an epoch after a refresh that ended the one before.
    pub(crate) fn awaits_epoch(&self) -> bool {
        let renewed = *self.refresh.renewed.lock();
        self.strategy.pauses_for_refresh()
            && self.epoch().is_none()
            && !self.is_quarantined()
            && renewed.is_some_and(|since| since.elapsed() < AFTER_ROUND)
    }

    /// Whether fresh common secrets have been in use for so long that no request under earlier ones is served
    /// any more.
    pub(crate) fn has_outlived(&self, setup: &[u8; 32]) -> bool {
        let renewed = *self.refresh.renewed.lock();
        self.setup().is_ok_and(|current| current.id != *setup)
            && renewed.is_none_or(|since| since.elapsed() > LONGEST_OLD)
    }
}

/// While this exists, no request makes or deletes a key, here or at another worker, and none runs here at all
/// if the strategy pauses for a refresh.
pub(super) struct Drained<'c> {
    _held_back: HeldBack,
    material: &'c Material,
    _gate: RwLockWriteGuard<'c, ()>,
}

impl Drained<'_> {
    pub(super) fn wait(material: &Material) -> Result<Drained<'_>> {
        let began = Instant::now();
        let until = began + LAST_REQUESTS;
        let held_back = HeldBack::of(material);
        loop {
            if let Some(gate) = material.refresh.gate.try_write() {
                let drained = Drained { _held_back: held_back, material, _gate: gate };
                drained.wait_for_workers(until)?;
                return Ok(drained);
            }
            refuse_late(material, until)?;
            material.refresh.ends_requests.store(began.elapsed() > GRACE, Relaxed);
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn wait_for_workers(&self, until: Instant) -> Result<()> {
        let store = &self.material.store;
        store.begin_round().map_err(system)?;
        while store.others_are_making().map_err(system)? {
            refuse_late(self.material, until)?;
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for Drained<'_> {
    fn drop(&mut self) {
        // If it fails, other workers change no keys until this one has started again or has carried keys over
        // once more.
        if let Err(e) = self.material.store.end_round() {
            tracing::error!(error = %e, "the end of a round could not be written down: until the next one, other workers change no keys");
        }
    }
}

/// While this exists, no request of this epoch waits for material: the thread that would have it made is busy
/// with the round.
struct HeldBack(Option<Arc<Epoch>>);

impl HeldBack {
    fn of(material: &Material) -> HeldBack {
        let epoch = material.epoch().filter(|_| material.strategy.pauses_for_refresh());
        epoch.iter().for_each(|epoch| epoch.lots.hold_back(true));
        HeldBack(epoch)
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.0.iter().for_each(|epoch| epoch.lots.hold_back(false));
    }
}

fn refuse_late(material: &Material, until: Instant) -> Result<()> {
    match Instant::now() > until || material.threads.is_stopping() {
        true => Err(Error::System("running requests did not end in time".into())),
        false => Ok(()),
    }
}
