//! Authenticated bits of two parties, and products of them: Nielsen, Nordholt, Orlandi, Burra 2012, "A New Approach to
//! Practical Active-Secure Two-Party Computation" (TinyOT), as Damgard et al. 2016, section 4, takes it for preprocessing.
//!
//! | file | what | source |
//! |---|---|---|
//! | `share.rs` | authenticated bits | Damgard et al. 2016, section 4, [[x]] |
//! | `opening.rs` | opening them, tags compared by one hash | section 3.3 |
//! | `source.rs` | where random bits and triples come from | |
//!
//! **Adversary**: active, static, one of the two; secure with abort. Channels are private and authentic.

mod opening;
mod share;
mod source;

pub use opening::Openings;
pub(crate) use opening::peer_of;
pub use share::Bits;
pub(crate) use share::mask;
pub use source::{Key, Source, Triples};
