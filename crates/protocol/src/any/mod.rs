//! Protocols without their types: what nodes, clients and commands are written for.
//!
//! Inside this crate a protocol is a set of types ([`ProtocolConfig`], [`Session`]), so that its loops are compiled for exactly these.
//! Above it, which protocol runs is a matter of a name in a file. Here every one of them has the same types: [`AnyProtocolConfig`],
//! [`AnySession`], [`AnyShared`] and so on are handles to objects of some protocol, and implement the same traits. So code above
//! this crate is compiled once, not once for each protocol, and a new protocol touches none of it.
//!
//! A call through a handle costs a virtual call and a check of the type. It is one call for a whole batch of lanes, so neither
//! can be measured (`docs/benchmarks.md`, "Erased types").
//!
//! A handle that is given to a session of another protocol is a mistake of the program, never of a peer or a user: it panics.

mod engine;
mod service_protocol;
mod service_scheme;
mod values;

pub use engine::{AnyProtocolConfig, AnySession, Erasable, Handle};
pub use service_protocol::{AnyServiceSession, ErasableService};
pub use service_scheme::AnyServiceConfig;
pub use values::{AnyBatch, AnyMask, AnyRegisters, AnyReleased, AnySetup, AnyShared};

#[cfg(test)]
mod tests;

#[expect(unused_imports, reason = "for the links above")]
use crate::protocol::{ProtocolConfig, Session};
