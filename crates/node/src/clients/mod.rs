//! Clients: their connections ([`reception`]), what each may have at once ([`limits`]), and the operator's rules for them ([`rules`]).

pub(crate) mod limits;
pub(crate) mod reception;
pub(crate) mod rules;
