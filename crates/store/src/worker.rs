//! The workers of a party: processes that share one store at a server, each with a number. A file has one
//! worker, number 0.
//!
//! # Whose records
//!
//! Most records are the party's: keys, budgets, common secrets, quarantine, rules, approvals. A worker's own
//! are its starts, what it has seen of the workers of other parties that it meets, its marks of spent
//! material, and where its audit log ends. They have its number in their names ([`Store::own`]), and nobody
//! else changes them. The mark of the store ([`super::mark`]) is the party's: so a server that has lost the
//! changes of one worker is noticed by the peers of each.
//!
//! # What a worker has in memory
//!
//! Keys and session keys are kept in memory. Every change that other workers must learn of moves
//! the *edition*, a counter, in the same transaction. A worker asks for it before it serves a request
//! ([`Store::sync`]), one short question for all requests that wait for it, and forgets what it kept if
//! another worker has moved it. So a key that was deleted, or a quarantine, counts for all workers from the
//! moment that the change is confirmed.
//!
//! A key is read in the same transaction as the edition. Shares belong to the common secrets in use, and
//! these never come back once they are replaced. So if the edition has moved, it is enough to see afterwards
//! that the common secrets are still those of this process ([`Store::use_setup`]); otherwise the key is not
//! used ([`StoreError::Renewed`]).
//!
//! # Who makes keys
//!
//! Two workers may not make a key of the same name at once: the parties could store both in different orders.
//! So the request that stores a pending key claims its record, and no other worker replaces it until that
//! request is over or its worker has started again. While the first worker refreshes all keys (a *round*), no
//! other one stores, changes or deletes a key; those already stored are announced before it begins.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::engine::{Changes, Record, Records, Table};
use super::own_records::own;
use super::refresh::PREPARED;
use super::setup::{AGREED, load};
use super::{Result, Store, StoreError, incarnation};

/// Behind this the record of a pending key: who stored it.
const MAKING: &[u8] = b"making ";
/// Who refreshes all keys.
const ROUND: &[u8] = b"round";

/// A start of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    worker: u16,
    boot: [u8; 16],
}

/// The last question for the edition that is over.
#[derive(Debug, Default)]
struct Answered {
    number: u64,
    /// The place of the server and what went wrong, if it did not answer.
    unanswered: Option<(String, String)>,
}

/// This process among the workers of its party.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) number: u16,
    /// Drawn by its start, once that is counted.
    boot: OnceLock<[u8; 16]>,
    /// The edition of which everything is known here.
    edition: AtomicU64,
    /// The id of the common secrets that this process uses.
    setup: Mutex<Option<[u8; 32]>>,
    /// How many questions for the edition have begun, and the last one of them that has an answer.
    asked: AtomicU64,
    answered: Mutex<Answered>,
    /// The names and records of pending keys that this process has claimed.
    claims: Mutex<HashMap<Vec<u8>, String>>,
}

impl Worker {
    pub(super) fn new(number: u16) -> Worker {
        Worker { number, ..Worker::default() }
    }

    pub(super) fn begin(&self, boot: [u8; 16]) {
        // A process begins once.
        let _ = self.boot.set(boot);
    }

    fn start(&self) -> Start {
        Start { worker: self.number, boot: self.boot.get().copied().unwrap_or_default() }
    }
}

impl Store {
    /// Whether several workers can share it: it is at a server.
    pub fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// The name of a record of this worker.
    pub(super) fn own(&self, record: &[u8]) -> Vec<u8> {
        own(self.worker.number, record)
    }

    /// Moves the edition, in a change that other workers must learn of.
    pub(super) fn move_edition(&self, changes: &Changes) -> Result<Option<u64>> {
        if !self.engine.is_shared() {
            return Ok(None);
        }
        changes.change_head(|head| {
            head.edition += 1;
            Some(head.edition)
        })
    }

    /// Notes the edition of this process' own change, which is on the disk. It knows that one if it knew the
    /// one before.
    pub(super) fn note_edition(&self, moved: Option<u64>) {
        if let Some(moved) = moved {
            let _ = self.worker.edition.compare_exchange(moved - 1, moved, SeqCst, SeqCst);
        }
    }

    /// The edition that a transaction sees, to be compared by [`Store::know`].
    pub(super) fn edition_of(&self, records: &impl Records) -> u64 {
        if self.engine.is_shared() { records.head().edition } else { 0 }
    }

    /// Learns what has changed, if a transaction has seen another edition than the one known here.
    pub(super) fn know(&self, edition: u64) -> Result<()> {
        if edition == self.worker.edition.load(SeqCst) { Ok(()) } else { self.sync() }
    }

    /// The edition of which everything is known here. It moves when another worker has changed something.
    pub fn edition(&self) -> u64 {
        self.worker.edition.load(SeqCst)
    }

    /// From now on this process uses the common secrets with this id.
    pub fn use_setup(&self, id: [u8; 32]) {
        *self.worker.setup.lock() = Some(id);
    }

    /// Learns what other workers have changed before this was called. [`StoreError::Renewed`] if the common
    /// secrets in use are other ones than those of this process. A store in a file has no other workers.
    pub fn sync(&self) -> Result<()> {
        if !self.engine.is_shared() {
            return Ok(());
        }
        // A question that begins from now on tells enough. One thread asks it for all that wait here.
        let enough = self.worker.asked.load(SeqCst) + 1;
        let mut answered = self.worker.answered.lock();
        if answered.number >= enough {
            // Whoever waited for a server that does not answer does not wait once more.
            return match answered.unanswered.clone() {
                Some((place, detail)) => Err(StoreError::Server { place, detail }),
                None => Ok(()),
            };
        }
        answered.unanswered = None;
        let this = self.worker.asked.fetch_add(1, SeqCst) + 1;
        let outcome = self.ask_for_edition();
        match &outcome {
            Ok(()) => answered.number = this,
            Err(StoreError::Server { place, detail }) => {
                answered.number = this;
                answered.unanswered = Some((place.clone(), detail.clone()));
            }
            // These are found again at once.
            Err(_) => {}
        }
        outcome
    }

    fn ask_for_edition(&self) -> Result<()> {
        let known = self.latest.known();
        let head = self.engine.peek()?;
        self.latest.hear(known, &head)?;
        if head.edition != self.worker.edition.load(SeqCst) {
            self.refresh()?;
        }
        Ok(())
    }

    fn refresh(&self) -> Result<()> {
        let (edition, is_renewed) =
            self.engine.read(|records| Ok((records.head().edition, self.is_renewed(records)?)))?;
        if is_renewed {
            return Err(StoreError::Renewed);
        }
        self.cache.clear();
        self.sessions.forget();
        self.worker.edition.store(edition, SeqCst);
        Ok(())
    }

    /// Whether the common secrets in use are other ones than those of this process.
    pub(super) fn is_renewed(&self, records: &impl Records) -> Result<bool> {
        match self.engine.is_shared() {
            true => Ok(self.is_of_others(load(records, AGREED)?.map(|agreed| agreed.id))),
            false => Ok(false),
        }
    }

    /// Whether the common secrets in use are other ones than those of this process.
    pub(super) fn is_of_others(&self, in_use: Option<[u8; 32]>) -> bool {
        self.engine.is_shared() && *self.worker.setup.lock() != in_use
    }

    /// Notes that this worker stores a pending key, unless another one is making it.
    pub(super) fn claim_pending(&self, changes: &Changes, name: &str, record: &[u8]) -> Result<()> {
        if !self.engine.is_shared() {
            return Ok(());
        }
        self.refuse_in_round(changes)?;
        self.refuse_claimed(changes, name, record)?;
        self.worker.claims.lock().insert(record.into(), name.into());
        changes.put(Table::Meta, &[MAKING, record].concat(), &self.worker.start())
    }

    /// Refuses to replace or delete a key that another worker is making.
    pub(super) fn refuse_claimed(&self, changes: &Changes, name: &str, record: &[u8]) -> Result<()> {
        if !self.engine.is_shared() {
            return Ok(());
        }
        let (me, claimed) = (self.worker.start(), changes.get(Table::Meta, &[MAKING, record].concat())?);
        match claimed.is_some_and(|other: Start| other != me && is_current(changes, other).unwrap_or(true)) {
            true => Err(StoreError::Busy { name: name.into() }),
            false => Ok(()),
        }
    }

    /// Gives up the claims of this worker's earlier starts, in the change that counts a start.
    pub(super) fn forget_claims(&self, changes: &Changes) -> Result<()> {
        if !self.engine.is_shared() {
            return Ok(());
        }
        for (record, _) in claims(changes)? {
            let made: Option<Start> = changes.get(Table::Meta, &record)?;
            if made.is_some_and(|made| made.worker == self.worker.number) {
                changes.remove(Table::Meta, &record)?;
            }
        }
        Ok(())
    }

    /// Gives up the claims of a request that is over, on records of the names that it had taken.
    pub fn release_claims(&self, has_taken: impl Fn(&str) -> bool) -> Result<()> {
        let mine: Vec<Vec<u8>> = {
            let claims = self.worker.claims.lock();
            claims.iter().filter(|(_, name)| has_taken(name)).map(|(record, _)| record.clone()).collect()
        };
        if mine.is_empty() {
            return Ok(());
        }
        let me = self.worker.start();
        self.engine.write(|changes| {
            mine.iter().try_for_each(|record| {
                let claim = [MAKING, record].concat();
                match changes.get::<Start>(Table::Meta, &claim)? == Some(me) {
                    true => changes.remove(Table::Meta, &claim),
                    false => Ok(()),
                }
            })
        })?;
        let mut claims = self.worker.claims.lock();
        mine.iter().for_each(|record| drop(claims.remove(record)));
        Ok(())
    }

    /// Refuses to change keys while another worker carries them over.
    pub(super) fn refuse_in_round(&self, changes: &Changes) -> Result<()> {
        if !self.engine.is_shared() {
            return Ok(());
        }
        let is_anothers = self.is_round_of_others(changes)?;
        let is_prepared = self.worker.number != 0 && changes.sealed(Table::Meta, PREPARED)?.is_some();
        if is_anothers || is_prepared { Err(StoreError::Refreshing) } else { Ok(()) }
    }

    /// Whether another worker refreshes keys now.
    pub fn others_refresh(&self) -> Result<bool> {
        match self.engine.is_shared() {
            true => self.engine.read(|records| self.is_round_of_others(records)),
            false => Ok(false),
        }
    }

    fn is_round_of_others(&self, records: &impl Records) -> Result<bool> {
        let round: Option<Start> = records.get(Table::Meta, ROUND)?;
        Ok(round.is_some_and(|round| {
            round.worker != self.worker.number && is_current(records, round).unwrap_or(true)
        }))
    }

    /// Begins a round: from now on no other worker stores, changes or deletes a key.
    pub fn begin_round(&self) -> Result<()> {
        match self.engine.is_shared() {
            true => self.change(|changes| changes.put(Table::Meta, ROUND, &self.worker.start())),
            false => Ok(()),
        }
    }

    /// Ends a round.
    pub fn end_round(&self) -> Result<()> {
        match self.engine.is_shared() {
            true => self.change(|changes| changes.remove(Table::Meta, ROUND)),
            false => Ok(()),
        }
    }

    /// Whether a request of another worker is making a key.
    pub fn others_are_making(&self) -> Result<bool> {
        if !self.engine.is_shared() {
            return Ok(false);
        }
        self.engine.read(|records| {
            for (record, _) in claims(records)? {
                let made: Option<Start> = records.get(Table::Meta, &record)?;
                if made.is_some_and(|made| {
                    made.worker != self.worker.number && is_current(records, made).unwrap_or(true)
                }) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// The records of pending keys that are claimed.
fn claims(records: &impl Records) -> Result<Vec<Record>> {
    records.between(Table::Meta, MAKING, &[MAKING, &[0xff; 256]].concat())
}

/// Whether a worker has not started again since.
fn is_current(records: &impl Records, start: Start) -> Result<bool> {
    Ok(incarnation::starts(records, start.worker)?.first().is_some_and(|latest| latest.boot == start.boot))
}
