//! The native half of the Python package `polyclave`: the class `Client` over `polyclave_client`.
//!
//! ```text
//! client.rs        the class that Python sees: arguments, and one call for each operation
//!    |
//! task.rs          sealing, opening, encryption and decryption over any input and output
//!    |       \
//! ends.rs   again.rs     bytes, files and streams of Python | what is asked again after a node failed
//!
//! tokenize.rs      strings that are tokenized, and those that come back
//!
//! errors.rs        errors as exceptions by reason            convert.rs    bytes, words and keys between both languages
//! ```
//!
//! No lock of the interpreter is held while the nodes work, so other threads of Python go on. The other half,
//! in `python/polyclave`, has the exceptions, the classes of results, `polyclave.aio` and `polyclave.lab`.

mod again;
mod client;
mod convert;
mod ends;
mod errors;
mod head;
mod task;
mod tokenize;

/// The native module of the package.
#[pyo3::pymodule]
mod _polyclave {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::head::inspect;

    /// The version of the package.
    #[pymodule_export]
    const __VERSION__: &str = env!("CARGO_PKG_VERSION");
}
