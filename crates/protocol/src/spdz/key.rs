//! The MAC key, and whether it may still be used.
//!
//! A failed check tells a cheater alpha: it opens with an error d, learns alpha chi d from what the others reveal in the plain
//! check, and can then withhold its own part, so that honest parties only see a slow peer. So a plain check ([`Exposure`])
//! is alone with its key: while it runs the key counts as known, no other check under it passes, and if it does not end well,
//! by failing or by running out of time, the key is never used again. The zero test ([`super::check`]) reveals nothing of the
//! key and runs beside others; after a failed one the key is given up all the same.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclave_field::MacField;
use zeroize::Zeroizing;

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

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Usable,
    /// A plain check is under way.
    Exposed,
    /// A check failed.
    Retired,
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
        match *self.lock() {
            State::Retired => Err(retired()),
            _ => Ok(()),
        }
    }

    /// Gives the key up, for all sessions.
    pub fn retire(&self) {
        *self.lock() = State::Retired;
        self.state.changed.notify_all();
    }

    /// Waits until no plain check is under way.
    pub(super) fn wait_unexposed(&self) -> Result<()> {
        drop(self.when_unexposed()?);
        Ok(())
    }

    /// Begins a plain check: the key counts as known until [`Exposure::passed`], and is given up without it.
    pub(super) fn expose(&self) -> Result<Exposure<F>> {
        *self.when_unexposed()? = State::Exposed;
        Ok(Exposure { key: self.clone() })
    }

    fn when_unexposed(&self) -> Result<std::sync::MutexGuard<'_, State>> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while *state == State::Exposed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::System("another check under the same MAC key did not end".into()));
            }
            state = self.state.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *state == State::Retired { Err(retired()) } else { Ok(state) }
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
}

impl<F: MacField> Exposure<F> {
    /// The check went well: the cheater, if there is one, learnt nothing.
    pub(super) fn passed(self) {
        let mut state = self.key.lock();
        if *state == State::Exposed {
            *state = State::Usable;
        }
    }
}

impl<F: MacField> Drop for Exposure<F> {
    fn drop(&mut self) {
        let mut state = self.key.lock();
        if *state == State::Exposed {
            *state = State::Retired;
        }
        self.key.state.changed.notify_all();
    }
}

fn retired() -> Error {
    Error::CheckFailed { what: "an earlier check under the same MAC key" }
}
