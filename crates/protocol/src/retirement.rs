//! Whether secrets that cheaters may have guessed at can still be used. It is one flag. A set-up shares it with everything that is forked
//! from it, and with everything else that uses the same secrets.
//!
//! Every kind of set-up has such a flag. If each fork had its own flag, a cheater could go on: a receiver of transfers that spoilt one
//! column in each of 128 sessions would learn all of a sender's Delta, one bit from each failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::error::EARLIER_CHECK;
use crate::{Error, Result};

/// Clones are the same flag.
#[derive(Clone, Default)]
pub(crate) struct Retirement(Arc<AtomicBool>);

impl Retirement {
    /// Nothing under these secrets goes on.
    pub(crate) fn retire(&self) {
        self.0.store(true, SeqCst);
    }

    /// The same if an error can be that of a cheater's wrong guess.
    pub(crate) fn retire_after(&self, error: &Error) {
        if error.may_be_a_wrong_guess() {
            self.retire();
        }
    }

    /// An error if they are retired.
    pub(crate) fn refuse_retired(&self) -> Result<()> {
        match self.0.load(SeqCst) {
            true => Err(Error::CheckFailed { what: EARLIER_CHECK }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
