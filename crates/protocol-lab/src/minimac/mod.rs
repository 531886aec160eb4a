//! Commitments to long strings of bits, of which any selection can be opened later: Damgard et al. 2016
//! (TinyTable), section 6, with the representation of Damgard and Zakarias 2013, "Constant-Overhead Secure
//! Computation of Boolean Circuits using Preprocessing" (MiniMac).
//!
//! For L bits the parties keep and send O(L), whatever the security parameter is; MACs for every bit would
//! multiply that by the security parameter. Computation is O(L log k) products in GF(2^16), by an additive
//! transform, where k is the length of a message of the code, a constant times the security parameter.
//!
//! | file | what | source |
//! |---|---|---|
//! | `additive_fft.rs` | evaluation and interpolation | Lin, Chung, Han 2014 |
//! | `code.rs` | the code, its square, how long it must be | section 6, footnote 2 |
//! | `commitment.rs` | \[s\], and a mask for one product | section 6, figure 9 |
//! | `product.rs` | I * s, masked | section 6, "\[I * s\]" |
//! | `opening.rs` | opening it, and why nothing else is revealed | section 6, lemma 1 |
//! | `check.rs` | the MACs of all openings at once | |
//!
//! **Adversary**: active, static, one of the two; secure with abort, given an ideal dealer. Channels are
//! private and authentic.

mod additive_fft;
mod check;
mod code;
mod commitment;
pub mod insecure_minimac;
mod opening;
mod product;
#[cfg(test)]
mod tests;

pub use code::Code;
pub use commitment::{Committed, Shares};
pub(crate) use commitment::{Tile, pack};
pub use opening::{KeyShare, Opener};
