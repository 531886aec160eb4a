//! Clients: how they are served ([`reception`]; by all nodes together: [`together`]), the limits of each ([`limits`]; of its connections: [`connections`]), and the operator's
//! rules for them ([`rules`]; how much of their limits is used up: [`rates`]; how they have changed: [`changes`]).

pub(crate) mod approvals;
mod changes;
pub(crate) mod connections;
pub(crate) mod limits;
pub(crate) mod random;
mod rates;
pub(crate) mod reception;
pub(crate) mod rules;
pub(crate) mod taking;
pub(crate) mod tally;
mod together;
