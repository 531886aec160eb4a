//! Whether secrets that cheaters may have guessed at can still be used, and the gate before the comparisons
//! that a wrong guess fails. A setup shares it with everything that is forked from it, and with everything
//! else that uses the same secrets.
//!
//! Every kind of setup has such a gate. If each fork had its own, a cheater could go on: a receiver of
//! transfers that spoilt one column in each of 128 sessions would learn all of a sender's Delta, one bit from
//! each failure. It could do the same at once if the forks compared side by side: each would fail before any
//! of them had heard of another's failure. So they compare one after the other, and after a failure none
//! compares any more.
//!
//! There are two kinds of comparisons:
//!
//! * **Of a whole secret** ([`Retirement::judge`]): a wrong message passes only by a guess at all bits of a
//!   MAC key. Of many such guesses at once only the first counts: if it is wrong, the others are refused,
//!   also one that would be right.
//! * **Of single bits** ([`Retirement::judge_guess`]): consistency of transfers, of trees of seeds, and of
//!   products with shares of a key. A wrong message passes by a guess at one bit, and a failure tells the
//!   cheater that bit. The party that compares is the one that holds the secret, and nothing that it sends
//!   before depends on the outcome. Where the secret is used for long, by several processes, a [`GuessGuard`]
//!   keeps them apart as well, and counts a failure durably before anything else happens.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::error::EARLIER_CHECK;
use crate::{Error, Result};

/// Stands before every comparison that a guess at one bit of a long-lived secret can make fail: between the
/// processes that use the same secret.
pub trait GuessGuard: Send + Sync {
    /// Looks for a fault, which is what `fault` does, or does not look at all and gives an error. Between all
    /// processes with the same secret one looks at a time, and none after one has found a fault. If there is
    /// one, it is counted where it survives this process when this returns.
    fn look(&self, fault: &mut dyn FnMut() -> Option<Error>) -> Result<Option<Error>>;
}

/// Clones are the same gate.
#[derive(Clone, Default)]
pub(crate) struct Retirement(Arc<Gate>);

#[derive(Default)]
struct Gate {
    retired: AtomicBool,
    /// Held during a comparison of a whole secret, which takes no time.
    whole: Mutex<()>,
    /// Held during a comparison of single bits, and while the guard keeps other processes from one.
    bits: Mutex<()>,
    guard: OnceLock<Arc<dyn GuessGuard>>,
}

impl Retirement {
    /// Whether both are the same gate.
    pub(crate) fn is(&self, other: &Retirement) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// From now on this guard stands before comparisons of single bits. There is one for a secret: a second
    /// one changes nothing.
    pub(crate) fn guard(&self, guard: Arc<dyn GuessGuard>) {
        let _ = self.0.guard.set(guard);
    }

    /// Looks for what does not fit, unless these secrets are retired. If there is a fault they are.
    pub(crate) fn judge(&self, fault: impl FnOnce() -> Option<Error>) -> Result<()> {
        let _alone = self.0.whole.lock();
        self.refuse_retired()?;
        fault().map_or(Ok(()), |fault| {
            self.retire();
            Err(fault)
        })
    }

    /// The same where a fault tells a cheater one bit. An error that a guard has counted is
    /// [`Error::Counted`].
    pub(crate) fn judge_guess(&self, mut fault: impl FnMut() -> Option<Error>) -> Result<()> {
        let _alone = self.0.bits.lock();
        self.refuse_retired()?;
        let found = match self.0.guard.get() {
            None => fault(),
            Some(guard) => {
                let found = guard.look(&mut fault).inspect_err(|e| self.retire_after(e))?;
                found.map(|fault| Error::Counted(Box::new(fault)))
            }
        };
        match found {
            // A check of another session may have failed meanwhile.
            None => self.refuse_retired(),
            Some(fault) => {
                self.retire();
                Err(fault)
            }
        }
    }

    /// Nothing under these secrets goes on.
    pub(crate) fn retire(&self) {
        self.0.retired.store(true, SeqCst);
    }

    /// The same if an error can be that of a cheater's wrong guess.
    pub(crate) fn retire_after(&self, error: &Error) {
        if error.may_be_a_wrong_guess() {
            self.retire();
        }
    }

    /// An error if they are retired.
    pub(crate) fn refuse_retired(&self) -> Result<()> {
        match self.0.retired.load(SeqCst) {
            true => Err(Error::CheckFailed { what: EARLIER_CHECK }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
