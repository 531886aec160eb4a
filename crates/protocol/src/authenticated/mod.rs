//! Authenticated additive sharing: what all protocols with MACs have in common, those that make material and
//! those that compute with it.
//!
//! The parties share a MAC key alpha. A shared value x comes with shares of alpha x ([`Authenticated`]).
//! Values are opened ([`Openings`]), and a check finds wrong openings before anything is released
//! (`check.rs`). [`Source`] is how material comes.
//!
//! [`spdz`](crate::spdz) computes with such shares, [`mascot`](crate::mascot) and [`tinyot`](crate::tinyot)
//! make material of them, and [`tinytable`](crate::tinytable) exchanges values with clients by them. This
//! folder does not import these four.
//!
//! | file | what |
//! |---|---|
//! | `key.rs`, `share.rs` | the MAC key, and shares with MACs |
//! | `opening.rs`, `packed.rs` | openings, and small cells on the wire |
//! | `check.rs`, `check/of_two.rs` | the MAC check, and tests for zero; the check between two parties |
//! | `source.rs` | where material comes from: triples, random bits |
//! | `vectors.rs`, `units.rs`, `rows.rs`, `inverses.rs` | material for lookups: unit vectors, masked tables, records for inversions |
//! | `guesses.rs` | how many guesses at the key a cheater may have made |

mod check;
mod guesses;
mod inverses;
mod key;
mod opening;
mod packed;
mod rows;
mod share;
mod source;
mod units;
mod vectors;

pub(crate) use check::{
    Answered, Asked, CHECK_ROUNDS, CHECK_ROUNDS_OF_TWO, Coefficients, check, check_of_two, zero_test_of,
};
pub use guesses::{
    Guesses, MAX_AT_ONCE, MAX_FORGED_LOG2, MAX_UNANSWERED, online_bound_log2, spoilt_bound_log2,
};
pub(crate) use inverses::BITS;
pub use inverses::{Element, Inverses, Records};
pub use key::MacKey;
pub use opening::Openings;
pub(crate) use opening::make_room;
pub(crate) use packed::{BYTES, MAX_CELLS, NIBBLES, PAIRS, Packed};
pub use rows::{RowShape, Rows};
pub use share::Authenticated;
pub use source::{OwnedBits, Product, Source, Triples};
pub use units::Units;
pub(crate) use vectors::bit_bytes;
pub use vectors::{UnitVectors, Vectors};
