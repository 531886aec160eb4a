//! A client: it sends requests to the nodes and combines their answers.
//!
//! ```text
//! operations/   what users ask for: encrypt, mac, tokenize, keys, wrap, sealed files ..
//!     |
//! client.rs     what a user holds: who asks, and the worker groups (builder.rs makes it)
//!     |
//! session/      how one request runs: connections, the same to every node, their replies combined into one answer
//! ```
//!
#![doc = include_str!("../README.md")]

mod again;
mod builder;
mod client;
mod error;
mod identities;
mod operations;
mod session;

pub use again::Again;
pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{Error, Result};
pub use operations::*;
