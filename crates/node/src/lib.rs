//! A node: it keeps its shares of keys and serves clients together with other nodes.

pub mod audit;
pub mod store;
