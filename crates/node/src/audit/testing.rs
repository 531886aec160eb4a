//! Simulates full disks: no line can be written to the logs at some paths.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::{Mutex, MutexGuard};

static FULL: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

fn full() -> MutexGuard<'static, HashSet<PathBuf>> {
    FULL.lock()
}

/// From now on no byte can be written to this log.
pub(crate) fn fill_up(log: &Path) {
    full().insert(log.into());
}

/// From now on its disk has room again.
pub(crate) fn make_room(log: &Path) {
    full().remove(log);
}

pub(super) fn refuse_if_full(log: &Path) -> io::Result<()> {
    if full().contains(log) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}
