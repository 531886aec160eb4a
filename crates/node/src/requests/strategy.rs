//! What differs, in serving a request, between protocols that abort and those that guarantee the output:
//! [`crate::strategy`].

use std::time::Duration;

use polyclave_api::Refusal;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::computation::modes::StepError;
use crate::material::epoch::Epoch;
use crate::material::state::Material;
use crate::requests::agreement::Early;
use crate::requests::channel_lease::ChannelLease;

/// How long this node waits for other nodes.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For a serving node that is not connected when a request begins.
    pub(crate) returning: Duration,
    /// How many times the leading node tries to open a channel.
    pub(crate) channel_tries: usize,
    /// For a peer that is silent while a key is used.
    pub(crate) silence: Duration,
}

/// A step of a client that the nodes compare.
#[derive(Clone, Copy)]
pub(crate) struct StepOf<'s> {
    /// The session that the step belongs to.
    pub(crate) session: &'s [u8; 32],
    /// Whether the request uses a key, and does not make one.
    pub(crate) uses_key: bool,
}

/// When this node ends a session that uses a key, once its client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutClient {
    /// At the next message to another node.
    EndsAtOnce,
    /// Before it computes another piece ([`crate::computation::pieces`]).
    EndsBetweenPieces,
    /// Together with the other nodes, at the next step.
    GoesOn,
}

/// How a request ended among the nodes.
pub(crate) struct Ending<'e> {
    pub(crate) outcome: Result<(), StepError>,
    /// Why the client cannot be reached any more.
    pub(crate) gone: Option<Refusal>,
    /// In which epoch it ran.
    pub(crate) epoch: Option<&'e Epoch>,
}

/// How nodes serve a request together.
pub(crate) trait RequestStrategy: Send + Sync {
    /// How long this node waits for other nodes.
    fn patience(&self) -> Patience;

    /// Whether to repeat the hello on another channel after an error, as long as there is time.
    fn tries_another_channel(&self, error: &Error) -> bool;

    /// Whether the key of a request counts as announced. `here` says whether it was announced at this node.
    fn is_announced(&self, here: bool, net: &mut dyn Net) -> Result<bool>;

    /// Called while the node waits for the client's next step. Returns the first peer that has already
    /// refused that step.
    fn listen(&self, early: &mut Early, net: &mut TlsNet) -> Result<Option<Party>>;

    /// Compares a step with the other serving nodes. `mine` is the digest of what the client told this node,
    /// or the reason why this node does not accept the step. Returns the refusal if the request does not go
    /// on.
    fn agree(
        &self,
        mine: Result<[u8; 32], Refusal>,
        step: StepOf<'_>,
        early: &Early,
        net: &mut dyn Net,
    ) -> Result<Result<(), Refusal>>;

    /// When the session ends here, if the client is gone while a key is used.
    fn without_client(&self) -> WithoutClient;

    /// Ends a request: decides what the client is told and whether the channel can serve again.
    fn end(
        &self,
        material: &Material,
        channel: &mut ChannelLease<'_>,
        ending: Ending<'_>,
        faults: &mut Faults,
    ) -> Result<(), Refusal>;

    /// Whether wrong shares are corrected while all nodes are connected.
    fn corrects(&self) -> bool;
}
