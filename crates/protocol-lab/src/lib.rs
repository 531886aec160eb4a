//! Protocols for the laboratory and for tests: those that no node serves, insecure dealers, and networks that
//! cheat.
//!
//! | module | what |
//! |---|---|
//! | [`garbled`] | garbled circuits, with gates of two bits and with projection gates |
//! | [`lut`] | lookups by oblivious transfer, `op-lut` and `sp-lut` |
//! | [`minimac`], [`committed`] | scrambled tables whose openings are verified by commitments |
//! | [`additive`] | a toy protocol in one folder, which nodes can serve with and which protects nothing |
//! | [`dealers`] | dealers that every party could impersonate: to measure the online phase alone |
//! | [`testkit`] | networks that cheat, record or stand in for the other party; one conformance suite for every protocol |
//!
//! [`add_to_catalog`] makes the protocols and the dealers available to everything that chooses protocols by
//! name. No program that is shipped may contain this crate.

#![warn(missing_docs)]

pub mod additive;
mod catalog;
pub mod committed;
pub mod dealers;
pub mod garbled;
pub mod lut;
pub mod minimac;
mod secret_places;
pub mod testkit;

pub use catalog::{add_to_catalog, add_toy};

const _: () = assert!(
    option_env!("POLYCLAVE_SHIP").is_none(),
    "what is shipped (POLYCLAVE_SHIP) must not contain insecure dealers: build it alone, without `polyclave-protocol-lab`"
);
