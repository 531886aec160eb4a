//! Why a gateway does not start.

use std::io;
use std::path::PathBuf;

/// The result of starting a gateway.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its files.
    #[error(transparent)]
    Config(#[from] polyclave_config::Error),
    /// Its client.
    #[error(transparent)]
    Client(#[from] polyclave_client::Error),
    /// An address or a socket.
    #[error("cannot listen on {place}: {error}")]
    Listen {
        /// Where.
        place: String,
        /// The system's error.
        error: io::Error,
    },
    /// Another process serves there.
    #[error("another process serves on {}; end it first, or take another socket", .0.display())]
    InUse(PathBuf),
    /// The certificate and key for TLS.
    #[error("{}: {detail}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        detail: String,
    },
    /// A file with public keys of an issuer.
    #[error("{}: {detail}", path.display())]
    KeysFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        detail: String,
    },
    /// A transformation that cannot be meant.
    #[error("the transformation {name:?} under [transform]: {message}")]
    Transformation {
        /// Its name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// Keys that the nodes do not have as the file names them.
    #[error("{0}")]
    Keys(String),
    /// A certificate that cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// Something that the machine did not give.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}
