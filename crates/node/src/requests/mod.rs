//! How a node handles a request, in the order of the steps.
//!
//! 1. [`plan`]: this node alone decides whether the client may do this.
//! 2. [`channel_lease`]: the request gets its part of the memory ([`memory`]) and a channel to the other
//!    serving nodes ([`channels`], [`turns`]; at the nodes that follow: [`pending`] and [`follow`]).
//! 3. [`begin`]: the nodes compare the request in the hello round.
//! 4. [`conversation`]: the nodes take the client's steps, compare each of them before they use it
//!    ([`agreement`]), and answer.
//!
//! [`service`] has the parts of the node that serving takes, [`strategy`] what differs between protocols, and
//! [`delay`] how far the other nodes are.

pub(crate) mod agreement;
pub(crate) mod attempts;
pub(crate) mod begin;
pub(crate) mod channel_lease;
pub(crate) mod channels;
pub(crate) mod conversation;
pub(crate) mod delay;
pub(crate) mod follow;
pub(crate) mod foresight;
pub(crate) mod memory;
pub(crate) mod pending;
pub(crate) mod plan;
pub(crate) mod service;
pub(crate) mod strategy;
mod turns;
