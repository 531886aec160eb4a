//! A client: it sends requests to the nodes and combines their answers.
//!
//! ```text
//! operations/   what users ask for: encrypt, mac, tokenize, keys, wrap, sealed files ..
//!     |
//! client.rs     what a user holds: who asks, and the worker groups
//!     |
//! session/      how one request runs: connections, the same to every node, their replies combined into one answer
//! ```
//!
//! Nodes that follow the protocol learn nothing about the data unless more nodes than the threshold combine what they saw. Under a passive
//! protocol a single node that does not follow it can make the answers wrong.
//!
//! ```no_run
//! use polyclave_client::Client;
//! use polyclave_config::ClientDir;
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // As `polyclave cluster new try` made it, while `polyclave cluster run try` runs.
//! let client = Client::open(&ClientDir::open("try/client".as_ref())?)?;
//! let mut sealed = Vec::new();
//! client.seal("payroll", &mut &b"a secret"[..], &mut sealed, &mut |_| ())?;
//! let mut opened = Vec::new();
//! client.open_sealed("payroll", &mut &sealed[..], &mut opened, &mut |_| ())?;
//! assert_eq!(opened, b"a secret");
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod operations;
mod session;

pub use client::Client;
pub use error::{Error, Result};
pub use operations::*;
