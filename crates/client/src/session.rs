//! How one request runs with several nodes: connections that are kept, the same message to each node, one
//! answer of their replies.
//!
//! [`group`] has the workers of the nodes and who asks them, [`conversation`] one request with nodes that
//! serve it, and [`strategy`] what differs if the other nodes go on without one that fails.

pub(crate) mod approvals;
pub(crate) mod conversation;
pub(crate) mod first;
pub(crate) mod group;
mod kept;
mod load;
mod refusals;
mod replies;
mod state;
pub(crate) mod strategy;
