//! Errors of configuration files. They name the file and say what to do.

use std::io;
use std::path::{Path, PathBuf};

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation.
    #[error("cannot {doing} {}: {cause}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// A verb.
        doing: &'static str,
        /// What it said.
        cause: io::Error,
    },
    /// A private file that other users can read.
    #[error(
        "{} is private, but others can read it (mode {mode:o}); run `chmod 600 {}`, and replace what is in it if \
         somebody may have read it",
        path.display(), path.display()
    )]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Something exists already.
    #[error("{} is there already; choose another place, or move it away if it is not needed", path.display())]
    Exists {
        /// What.
        path: PathBuf,
    },
    /// The content of the file is wrong.
    #[error("{}: {detail}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong and what to do.
        detail: String,
    },
    /// The caller asked for something that cannot be done.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// A [`Error::Misuse`].
    pub fn misuse(what: impl Into<String>) -> Error {
        Error::Misuse(what.into())
    }

    pub(crate) fn malformed(path: &Path, detail: impl Into<String>) -> Error {
        Error::Malformed { path: path.into(), detail: detail.into() }
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |cause| Error::Io { path, doing, cause }
    }

    /// The same error, with the file that it is about.
    pub(crate) fn in_file(self, path: &Path) -> Error {
        match self {
            Error::Misuse(detail) => Error::malformed(path, detail),
            other => other,
        }
    }
}
