//! Serves clients: requests that each node answers alone ([`reception`], [`random`]), and requests that all
//! nodes serve together ([`together`]).

mod random;
pub(crate) mod reception;
mod together;
