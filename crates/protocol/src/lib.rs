//! Secure multi-party evaluation of the circuits of `polyclave-cipher`.
//!
//! [`evaluate`](evaluate::evaluate) drives every cipher under every [`Session`](protocol::Session). Protocols talk
//! through the [`Net`](net::Net) port only, and state the adversary they tolerate in their module.

#![warn(missing_docs)]

pub mod any;
mod byte_shares;
pub mod catalog;
pub mod coins;
pub mod commitment;
pub mod descriptor;
mod elements;
mod error;
pub mod evaluate;
pub mod garbled;
pub mod ghash;
mod lanes;
pub mod mascot;
mod masking;
pub mod mesh;
pub mod metered;
#[cfg(feature = "testkit")]
pub mod minimac;
pub mod net;
pub mod ot;
mod party;
pub mod pool;
pub mod protocol;
pub mod release;
mod retirement;
pub mod service;
pub mod session;
pub mod shamir;
pub mod spdz;
pub mod stock;
mod stored;
pub mod tally;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod tinyot;
pub mod tinytable;
mod unchecked;

pub use error::{EARLIER_CHECK, Error, Result};
pub use party::{Party, PartySet};
