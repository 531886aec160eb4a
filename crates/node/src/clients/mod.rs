//! What a node knows of its clients: who they are ([`client`]; the certificates of their authorities:
//! [`authorities`]), the limits of each ([`limits`]; of its connections: [`connections`]),
//! the operator's rules for them ([`rules`]; how much of their limits is used up: [`rates`]; how they have
//! changed: [`changes`]; which refusals the log tells: [`refused`]), approvals of several people
//! ([`approvals`]), and counts of requests ([`tally`]).

pub(crate) mod approvals;
pub(crate) mod authorities;
mod changes;
pub(crate) mod client;
pub(crate) mod connections;
pub(crate) mod limits;
mod rates;
mod refused;
pub(crate) mod rules;
pub(crate) mod tally;
