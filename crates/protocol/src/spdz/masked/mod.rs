//! Masked tables (Keller et al. 2017, section 4): a random index s that nobody knows, and the entry of the
//! table at every index shifted by s. A lookup opens h = x + s and takes row h. It takes one round, and opens
//! one cell.
//!
//! Privacy: s is uniform and is used for one lookup, so h is uniform. Correctness: every opening, here and in
//! preprocessing, is covered by the MAC check.
//!
//! * [`demux`]: makes the unit vector from the bits of s, in preprocessing (Protocol 3).
//! * [`Vectors`](crate::authenticated::Vectors): unit vectors as a party keeps them, in stock or until a
//!   lookup uses them.
//! * [`Units`](crate::authenticated::Units): for tables of at most 6 bits the unit vector is stored, and
//!   combined to the needed outputs when it is used.
//! * [`Rows`](crate::authenticated::Rows): for larger tables the masked table itself is stored, with the
//!   images of its outputs that are needed (Protocol 2).

mod demux;
mod lookup;
mod sums;

pub use demux::Packing;
pub(super) use demux::demux_cost;
pub(super) use sums::Sums;
