//! A client: it sends requests to the nodes and combines their answers.
//!
//! ```text
//! sealed.rs, envelope.rs, handle.rs, gcm.rs, chained.rs, counter.rs, blocks.rs, mac.rs, tokenize.rs (what is asked), keys.rs, listing.rs
//!          |
//! conversation.rs (one request: the same to every node, their answers combined into one)
//!          |
//! client.rs (who asks), group.rs (the workers of the nodes: addresses, connections)
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

mod aead;
mod approval;
mod blocks;
mod chained;
mod client;
mod conversation;
mod counter;
mod envelope;
mod error;
mod gcm;
mod group;
mod handle;
mod kept;
mod keys;
mod listing;
mod load;
mod mac;
mod padding;
mod pending;
mod pieces;
mod random;
mod report;
mod rewrap;
mod sealed;
mod state;
mod strategy;
mod tokenize;
mod versions;

pub use aead::Aead;
pub use blocks::{Blocks, Padding};
pub use chained::Siv;
pub use client::Client;
pub use counter::{Counter, OnStart};
pub use envelope::{ENVELOPE_MAGIC, EnvelopeHead, Spool};
pub use error::{Error, Result};
pub use handle::KeyHandle;
pub use listing::{Listed, Listing};
pub use padding::{fill as pad, unfilled as unpadded};
pub use pending::Pending;
pub use sealed::{HEAD, MAGIC, MAGIC_BOUND};
pub use tokenize::{Alphabet, Card, CardTemplate, Feistel, Tokenization, Tweaked};
pub use versions::Withdrawal;
