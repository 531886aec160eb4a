//! A request, in the order in which a node deals with it.
//!
//! 1. [`plan`]: this node alone decides whether the client may do this.
//! 2. [`lending`]: the request gets a channel to the other serving nodes ([`channels`], [`turns`]; at those that follow [`pending`] and
//!    [`follow`]), and its part of the memory ([`memory`]).
//! 3. [`begin`]: the nodes compare the request in the hello round.
//! 4. [`conversation`]: they take the client's steps, each compared among them first ([`agreement`]), and answer.
//!
//! [`service`] has the parts of the node that this takes, and [`strategy`] what differs between protocols.

pub(crate) mod agreement;
pub(crate) mod begin;
pub(crate) mod channels;
pub(crate) mod conversation;
pub(crate) mod follow;
pub(crate) mod lending;
pub(crate) mod memory;
pub(crate) mod pending;
pub(crate) mod plan;
pub(crate) mod service;
pub(crate) mod strategy;
mod turns;
