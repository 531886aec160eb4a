//! The rows of the latest state that the index knows, and of the earlier states that transactions may still
//! read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::super::super::seal::{Seal, Stamp, stamp_of};
use super::super::digest::Digest;
use super::super::head::Head;
use super::rows::{Delta, Rows, difference};

/// A state of the database. The head's record stands for it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The head.
    pub(super) head: Arc<Head>,
    /// The stamp of the sealed head.
    pub(super) stamp: Stamp,
}

impl State {
    pub(super) fn new(head: Head, stamp: Stamp) -> State {
        State { head: Arc::new(head), stamp }
    }
}

/// A change that is being made: the state after it, and its rows.
pub(in super::super) struct Pending {
    state: State,
    delta: Delta,
}

impl Pending {
    /// A change that writes this head.
    pub(in super::super) fn new(head: Head, sealed: &[u8], delta: Delta) -> Pending {
        Pending { state: State::new(head, stamp_of(sealed)), delta }
    }
}

/// What a change has replaced.
struct Past {
    /// The state before the change.
    before: State,
    /// The values that the changed rows had in that state.
    replaced: Delta,
}

/// The first and the last key of a range of rows; `None` for the whole table.
pub(in super::super) type Range<'r> = Option<(&'r [u8], &'r [u8])>;

/// The latest state, and what the changes before it have replaced.
#[derive(Default)]
pub(super) struct History {
    state: State,
    rows: Rows,
    /// The latest changes, the latest last, for as long as a transaction may read a state before them.
    past: VecDeque<Past>,
    /// How many transactions go on, by the number of changes that were known when each began.
    readers: BTreeMap<u64, usize>,
    /// A change of this process that may have been made.
    pending: Option<Pending>,
    /// The latest head that the database has shown. The rows may not have followed yet.
    pub(super) latest: Arc<Head>,
}

impl History {
    /// A history that begins with this state.
    pub(super) fn at(state: State, rows: Rows) -> History {
        History { latest: state.head.clone(), state, rows, ..History::default() }
    }

    /// The latest state.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The head of the state with this stamp, if it is known and not older than what was known when the
    /// transaction began.
    pub(super) fn recall(&self, stamp: &Stamp, since: u64) -> Option<Arc<Head>> {
        let states = [&self.state].into_iter().chain(self.past.iter().rev().map(|past| &past.before));
        let mut recent = states.take_while(|state| state.head.changes >= since);
        recent.find(|state| state.stamp == *stamp).map(|state| state.head.clone())
    }

    /// Follows a change to the next state.
    pub(super) fn advance(&mut self, state: State, delta: Delta) {
        let mut replaced = Delta::new();
        for ((table, record), stamp) in delta {
            let before = match stamp {
                Some(stamp) => self.rows[table].insert(record.as_slice().into(), stamp),
                None => self.rows[table].remove(record.as_slice()),
            };
            replaced.insert((table, record), before);
        }
        self.hear(&state.head);
        let before = std::mem::replace(&mut self.state, state);
        self.past.push_back(Past { before, replaced });
        self.forget_past();
    }

    /// Notes a head that the database has shown.
    pub(super) fn hear(&mut self, head: &Arc<Head>) {
        if self.latest.changes < head.changes {
            self.latest = head.clone();
        }
    }

    /// Notes a change of this process that is about to be made.
    pub(super) fn prepare(&mut self, change: Pending) {
        self.pending = Some(change);
    }

    /// Adopts the pending change of this process, if it is the next change and its state is the state that
    /// was made. Returns whether it did.
    pub(super) fn confirm(&mut self, is_made: impl FnOnce(&State) -> bool) -> bool {
        let next = self.state.head.changes + 1;
        let made = self.pending.take_if(|change| change.state.head.changes == next && is_made(&change.state));
        let Some(Pending { state, delta }) = made else { return false };
        self.advance(state, delta);
        true
    }

    /// Notes that a transaction begins. Returns the number of changes that are known now.
    pub(super) fn enter(&mut self) -> u64 {
        let since = self.latest.changes;
        *self.readers.entry(since).or_default() += 1;
        since
    }

    /// Notes the end of a transaction that began after `since` changes.
    pub(super) fn leave(&mut self, since: u64) {
        if let Some(count) = self.readers.get_mut(&since) {
            *count -= 1;
            if *count == 0 {
                self.readers.remove(&since);
            }
        }
        self.forget_past();
    }

    /// Forgets past states that no running transaction can see.
    fn forget_past(&mut self) {
        let oldest = self.readers.keys().next().copied();
        while let Some(past) = self.past.front()
            && oldest.is_none_or(|oldest| past.before.head.changes < oldest)
        {
            self.past.pop_front();
        }
    }

    /// The value that a row had after `at` changes.
    pub(super) fn stamp(&self, at: u64, table: usize, record: &[u8]) -> Option<Stamp> {
        if !self.past.is_empty() {
            let key = (table, record.to_vec());
            let later = self.past.iter().filter(|past| past.before.head.changes >= at);
            if let Some(before) = later.into_iter().find_map(|past| past.replaced.get(&key)) {
                return *before;
            }
        }
        self.rows[table].get(record).copied()
    }

    /// The keys of all rows of a table after `at` changes.
    pub(super) fn keys(&self, at: u64, table: usize) -> Vec<Vec<u8>> {
        let mut keys: BTreeSet<Vec<u8>> = self.rows[table].keys().map(|key| key.to_vec()).collect();
        for ((_, record), was) in self.replaced_since(at).filter(|((of, _), _)| *of == table) {
            match was {
                true => keys.insert(record.clone()),
                false => keys.remove(record),
            };
        }
        keys.into_iter().collect()
    }

    /// How many rows a range of a table had after `at` changes.
    pub(super) fn count(&self, at: u64, table: usize, range: Range<'_>) -> usize {
        let now = match range {
            None => self.rows[table].len(),
            Some((first, last)) if first > last => 0,
            Some((first, last)) => {
                self.rows[table].range::<[u8], _>((Bound::Included(first), Bound::Included(last))).count()
            }
        };
        let is_in = |record: &[u8]| range.is_none_or(|(first, last)| first <= record && record <= last);
        let replaced = self.replaced_since(at).filter(|((of, record), _)| *of == table && is_in(record));
        replaced.fold(now, |count, ((_, record), was)| {
            (count + usize::from(was)) - usize::from(self.rows[table].contains_key(record.as_slice()))
        })
    }

    /// The rows that changes have replaced since a state, each once, and whether it was there.
    fn replaced_since(&self, at: u64) -> impl Iterator<Item = (&(usize, Vec<u8>), bool)> {
        let mut replaced = BTreeMap::new();
        for past in self.past.iter().filter(|past| past.before.head.changes >= at) {
            for (key, before) in &past.replaced {
                replaced.entry(key).or_insert(before.is_some());
            }
        }
        replaced.into_iter()
    }

    /// The digest that follows from a change of the latest state.
    pub(super) fn digest_after(&self, seal: &Seal, delta: &Delta) -> Digest {
        let mut digest = self.state.head.digest;
        for ((table, record), stamp) in delta {
            let before = self.rows[*table].get(record.as_slice());
            before.into_iter().chain(stamp).for_each(|stamp| digest.toggle(seal, *table, record, stamp));
        }
        digest
    }

    /// The change that makes these rows of the latest ones.
    pub(super) fn difference(&self, rows: &Rows) -> Delta {
        difference(&self.rows, rows)
    }
}
