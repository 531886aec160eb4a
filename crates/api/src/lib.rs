//! The messages between clients and nodes, and how they are encoded.
//!
//! A message is four bytes of length, little-endian, and a postcard encoding. No more than [`MAX_MESSAGE`]
//! bytes are ever allocated because a peer announced them. A client sends one [`Request`] to every node that
//! is to serve it, and then [`Step`]s; every node gets the same, except for the seeds of a mask that the
//! client deals ([`Request::dealt`]). Every node answers each of them with one [`Reply`], and says meanwhile
//! that it is working. The nodes compare digests of the request and of each step with each other before they
//! use them.

mod approval;
mod codec;
mod components;
#[cfg(test)]
mod fuzz;
pub mod key_block;
mod keys;
mod modes;
pub mod operations;
mod permission;
mod refusal;
mod reply;
mod report;
mod right;
mod sealed_import;
mod step;
mod trace;

use polyclave_protocol::dealt::SeedCommitment;
use polyclave_protocol::versions::{CLIENTS, CLIENTS_NEWEST};
use polyclave_protocol::{Error, PartySet, Result};
use serde::{Deserialize, Serialize};

pub use approval::{Approval, ApprovalSignature, MAX_PURPOSE, NamedKey, Statement, Subject};
pub use codec::{decode, encode, receive_at_most, receive_bytes, send, version_of};
pub use components::{
    COMPONENT_SECONDS, CheckKind, Component, KeyCheck, MAX_COMPONENTS, Parity, component_name,
    key_of_component, why_no_zeros,
};
pub use key_block::BlockHeader;
pub use keys::{
    Derivation, KeyInfo, Lifetime, MAX_ATTRIBUTES, MAX_DERIVATION_DATA, MAX_DERIVED, MAX_LABEL, MAX_SESSION,
    MAX_SESSION_KEYS, NewKey, Origin, VersionState, Wrapping,
};
pub use modes::{
    Choice, MAX_BLOCKS, MAX_SMALL_BLOCKS, MAX_XAES_BLOCKS, MessageOption, Mode, Usage, check_description,
    check_new_key, modes_of, most_blocks, usage_of, warnings, why_apart, why_usages_apart,
};
pub use operations::{
    About, Describe, Detail, Envelope, KeyRef, KeyVersion, Message, Operation, Rewrapped, Use,
};
pub use permission::{Demand, Permission};
pub use refusal::{Reason, Refusal};
pub use reply::{NodeStatus, Reply, StockLevel};
pub use report::{
    AuditEnd, CertificateDate, FaultCount, KeyBudget, KeyCount, KeyEnd, KeysReport, LATENCY_BOUNDS_MS,
    MAX_REPORTED_CERTIFICATES, MAX_REPORTED_KEYS, Report, RequestCount, StandbyReport,
};
pub use right::Right;
pub use sealed_import::{SealedImport, SealedPart};
pub use step::{End, Step};
pub use trace::TraceContext;

/// The version of the protocol between clients and nodes, in this release. It grows with every change of the
/// types below (`polyclave_protocol::versions`). [`Reply::Refused`] keeps its bytes, so that a client of
/// another version can read why it is refused.
pub const VERSION: u16 = CLIENTS_NEWEST as u16;

/// The version of files that clients make: requests for approval and sealed keys. It is the oldest that this
/// program speaks, so nodes and approvers of the release before read them too.
pub fn version_of_files() -> u16 {
    CLIENTS.spoken().oldest.into()
}

/// Refuses a file of a version that this program does not speak.
fn check_file(bytes: &[u8], what: &str, remedy: &str) -> Result<()> {
    let spoken = CLIENTS.spoken();
    match version_of(bytes).filter(|version| !spoken.contains(*version)) {
        None => Ok(()),
        Some(version) => Err(Error::misuse(format!(
            "{what} is of version {version} of the wire of clients, and this program speaks {spoken}: {remedy}"
        ))),
    }
}

/// Bytes of plaintext in a full chunk of a sealed file, and the most that one step asks for.
pub const CHUNK: usize = 256 << 10;

/// The most bytes of a message that is encrypted in one step ([`Step::Message`]).
pub const MESSAGE: usize = 4 << 10;

/// The most bytes of a message of GCM that is decrypted in one step ([`Step::Open`]): its keystream is
/// computed, and paid, before its tag has fitted.
pub const OPENED: usize = 7 * 16;

/// The most bytes of a step under a mask. Its answer carries the next mask, too.
pub const MASKED: usize = CHUNK / 2;

/// The largest message. Data that a client verifies by itself is twice as long as what it learns and 52 bytes
/// more, for a chunk or for masked bytes and the next mask.
pub const MAX_MESSAGE: usize = 2 * CHUNK + (64 << 10);

/// The most keys on one page of a list.
pub const KEYS: usize = 1000;

/// The most additional data of one message.
pub const MAX_ADDITIONAL_DATA: usize = 32 << 10;

/// The most bytes of what a client says about a file in an envelope.
pub const MAX_HEADER: usize = 4 << 10;

/// Bytes of the key of a file in an envelope.
pub const FILE_KEY: usize = 32;

/// The most random bytes of one request.
pub const MAX_RANDOM: usize = 64 << 10;

/// The most bytes of a step whose blocks are computed one after the other: each takes as long as a whole
/// chunk of a parallel mode, and peers wait.
pub const CHAINED: usize = 2048;

/// The most bytes of a message of CCM, SIV or HMAC, and of one of GCM whose nonce has not 12 bytes.
pub const MAX_CHAINED: usize = 64 << 10;

/// The most bytes of a nonce.
pub const MAX_NONCE: usize = 1 << 10;

/// The bytes of a nonce of [`Mode::Xaes`]. The first half chooses the message's key.
pub const XAES_NONCE: usize = 24;

/// The most bytes of a message that is rewrapped.
pub const MAX_REWRAPPED: usize = 1 << 10;

/// The most values that are tokenized together.
pub const MAX_VALUES: usize = 4 << 10;

/// The most messages whose codes of HMAC are computed together: a block of each is one step. A compression
/// has as many ANDs as four to eight blocks of AES, so there are fewer than a step could carry.
pub const MAX_CODES: usize = 512;

/// The most strings of additional data of one message of SIV.
pub const MAX_STRINGS: usize = 16;

/// The first message of a client. It sends the same to every node that is to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The version of all that follows: the newest that the client and all these nodes speak.
    pub version: u16,
    /// An id that the client draws, so that nodes know which requests belong together.
    pub id: [u8; 16],
    /// The nodes that are to serve.
    pub serving: PartySet,
    /// What to do.
    pub operation: Operation,
    /// The first step, if there is one already. This saves a round trip.
    pub first: Option<Step>,
    /// If the client deals the mask of the first step itself: its commitments to the mask's components
    /// ([`polyclave_protocol::dealt`]). Then a second message follows to each node, with the seeds of that
    /// node's components. Else empty.
    pub dealt: Vec<SeedCommitment>,
    /// The approval of several people, if the client has one.
    pub approval: Option<Approval>,
    /// The user on whose behalf the client says that it asks, as a gateway does: a name, which nodes log and
    /// do not judge. Empty if it asks for itself.
    pub on_behalf_of: String,
    /// The trace that the request belongs to, if it belongs to one. Nodes decide nothing by it.
    pub trace: Option<TraceContext>,
}
