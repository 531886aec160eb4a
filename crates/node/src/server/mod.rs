//! Clients are served: what each node answers alone ([`reception`], [`random`]), and what all nodes do together
//! ([`together`]).

mod random;
pub(crate) mod reception;
mod together;
