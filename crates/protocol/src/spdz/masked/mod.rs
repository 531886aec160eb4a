//! Masked tables (Keller et al. 2017, section 4): a random index s that nobody knows, and the entry of the table at every index
//! shifted by s. A lookup opens h = x + s and takes row h. It takes one round, and opens one cell.
//!
//! Privacy: s is uniform and serves one lookup, so h is uniform. Correctness: every opening here and there is under the MAC
//! check.
//!
//! * [`demux`]: from the bits of s its unit vector, in preprocessing (Protocol 3).
//! * [`Vectors`]: what a party keeps of unit vectors, in stock or until it is looked up in.
//! * [`Units`]: tables of at most 6 bits keep the unit vector and combine it at use, whatever the outputs wanted are.
//! * [`Rows`]: larger ones keep the masked table itself, with the images of its outputs that are wanted (Protocol 2).

mod demux;
mod lookup;
mod rows;
mod units;
mod vectors;

pub(super) use demux::demux_cost;
pub use demux::{Packing, UnitVectors};
pub use rows::{RowShape, Rows};
pub(super) use units::Sums;
pub use units::Units;
pub(super) use vectors::Vectors;
