#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod among;
pub mod authenticated;
pub mod byte_registers;
pub mod byte_shares;
pub mod catalog;
pub mod coins;
pub mod commitment;
mod error;
pub mod evaluate;
mod few_rounds;
pub mod garbling;
pub mod ghash;
pub mod handover;
pub mod interface;
mod lanes;
pub mod mascot;
pub mod mesh;
pub mod metered;
pub mod ot;
mod party;
pub mod pool;
pub mod replicated;
mod retirement;
#[cfg(feature = "seeded")]
pub mod seeded;
pub mod shamir;
pub mod spdz;
pub mod stored;
pub mod tinyot;
pub mod tinytable;
mod unchecked;
pub mod versions;

pub use interface::{any, dealt, descriptor, net, protocol, release, service, session, stock, tally};

pub use error::{EARLIER_CHECK, Error, Result};

pub use party::{Party, PartySet};
pub use retirement::GuessGuard;

// The unit tests include what cheats and deals from the laboratory's crate, which names this one so.
#[cfg(test)]
extern crate self as polyclave_protocol;
#[cfg(test)]
#[path = "../../protocol-lab/src/dealers/mod.rs"]
#[allow(dead_code, missing_docs, reason = "each crate needs another part of it")]
mod dealers;
#[cfg(test)]
#[path = "../../protocol-lab/src/testkit/mod.rs"]
#[allow(dead_code, missing_docs, reason = "each crate needs another part of it")]
mod testkit;
