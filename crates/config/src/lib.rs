//! Files that people keep and exchange: the addresses and certificates of nodes, the rights of clients, and
//! the settings of a node.
//!
//! | file | who keeps it | what it says |
//! |---|---|---|
//! | [`Card`] | everybody | where a node is and by which certificates it is known |
//! | [`Cluster`] (`cluster.toml`) | all nodes and clients, the same | which nodes work together, and how |
//! | [`NodeDir`] | one node | its settings, identity, secret at rest and store |
//! | [`ClientPolicy`] (`clients.toml`) | one node | what which client may do there: [`Rule`]s with conditions |
//! | [`ClientDir`] | one client | its name and identity |
//! | [`SealedClient`] | one client of PKCS#11 | the same, with its key sealed under PINs |
//! | [`GatewaySettings`] (`gateway.toml`) | one gateway | where it listens, and what which token may do |
//! | [`Hosts`] (`hosts.toml`) | researchers, the same at each | the parties of the laboratory's sessions between machines |
//!
//! Text is TOML, and a field that is not known is an error. Everything is written to a temporary file, synced
//! and renamed, so that a crash leaves the old or the new. What is private is 0600 from its first byte, in
//! directories of 0700, and is not read when others could have read it.
//!
//! ```
//! use polyclave_config::{Card, Cluster, NodeDir, NodeSettings};
//! use polyclave_transport::Identity;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! // Each node makes its own directory, on its own machine, and gives its card away.
//! let card = |name: &str| -> Result<Card, Box<dyn std::error::Error>> {
//!     let settings = NodeSettings::new(name, &format!("{name}.example:7000"), &format!("{name}.example:7001"));
//!     let identity = Identity::generate_named(name, 365)?;
//!     let (certificate, key) = (identity.certificate(), identity.reveal_private_key());
//!     Ok(NodeDir::init(&dir.path().join(name), &settings, &certificate, &key)?)
//! };
//! let cluster = Cluster::define("shamir", 1, vec![card("a")?, card("b")?, card("c")?])?;
//! let file = dir.path().join("cluster.toml");
//! cluster.save(&file)?;
//! assert_eq!(Cluster::load(&file)?, cluster);
//! // What the operators compare, in words.
//! assert!(cluster.fingerprint().check(&cluster.fingerprint().words()).is_ok());
//! # Ok(())
//! # }
//! ```

mod approval_file;
mod approval_signature;
mod audit;
mod card;
mod client;
mod cluster;
mod error;
mod fingerprint;
#[cfg(test)]
mod fuzz;
mod gateway;
mod hosts;
mod identity;
mod name;
mod names;
mod needs;
mod node;
mod passphrase_key;
mod pins;
mod policy;
pub mod private;
mod renewed;
mod roles;
mod rotation;
mod sealed_import;
mod sealed_key_file;
mod sealed_secret;
mod settings;
mod succession;
mod text;
mod traces;

pub use approval_file::{approval_to_text, load_approval, parse_approval, save_approval};
pub use approval_signature::{is_signed_by, sign_approval};
pub use audit::{AuditSettings, WhenUnwritable};
pub use card::{Card, ClientCard, MAX_WORKERS, Place, certificate_fingerprint};
pub use client::ClientDir;
pub use cluster::{Change, Cluster, Consent, Replaced};
pub use error::{Error, Result};
pub use fingerprint::Fingerprint;
pub use gateway::{
    ACCESS_KEY_RIGHTS, GatewayAccessKey, GatewayAlphabet, GatewayGrant, GatewayKmip, GatewayKmipClient,
    GatewayLimits, GatewayListener, GatewayLogin, GatewayLoginRole, GatewayRole, GatewaySettings,
    GatewayTemplate, GatewayToken, GatewayTransform, GatewayTransformation, GatewayXks, GatewayXksKey,
    KMIP_RIGHTS, KeysPlace, KmsListener, LoginKind, SignatureAlgorithm, TOKEN_RIGHTS, TweakSource,
};
pub use hosts::{Host, Hosts};
pub use identity::StoredIdentity;
pub use name::check_name;
pub use names::in_names;
pub use needs::{Need, Needs};
pub use node::{AskPassphrase, KeptFile, NodeDir, SecretPlace};
pub use pins::{MAX_PIN, MAX_WRONG_PINS, PinError, PinOwner, SealedClient, Strength};
pub use policy::{
    ApprovalRule, Approver, ApproverGroup, Asker, Authority, AuthorityClient, ClientPolicy, ClientRule, Day,
    Entry, Grant, Group, Hours, Judgement, Moment, NodeOperation, Quorum, Rule, patterns_overlap,
};
pub use renewed::RenewedFiles;
pub use roles::{Role, Roles};
pub use sealed_import::{open_import, seal_import};
pub use sealed_key_file::{load_sealed_key, parse_sealed_key, save_sealed_key, sealed_key_to_text};
pub use sealed_secret::Passphrase;
pub use settings::{
    CertificateSettings, LatencySettings, NodeLimits, NodeSettings, RefreshSettings, StockSettings,
};
pub use succession::ClientSuccession;
pub use traces::TraceSettings;
