//! What differs, in what the nodes make ahead, between protocols: [`crate::strategy`].

use polyclave_protocol::{Error, Party};
use polyclave_transport::wire::Refusal;

use crate::Result;
use crate::material::state::Material;
use crate::peers::orders::Order;

/// What the first node has all nodes do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// A round of a [rotation](crate::material::rotation).
    Rotation,
    /// An [epoch](crate::material::epoch).
    Epoch,
    /// So many items for the stock, of a kind by its number.
    Fill { kind: u8, count: u32 },
}

/// What the nodes make ahead of requests, and what ends it.
pub(crate) trait MaterialStrategy: Send + Sync {
    /// The nodes have agreed on these common secrets, now or before this start.
    fn begin(&self, material: &Material, id: [u8; 32], stored: &[u8]) -> Result<()>;

    /// Refuses a request while there is no epoch, if it takes one.
    fn refuse_without_epoch(&self, material: &Material) -> Result<(), Refusal>;

    /// What a failure among the nodes means for this one: whether it is a quarantine. `during` says what was under way, never how far.
    fn judge(&self, material: &Material, during: &str, error: &Error) -> bool;

    /// What was made ahead may be worth nothing any more, for a reason that another node gives.
    fn give_up(&self, material: &Material, why: &str);

    /// A peer greets in the start `boot`, after `before`.
    fn peer_started(&self, material: &Material, peer: Party, before: Option<[u8; 16]>, boot: [u8; 16]);

    /// Makes durable what could not be written down yet; every second.
    fn settle(&self, material: &Material);

    /// Whether an order of the first node to prepare something is followed.
    fn follows(&self, order: &Order) -> bool;

    /// At the first node: what is to be prepared next.
    fn next(&self, material: &Material) -> Option<Preparation>;

    /// Whether there is a MAC key, which a rotation replaces.
    fn has_mac_key(&self) -> bool;
}
