//! Protocols behind one set of types (type erasure). Nodes, clients and commands are written for these types.
//!
//! Inside this crate a protocol is a set of types ([`ProtocolConfig`], [`Session`]), so that its loops are
//! compiled for exactly these. Above this crate, a name in a file decides which protocol runs. So here all
//! protocols have the same types: [`AnyProtocolConfig`], [`AnySession`], [`AnyShared`] and so on are handles
//! to objects of some protocol, and implement the same traits. Code above this crate is compiled once and not
//! once for each protocol, and does not change for a new protocol.
//!
//! A call through a handle costs a virtual call and a check of the type. It is one call for a whole batch of
//! lanes, so neither can be measured (`docs/benchmarks.md`, "Erased types").
//!
//! If a handle is given to a session of another protocol, the call panics. Only a mistake in the program can
//! cause this, never a peer or a user.

mod engine;
mod service_config;
mod service_session;
mod values;

pub use engine::{AnyProtocolConfig, AnySession, Erasable, Handle};
pub use service_config::AnyServiceConfig;
pub use service_session::{AnyServiceSession, ErasableService};
pub use values::{AnyBatch, AnyMask, AnyRegisters, AnyReleased, AnySetup, AnyShared};

#[cfg(test)]
mod tests;

#[expect(unused_imports, reason = "for the links above")]
use crate::interface::protocol::{ProtocolConfig, Session};
