//! `polyclave gateway` and `polyclave dashboard`: programs that call Vault's transit engine, API servers of
//! Kubernetes, and KMS of AWS use keys of the nodes without a change; and operators see on a page how the
//! nodes are.
//!
//! ```text
//! listen.rs (loopback, TLS, Unix sockets)        tokens.rs (who may ask for what), login.rs (and who gets a token), connections.rs, memory.rs (and how much of the gateway)
//!     |                     |
//! vault.rs, ui.rs, kms.rs; signed.rs: aws.rs, xks.rs    look.rs (whether the nodes can serve); dashboard.rs: ui.rs alone
//!     \                     /
//!      queue.rs (whose turn it is), nodes.rs (on threads), versions.rs; long requests: bulk.rs
//!                 |                                        traced.rs (which trace a request belongs to)
//!      polyclave-client, on behalf of the token
//! ```
//!
//! A gateway is a client of the nodes. It sees the messages of its callers, and no key. A stolen token can do
//! what its entry says, until it is removed from the file. A stolen gateway can do what the nodes allow its
//! client.

mod aws;
mod bound;
mod bulk;
mod check;
mod connections;
mod counts;
mod dashboard;
mod error;
mod failure;
mod kmip;
mod kms;
mod listen;
mod login;
mod look;
mod make_access_key;
mod make_certificate;
mod make_token;
mod mark;
mod memory;
mod moment;
mod nodes;
mod outgoing;
mod queue;
mod rewrap_batch;
mod running;
mod signed;
mod stream;
mod tls;
mod tokens;
mod traced;
mod transform;
mod ui;
mod vault;
mod versions;
mod xks;

pub use check::{Checked, check};
pub use dashboard::Dashboard;
pub use error::{Error, Result};
pub use make_access_key::make_access_key;
pub use make_certificate::make_certificate;
pub use make_token::make_token;
pub use rewrap_batch::{NotRewrapped, RewrapBatch, Rewrapped};
pub use running::Running;
