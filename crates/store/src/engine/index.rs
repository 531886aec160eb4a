//! Which value each covered row has: in memory, for the state of the database that this process knows.
//!
//! It is read once, when the store is opened, and compared with the digest in the store's [`Head`]. Afterwards every row that a transaction reads
//! is compared with it, also that a row is not there, and ranges are whole. Only the nonce of each value is kept ([`Stamp`]), some hundred
//! bytes a row.
//!
//! # States
//!
//! A transaction begins with the head of the state that it sees. The index follows: it takes over a change of this process once it is made (or, if
//! that is not known, once it is seen), and changes of other workers from rows of [`Table::Changes`]. Those are not believed: the digest has to
//! fit afterwards, and if it does not, all rows are read again. A state that is older than what this process knew when the transaction began is
//! refused. A transaction may go on reading its state while others change it, so what was replaced is remembered as long as such a
//! transaction lasts.
//!
//! What does not fit is final: nothing of the store is used any more ([`Index::damage`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::super::head::{HEAD, Head};
use super::super::seal::{Seal, Stamp, stamp_of};
use super::super::{Result, StoreError};
use super::digest::{COVERED, Digest, covered};
use super::{Reading, Record, Table, decode};

/// Rows by their table's number among the covered ones and their key, each with its new value; `None` if it is gone.
pub(super) type Delta = BTreeMap<(usize, Vec<u8>), Option<Stamp>>;

/// The rows of each covered table.
type Rows = [BTreeMap<Box<[u8]>, Stamp>; COVERED.len()];

/// A state of the database: the head's record stands for it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) head: Arc<Head>,
    /// Of the sealed head.
    stamp: Stamp,
}

/// A change that is being made.
pub(super) struct Pending {
    state: State,
    delta: Delta,
}

impl Pending {
    pub(super) fn new(head: Head, sealed: &[u8], delta: Delta) -> Pending {
        Pending { state: State { head: Arc::new(head), stamp: stamp_of(sealed) }, delta }
    }
}

/// What a change has replaced.
struct Past {
    /// The state before it.
    before: State,
    replaced: Delta,
}

#[derive(Default)]
struct Known {
    state: State,
    rows: Rows,
    /// The latest changes, the latest last, as long as a transaction may read a state before them.
    past: VecDeque<Past>,
    /// For each transaction that goes on, how many changes were known when it began.
    readers: BTreeMap<u64, usize>,
    /// The change that may have been made.
    pending: Option<Pending>,
    /// The latest head that the database has told.
    told: Arc<Head>,
}

/// The head in words.
pub(super) const HEAD_RECORD: &str = "the record of its latest change";

/// Why nothing is used any more.
enum Misfit {
    Lost { known: u64, found: u64 },
    PutBack(String),
}

#[derive(Default)]
pub(super) struct Index {
    known: RwLock<Known>,
    misfit: OnceLock<Misfit>,
}

impl Index {
    /// Why nothing of the store is used any more, if so.
    pub(super) fn damage(&self) -> Option<StoreError> {
        self.misfit.get().map(|misfit| match misfit {
            Misfit::Lost { known, found } => StoreError::Lost { known: *known, found: *found },
            Misfit::PutBack(what) => StoreError::PutBack { what: what.clone() },
        })
    }

    fn put_back(&self, what: String) -> StoreError {
        tracing::error!(
            what,
            "records of the store were put back, removed or damaged: this node serves nothing any more"
        );
        let _ = self.misfit.set(Misfit::PutBack(what.clone()));
        StoreError::PutBack { what }
    }

    fn lost(&self, found: &Head) -> StoreError {
        let (known, found) = (self.known.read().told.number, found.number);
        match known > found {
            true => {
                let _ = self.misfit.set(Misfit::Lost { known, found });
                StoreError::Lost { known, found }
            }
            false => self.put_back(HEAD_RECORD.into()),
        }
    }

    /// Reads all rows, and compares them with the digest. Nothing else uses the store meanwhile.
    pub(super) fn load(&self, state: &dyn Reading, seal: &Seal) -> Result<()> {
        let (head, sealed) = read_head(state, seal)?;
        let (rows, digest) = read_rows(state, seal)?;
        self.refuse_differing(&head, &digest)?;
        let state = State { head: Arc::new(head), stamp: stamp_of(&sealed) };
        let told = state.head.clone();
        *self.known.write() = Known { state, rows, told, ..Known::default() };
        Ok(())
    }

    fn refuse_differing(&self, head: &Head, digest: &Digest) -> Result<()> {
        match head.digest.differing(digest).as_slice() {
            [] => Ok(()),
            tables => Err(self.put_back(format!("a record of {}", tables.join(" and of ")))),
        }
    }

    /// A transaction is about to begin.
    pub(super) fn begin(&self) -> Result<Reader<'_>> {
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        let mut known = self.known.write();
        let since = known.told.changes;
        *known.readers.entry(since).or_default() += 1;
        Ok(Reader { index: self, since })
    }

    /// Notes a change that is about to be made.
    pub(super) fn prepare(&self, change: Pending) {
        self.known.write().pending = Some(change);
    }

    /// Takes over the change that was prepared: it is made.
    pub(super) fn confirm(&self, changes: u64) {
        let mut known = self.known.write();
        let next = known.state.head.changes + 1;
        if let Some(Pending { state, delta }) =
            known.pending.take_if(|change| next == changes && change.state.head.changes == changes)
        {
            known.advance(state, delta);
        }
    }

    /// The head as the database tells it now, without reading anything else.
    pub(super) fn hear(&self, reader: &Reader<'_>, sealed: Option<&[u8]>, seal: &Seal) -> Result<Arc<Head>> {
        let sealed = sealed.ok_or_else(|| self.put_back(HEAD_RECORD.into()))?;
        let known = self.known.read().state.clone();
        if known.stamp == stamp_of(sealed) && known.head.changes >= reader.since {
            return Ok(known.head);
        }
        let head = open_head(sealed, seal)?;
        if head.changes < reader.since {
            return Err(self.lost(&head));
        }
        let head = Arc::new(head);
        self.known.write().hear(&head);
        Ok(head)
    }
}

/// A transaction that goes on.
pub(super) struct Reader<'a> {
    index: &'a Index,
    since: u64,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut known = self.index.known.write();
        if let Some(count) = known.readers.get_mut(&self.since) {
            *count -= 1;
            if *count == 0 {
                known.readers.remove(&self.since);
            }
        }
        known.forget_past();
    }
}

impl<'a> Reader<'a> {
    /// The state of a head, if the index knows it.
    pub(super) fn recall(&self, sealed_head: &[u8]) -> Option<Seen<'a>> {
        let head = self.index.known.read().recall(&stamp_of(sealed_head), self.since)?;
        Some(Seen { index: self.index, head })
    }

    /// Finds out which state the transaction sees. The index knows it afterwards. `None` if the index has meanwhile gone on from an older to a newer
    /// state than that, in one step, because other workers have changed the store: then the transaction has to begin anew.
    pub(super) fn look(&self, state: &dyn Reading, seal: &Seal) -> Result<Option<Seen<'a>>> {
        let index = self.index;
        let sealed = state.get(Table::Meta, HEAD)?.ok_or_else(|| index.put_back(HEAD_RECORD.into()))?;
        let stamp = stamp_of(&sealed);
        let seen = |head| Ok(Some(Seen { index, head }));
        if let Some(head) = index.known.read().recall(&stamp, self.since) {
            return seen(head);
        }
        let head = Arc::new(open_head(&sealed, seal)?);
        let from = {
            let mut known = index.known.write();
            // Another thread may have been faster.
            if let Some(head) = known.recall(&stamp, self.since) {
                return seen(head);
            }
            let next = known.state.head.changes + 1;
            if let Some(Pending { state, delta }) = known
                .pending
                .take_if(|change| change.state.stamp == stamp && change.state.head.changes == next)
            {
                known.advance(state, delta);
                return seen(head);
            }
            known.state.clone()
        };
        if head.changes < self.since || head.changes == from.head.changes {
            return Err(index.lost(&head));
        }
        if head.changes < from.head.changes {
            return Ok(None);
        }
        let delta = match told(state, seal, from.head.changes + 1, head.changes)? {
            Some(delta) if index.known.read().digest_after(seal, &delta) == head.digest => delta,
            // Too much has happened, or what is told does not fit.
            _ => {
                let (rows, digest) = read_rows(state, seal)?;
                index.refuse_differing(&head, &digest)?;
                index.known.read().difference(&rows)
            }
        };
        let mut known = index.known.write();
        if let Some(head) = known.recall(&stamp, self.since) {
            return seen(head);
        }
        if known.state.stamp != from.stamp {
            drop(known);
            return self.look(state, seal);
        }
        known.advance(State { head: head.clone(), stamp }, delta);
        seen(head)
    }
}

/// A state that a transaction sees, and that the index knows.
pub(super) struct Seen<'a> {
    index: &'a Index,
    pub(super) head: Arc<Head>,
}

impl Seen<'_> {
    /// Compares a row, or that there is none.
    pub(super) fn check(&self, table: Table, record: &[u8], found: Option<&[u8]>) -> Result<()> {
        let Some(number) = covered(table, record) else { return Ok(()) };
        self.check_stamp(table, record, found.map(stamp_of), self.stamp(number, record))
    }

    /// The same, if the value that is expected is known.
    pub(super) fn check_stamp(
        &self,
        table: Table,
        record: &[u8],
        found: Option<Stamp>,
        expected: Option<Stamp>,
    ) -> Result<()> {
        match found == expected {
            true => Ok(()),
            false => Err(self.index.put_back(format!(
                "the record {} of {}",
                super::super::seal::readable(record),
                table.name()
            ))),
        }
    }

    /// Compares the rows of a range that were read: all of them are there, and no others.
    pub(super) fn check_range(&self, table: Table, range: (&[u8], &[u8]), rows: &[Record]) -> Result<()> {
        let (mut before, mut count) = (None, 0);
        for (record, sealed) in rows {
            self.check_order(&mut before, table, record)?;
            self.check(table, record, Some(sealed))?;
            count += usize::from(covered(table, record).is_some());
        }
        self.check_count(table, Some(range), count)
    }

    /// Compares whether a table has rows.
    pub(super) fn check_any(&self, table: Table, found: bool) -> Result<()> {
        let expected = self.count(table, None) > 0;
        match found == expected || table == Table::Meta || !COVERED.contains(&table) {
            true => Ok(()),
            false => Err(self.index.put_back(format!("a record of {}", table.name()))),
        }
    }

    /// Refuses rows in another order than that of their keys: a database that gives one of them twice could leave out another one.
    pub(super) fn check_order(
        &self,
        before: &mut Option<Vec<u8>>,
        table: Table,
        record: &[u8],
    ) -> Result<()> {
        if before.as_deref().is_some_and(|before| before >= record) {
            return Err(self.index.put_back(format!("the order of {}", table.name())));
        }
        *before = Some(record.into());
        Ok(())
    }

    /// Refuses a number of rows of a range that is not that of the state.
    pub(super) fn check_count(&self, table: Table, range: Range<'_>, count: usize) -> Result<()> {
        match count == self.count(table, range) {
            true => Ok(()),
            false => Err(self.index.put_back(format!("a record of {}", table.name()))),
        }
    }

    pub(super) fn stamp(&self, table: usize, record: &[u8]) -> Option<Stamp> {
        self.index.known.read().stamp(self.head.changes, table, record)
    }

    /// The keys of all rows of a table.
    pub(super) fn keys(&self, table: usize) -> Vec<Vec<u8>> {
        let known = self.index.known.read();
        let mut keys: BTreeSet<Vec<u8>> = known.rows[table].keys().map(|key| key.to_vec()).collect();
        for ((_, record), was) in known.replaced_since(self.head.changes).filter(|((of, _), _)| *of == table)
        {
            match was {
                true => keys.insert(record.clone()),
                false => keys.remove(record),
            };
        }
        keys.into_iter().collect()
    }

    fn count(&self, table: Table, range: Range<'_>) -> usize {
        let Some(number) = COVERED.iter().position(|of| *of == table) else { return 0 };
        let known = self.index.known.read();
        let now = match range {
            None => known.rows[number].len(),
            Some((first, last)) if first > last => 0,
            Some((first, last)) => {
                known.rows[number].range::<[u8], _>((Bound::Included(first), Bound::Included(last))).count()
            }
        };
        let is_in = |record: &[u8]| range.is_none_or(|(first, last)| first <= record && record <= last);
        let replaced = known
            .replaced_since(self.head.changes)
            .filter(|((of, record), _)| *of == number && is_in(record));
        replaced.fold(now, |count, ((_, record), was)| {
            (count + usize::from(was)) - usize::from(known.rows[number].contains_key(record.as_slice()))
        })
    }
}

/// The first and the last key of a range of rows; `None` for the whole table.
pub(super) type Range<'r> = Option<(&'r [u8], &'r [u8])>;

impl Known {
    /// The head of a known state that is not older than what was known.
    fn recall(&self, stamp: &Stamp, since: u64) -> Option<Arc<Head>> {
        let states = [&self.state].into_iter().chain(self.past.iter().rev().map(|past| &past.before));
        let mut recent = states.take_while(|state| state.head.changes >= since);
        recent.find(|state| state.stamp == *stamp).map(|state| state.head.clone())
    }

    fn advance(&mut self, state: State, delta: Delta) {
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

    fn hear(&mut self, head: &Arc<Head>) {
        if self.told.changes < head.changes {
            self.told = head.clone();
        }
    }

    /// Forgets what no transaction that goes on can see.
    fn forget_past(&mut self) {
        let oldest = self.readers.keys().next().copied();
        while let Some(past) = self.past.front()
            && oldest.is_none_or(|oldest| past.before.head.changes < oldest)
        {
            self.past.pop_front();
        }
    }

    fn stamp(&self, at: u64, table: usize, record: &[u8]) -> Option<Stamp> {
        if !self.past.is_empty() {
            let key = (table, record.to_vec());
            let later = self.past.iter().filter(|past| past.before.head.changes >= at);
            if let Some(before) = later.into_iter().find_map(|past| past.replaced.get(&key)) {
                return *before;
            }
        }
        self.rows[table].get(record).copied()
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

    fn digest_after(&self, seal: &Seal, delta: &Delta) -> Digest {
        let mut digest = self.state.head.digest;
        for ((table, record), stamp) in delta {
            let before = self.rows[*table].get(record.as_slice());
            before.into_iter().chain(stamp).for_each(|stamp| digest.toggle(seal, *table, record, stamp));
        }
        digest
    }

    fn difference(&self, rows: &Rows) -> Delta {
        let mut delta = Delta::new();
        for (table, (now, then)) in self.rows.iter().zip(rows).enumerate() {
            let gone = now.keys().filter(|key| !then.contains_key(*key)).map(|key| (key, None));
            let new = then
                .iter()
                .filter(|(key, stamp)| now.get(*key) != Some(stamp))
                .map(|(key, stamp)| (key, Some(*stamp)));
            delta.extend(gone.chain(new).map(|(key, stamp)| ((table, key.to_vec()), stamp)));
        }
        delta
    }
}

fn open_head(sealed: &[u8], seal: &Seal) -> Result<Head> {
    match Head::read(&seal.open(Table::Meta.name(), HEAD, sealed)?)? {
        (head, true) => Ok(head),
        (_, false) => Err(StoreError::PutBack { what: HEAD_RECORD.into() }),
    }
}

fn read_head(state: &dyn Reading, seal: &Seal) -> Result<(Head, Vec<u8>)> {
    let sealed = state.get(Table::Meta, HEAD)?.ok_or(StoreError::PutBack { what: HEAD_RECORD.into() })?;
    Ok((open_head(&sealed, seal)?, sealed))
}

fn read_rows(state: &dyn Reading, seal: &Seal) -> Result<(Rows, Digest)> {
    let (mut rows, mut digest) = (Rows::default(), Digest::default());
    for (number, table) in COVERED.into_iter().enumerate() {
        state.stamps(table, &mut |record, stamp| {
            if covered(table, record).is_some() {
                digest.toggle(seal, number, record, &stamp);
                rows[number].insert(record.into(), stamp);
            }
            Ok(())
        })?;
    }
    Ok((rows, digest))
}

/// The digest of all rows as they are.
pub(super) fn digest_of_all(state: &dyn Reading, seal: &Seal) -> Result<Digest> {
    Ok(read_rows(state, seal)?.1)
}

/// So many changes are kept for other workers. One that has missed more of them reads all rows again.
const KEPT: u64 = if cfg!(test) { 16 } else { 1024 };

/// The name of the row of [`Table::Changes`] that a change writes, in the place of an earlier one.
pub(super) fn place_of(change: u64) -> [u8; 8] {
    (change % KEPT).to_be_bytes()
}

/// A row that a change has told of: its table, its key, and its new value.
type Told = (u8, Vec<u8>, Option<Stamp>);

/// What changes have changed, as they have told it themselves; `None` if one of them is missing.
fn told(state: &dyn Reading, seal: &Seal, first: u64, last: u64) -> Result<Option<Delta>> {
    if last - first >= KEPT {
        return Ok(None);
    }
    let mut rows = Vec::new();
    match place_of(first) <= place_of(last) {
        true => rows.extend(state.between(Table::Changes, &place_of(first), &place_of(last))?),
        false => {
            rows.extend(state.between(Table::Changes, &place_of(first), &[0xff; 8])?);
            rows.extend(state.between(Table::Changes, &[0; 8], &place_of(last))?);
        }
    }
    let (mut all, mut next) = (Delta::new(), first);
    for (record, sealed) in rows {
        let Ok(bytes) = seal.open(Table::Changes.name(), &record, &sealed) else { return Ok(None) };
        let (number, told): (u64, Vec<Told>) = decode(Table::Changes, &bytes)?;
        if number != next || told.iter().any(|(table, ..)| usize::from(*table) >= COVERED.len()) {
            return Ok(None);
        }
        next += 1;
        all.extend(told.into_iter().map(|(table, record, stamp)| ((usize::from(table), record), stamp)));
    }
    Ok((next == last + 1).then_some(all))
}
