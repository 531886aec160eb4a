//! The MAC key, and whether it may still be used.
//!
//! A failed check tells a cheater alpha: it opens with an error d, learns alpha chi d from what the others reveal in the plain
//! check, and can then withhold its own part, so that honest parties only see a slow peer. So from the moment a plain check
//! begins ([`Exposure`]) the key counts as known until that check has passed: **no check under the key counts before all plain
//! checks that were under way when it passed have passed too**, and when one fails or runs out of time, the key is given up and
//! none of them counts. (That a plain check passes is settled by the commitments to its parts: whoever passes it had nothing to
//! learn.) Nobody waits for another check before it has done its own part, so sessions that begin in different orders at
//! different parties do not wait for each other in a circle.
//!
//! The zero test ([`super::check`]) reveals nothing of the key; after a failed one it is given up all the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclave_field::MacField;
use zeroize::Zeroizing;

use crate::error::EARLIER_CHECK;
use crate::net::Net;
use crate::session::random_bytes;
use crate::{Error, Party, Result};

/// How long a check waits for a plain check of another session to end.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 120 });

/// A party's share of alpha. Clones are the same key and share its fate.
pub struct MacKey<F: MacField> {
    me: Party,
    parties: usize,
    share: Arc<Zeroizing<F::Word>>,
    state: Arc<Guard>,
}

#[derive(Default)]
struct Guard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A check failed.
    retired: bool,
    /// Plain checks under way.
    open: BTreeSet<u64>,
    /// The number of the next one.
    next: u64,
}

impl<F: MacField> MacKey<F> {
    /// A fresh share of a fresh key. Local: any shares make a key.
    pub fn generate(net: &dyn Net) -> Result<Self> {
        let mut bytes = Zeroizing::new(vec![0; F::BYTES]);
        random_bytes(&mut bytes)?;
        let mut share = [F::Word::default()];
        F::read_row(&bytes, &mut share);
        Ok(Self::of_share(net.me(), net.parties(), share[0]))
    }

    /// The key of which this is the share of party `me`.
    pub fn of_share(me: Party, parties: usize, share: F::Word) -> Self {
        MacKey { me, parties, share: Arc::new(Zeroizing::new(share)), state: Arc::default() }
    }

    /// This party's share.
    pub fn reveal_own_share(&self) -> F::Word {
        **self.share
    }

    /// Which party this is.
    pub fn me(&self) -> Party {
        self.me
    }

    /// Number of parties that have a share.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// Whether this party adds public values to its shares.
    pub fn is_first(&self) -> bool {
        self.me.0 == 0
    }

    /// An error if a check under this key has failed.
    pub fn refuse_retired(&self) -> Result<()> {
        if self.lock().retired { Err(retired()) } else { Ok(()) }
    }

    /// Gives the key up, for all sessions.
    pub fn retire(&self) {
        self.lock().retired = true;
        self.state.changed.notify_all();
    }

    /// Begins a plain check: the key counts as known until [`Exposure::passed`], and is given up without it.
    pub(super) fn expose(&self) -> Result<Exposure<F>> {
        let mut state = self.lock();
        if state.retired {
            return Err(retired());
        }
        let number = state.next;
        state.next += 1;
        state.open.insert(number);
        Ok(Exposure { key: self.clone(), number })
    }

    /// Waits until all plain checks have ended that are under way now; an error if the key was given up.
    pub(super) fn wait_unexposed(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.lock();
        let awaited = state.open.clone();
        while !state.retired && !awaited.is_disjoint(&state.open) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.retired = true;
                self.state.changed.notify_all();
                return Err(Error::System("another check under the same MAC key did not end".into()));
            }
            state = self.state.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.retired { Err(retired()) } else { Ok(()) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: MacField> Clone for MacKey<F> {
    fn clone(&self) -> Self {
        MacKey { me: self.me, parties: self.parties, share: self.share.clone(), state: self.state.clone() }
    }
}

/// A plain check under way. Dropped without having passed, it gives the key up.
pub(super) struct Exposure<F: MacField> {
    key: MacKey<F>,
    number: u64,
}

impl<F: MacField> Exposure<F> {
    /// The check went well: the cheater, if there is one, learnt nothing by it. It counts when those beside it have passed.
    pub(super) fn passed(self) -> Result<()> {
        self.key.lock().open.remove(&self.number);
        self.key.state.changed.notify_all();
        self.key.wait_unexposed()
    }
}

impl<F: MacField> Drop for Exposure<F> {
    fn drop(&mut self) {
        let mut state = self.key.lock();
        if state.open.remove(&self.number) {
            state.retired = true;
        }
        drop(state);
        self.key.state.changed.notify_all();
    }
}

fn retired() -> Error {
    Error::CheckFailed { what: EARLIER_CHECK }
}
