//! Clients: their connections ([`reception`]), the limits of each ([`limits`]), and the operator's rules for them ([`rules`]).

pub(crate) mod limits;
pub(crate) mod random;
pub(crate) mod reception;
pub(crate) mod rules;
