//! The other nodes: how they are reached ([`network`]), which are connected ([`registry`]), what nodes tell
//! each other outside of requests ([`orders`], [`exchange`]), and how they notice a node that was put back to
//! an old copy of its disk ([`rollback_guard`]).

pub(crate) mod exchange;
pub(crate) mod network;
pub(crate) mod orders;
pub(crate) mod registry;
pub(crate) mod rollback_guard;
#[cfg(test)]
mod tests;
