//! A transaction that goes on, as the index knows it: it finds out which state the transaction sees.

use std::sync::Arc;

use super::super::super::Result;
use super::super::super::seal::{Seal, Stamp, stamp_of};
use super::super::head::{HEAD, Head};
use super::super::{Reading, Table, change_log};
use super::history::State;
use super::rows::{Delta, read_rows};
use super::{HEAD_RECORD, Index, Snapshot, open_head};

/// A transaction that goes on.
pub(in super::super) struct Reader<'a> {
    index: &'a Index,
    /// How many changes were known when it began. It must not see a state before them.
    since: u64,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.index.history.write().leave(self.since);
    }
}

impl<'a> Reader<'a> {
    pub(super) fn begin(index: &'a Index) -> Reader<'a> {
        Reader { index, since: index.history.write().enter() }
    }

    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The state of a head, if the index knows it.
    pub(in super::super) fn recall(&self, sealed_head: &[u8]) -> Option<Snapshot<'a>> {
        self.recalled(&stamp_of(sealed_head))
    }

    fn recalled(&self, stamp: &Stamp) -> Option<Snapshot<'a>> {
        let head = self.index.history.read().recall(stamp, self.since)?;
        Some(Snapshot::new(self.index, head))
    }

    /// Finds out which state the transaction sees. The index knows it afterwards.
    ///
    /// `None` means that the transaction has to begin anew: other workers have changed the store meanwhile,
    /// and the index has gone in one step from an older state to a newer one than that.
    pub(in super::super) fn snapshot(
        &self,
        state: &dyn Reading,
        seal: &Seal,
    ) -> Result<Option<Snapshot<'a>>> {
        let index = self.index;
        let sealed = state.get(Table::Meta, HEAD)?.ok_or_else(|| index.put_back(HEAD_RECORD.into()))?;
        let stamp = stamp_of(&sealed);
        if let Some(snapshot) = self.recalled(&stamp) {
            return Ok(Some(snapshot));
        }
        let head = Arc::new(open_head(&sealed, seal)?);
        let snapshot = |head| Ok(Some(Snapshot::new(index, head)));
        let from = {
            let mut history = index.history.write();
            // Another thread may have been faster.
            if let Some(head) = history.recall(&stamp, self.since) {
                return snapshot(head);
            }
            if history.confirm(|state| state.stamp == stamp) {
                return snapshot(head);
            }
            history.state().clone()
        };
        if head.changes < self.since || head.changes == from.head.changes {
            return Err(index.lost(&head));
        }
        if head.changes < from.head.changes {
            return Ok(None);
        }
        let delta = self.changes_since(&from, state, seal, &head)?;
        let mut history = index.history.write();
        if let Some(head) = history.recall(&stamp, self.since) {
            return snapshot(head);
        }
        if history.state().stamp != from.stamp {
            drop(history);
            return self.snapshot(state, seal);
        }
        history.advance(State { head: head.clone(), stamp }, delta);
        snapshot(head)
    }

    /// What other workers have changed since a state.
    fn changes_since(&self, from: &State, state: &dyn Reading, seal: &Seal, head: &Head) -> Result<Delta> {
        let history = || self.index.history.read();
        match change_log::read(state, seal, from.head.changes + 1, head.changes)? {
            Some(delta) if history().digest_after(seal, &delta) == head.digest => Ok(delta),
            // Too much has happened, or the log does not fit the digest.
            _ => {
                let (rows, digest) = read_rows(state, seal)?;
                self.index.refuse_differing(head, &digest, state, seal)?;
                Ok(history().difference(&rows))
            }
        }
    }
}
