//! What changes when a file is written or replaced.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    file: (u64, u64),
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    /// The mark of a file; `None` if it is not there.
    pub(crate) fn of(file: &Path) -> Option<Mark> {
        let of = |data: Metadata| Mark {
            file: (data.dev(), data.ino()),
            bytes: data.len(),
            written: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        };
        std::fs::metadata(file).ok().map(of)
    }
}
