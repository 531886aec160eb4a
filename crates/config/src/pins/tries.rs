//! Counts the wrong PINs, and lets only one be tried at a time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use super::{SealedClient, remove};
use crate::{Error, Result, private};

pub(super) const TRIES: &str = "identity.tries";
const LOCK: &str = "identity.lock";
/// After this many wrong PINs in a row the user's PIN is locked.
pub const MAX_WRONG_PINS: u32 = 10;

impl SealedClient {
    /// How many wrong PINs of the user were tried in a row.
    pub fn wrong_pins(&self) -> Result<u32> {
        let path = self.path.join(TRIES);
        if !path.exists() {
            return Ok(0);
        }
        let text = private::read(&path)?;
        let count = str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        // If the count cannot be read, no more tries are allowed.
        Ok(count.unwrap_or(MAX_WRONG_PINS))
    }

    pub(super) fn count(&self, wrong: u32) -> Result<()> {
        private::write(&self.path.join(TRIES), format!("{wrong}\n").as_bytes())
    }

    pub(super) fn forget_tries(&self) -> Result<()> {
        remove(&self.path.join(TRIES))?;
        private::sync_dir(&self.path)
    }

    /// Until it is dropped, no other process tries or changes a PIN.
    pub(super) fn lock(&self) -> Result<Locked> {
        let path = self.path.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(Error::io(&path, "open"))?;
        file.lock().map_err(Error::io(&path, "lock"))?;
        Ok(Locked(file))
    }
}

/// The lock of a directory. It is released by name: closing the file would leave it to the child of a fork
/// that another thread made meanwhile, which has the same file open, and would wait for itself.
pub(super) struct Locked(pub(super) File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Counts a try while `make` makes the key of its PIN. What was made is given only if the try was counted:
/// nothing depends on a PIN before. Where no thread can be had, it is counted first.
pub(super) fn counted<T>(count: impl Fn() -> Result<()> + Sync, make: impl FnOnce() -> T) -> Result<T> {
    std::thread::scope(|scope| {
        let Ok(counting) = std::thread::Builder::new().spawn_scoped(scope, &count) else {
            count()?;
            return Ok(make());
        };
        let made = make();
        counting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(made)
    })
}
