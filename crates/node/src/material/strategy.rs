//! What differs between protocols in making material: [`crate::strategy`].

use polyclave_api::Refusal;
use polyclave_protocol::{Error, Party};

use crate::Result;
use crate::material::epoch::Epoch;
use crate::material::state::Material;
use crate::peers::orders::Order;

/// What the first node orders next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// A round of a [refresh](crate::material::refresh).
    Refresh,
    /// An [epoch](crate::material::epoch).
    Epoch,
    /// Items: the number of the kind, and how many; for the stock, or for the request of another worker.
    Fill { kind: u8, count: u32, request: Option<[u8; 16]> },
}

/// How the nodes make material ahead of requests, and what ends it.
pub(crate) trait MaterialStrategy: Send + Sync {
    /// Begins to use the common secrets on which the nodes have agreed, now or before this start.
    fn begin(&self, material: &Material, id: [u8; 32], stored: &[u8]) -> Result<()>;

    /// Refuses a request while there is no epoch, if the protocol needs one.
    fn refuse_without_epoch(&self, material: &Material) -> Result<(), Refusal>;

    /// Decides what a failure among the nodes means for this one. Returns whether it is a quarantine.
    /// `during` says what was under way, never how far, and `epoch` in which epoch, if in one.
    fn judge(&self, material: &Material, during: &str, epoch: Option<&Epoch>, error: &Error) -> bool;

    /// Gives up material that may be worthless, for a reason that another node gives.
    fn give_up(&self, material: &Material, why: &str);

    /// A peer has greeted in the start `boot`; before, it was in the start `before`.
    fn peer_started(&self, material: &Material, peer: Party, before: Option<[u8; 16]>, boot: [u8; 16]);

    /// Writes to disk what could not be written yet. Called every second.
    fn settle(&self, material: &Material);

    /// Whether this node follows an order of the first node to prepare something.
    fn follows(&self, order: &Order) -> bool;

    /// At the first node: what to prepare next.
    fn next(&self, material: &Material) -> Option<Preparation>;

    /// Whether no request runs during a refresh, because what requests run under ends with it.
    fn pauses_for_refresh(&self) -> bool;

    /// Whether there is a MAC key, which a refresh replaces.
    fn has_mac_key(&self) -> bool;
}
