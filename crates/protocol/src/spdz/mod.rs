//! SPDZ: authenticated additive sharing among n parties, all but one of which may be hostile.
mod check;
mod key;
mod opening;
mod share;
mod source;

pub(crate) use check::{Coefficients, check_plainly};
pub use key::MacKey;
pub use opening::Openings;
pub use share::Authenticated;
pub use source::{Product, Source, Triples};
