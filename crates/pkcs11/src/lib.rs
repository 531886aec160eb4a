//! PKCS#11 3.0 over keys of the nodes: programs written for an HSM load `libpolyclave_pkcs11.so` and use keys
//! that nobody holds.
//!
//! ```text
//! ffi/            the functions of the standard: the only unsafe code. They copy what a program gave, call what is below, and write the answer
//! module.rs       slots and sessions between C_Initialize and C_Finalize
//! session.rs      operations under way
//! token.rs        who is logged in, handles of objects, and how nodes are asked
//! objects.rs      keys are found, made, changed, deleted
//! from_keys.rs    keys are wrapped, unwrapped, derived
//! encryption.rs, gcm.rs, messages.rs, macs.rs, digests.rs
//! batches.rs      short requests of several threads go as one
//! mechanism.rs, template.rs, attributes.rs, stored.rs, hmac.rs     tables
//! configuration.rs, log.rs, rv.rs
//! ```
//!
//! # What it is
//!
//! A client of the nodes (`polyclave-client`) in the process of the program. It sees the program's data,
//! PINs, and the client's TLS key while somebody is logged in. It never sees a key of the nodes, except one
//! that the program itself imports.
//!
//! It is a guest: it writes nothing to standard error, handles no signals, and keeps no thread. Threads make
//! a key of a PIN, connect to nodes, and receive what a node still owes when a request is given up. The first
//! two kinds end before the function that started them. The last kind ends at the latest in `C_Logout` or
//! `C_Finalize`. The library stays in memory all the same (`build.rs`): the runtime of Rust must not lose its
//! code.
//!
//! `docs/use/pkcs11.md` says how programs use it.

mod attributes;
mod batches;
mod configuration;
mod digests;
mod ffi;
mod from_keys;
mod gathered;
mod hmac;
mod log;
mod mechanism;
mod module;
mod objects;
mod rv;
mod session;
mod stored;
mod template;
mod token;

pub use ffi::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};
