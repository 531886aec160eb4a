//! How the nodes agree on which items a session takes: by one node that all follow ([`proposer`](super::proposer)), or by votes of a
//! [`quorum`](super::quorum).

use std::ops::RangeInclusive;

use polyclave_protocol::Party;
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::Kind;
use zeroize::Zeroizing;

use super::Lots;
use super::lot::Lot;
use crate::Result;
use crate::material::target::Target;

/// What a node says that holds its part of a lot.
pub(super) const HELD: [u8; 1] = [1];
/// Blocks in one run: so many that a run is worth its rounds, and so few that levels can be seen to rise.
pub(super) const BLOCKS_AT_ONCE: usize = 8;
/// A level of thousandths.
pub(crate) const FULL: usize = 1000;

/// All nodes serve: the first one proposes.
pub(crate) struct ByProposer;

/// Some of the nodes serve: the lowest of them proposes, and items are taken that so many nodes take.
pub(crate) struct ByQuorum {
    /// So many; any two choices of so many have a node in common that does not cheat.
    pub(crate) quorum: usize,
}

/// How the nodes claim from the stock, and what follows from that for how it is made.
pub(crate) trait Claiming: Send + Sync {
    /// Takes so many items, the same at all nodes that take some.
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>;

    /// Whether the stock is of no more use after a claim that failed.
    fn ends_with_a_failed_claim(&self) -> bool;

    /// Whether a lot that can be claimed counts as stock, among so many nodes.
    fn counts(&self, lot: &Lot, nodes: usize) -> bool;

    /// A lot is of use as long as so many nodes hold it.
    fn least_holders(&self) -> usize;

    /// Whether a node keeps a lot of which it has not heard that all hold it.
    fn keeps_in_doubt(&self, me: Party) -> bool;

    /// Before a run: compares what there is of a kind, and sees whether there is room for more.
    fn compare(&self, lots: &Lots, kind: &Kind, level: usize, net: &mut dyn Net) -> Result<()>;

    /// After a run: tells that this node holds its part of the lot, and hears that the others do.
    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()>;

    /// Tells the others what this node has heard, if they cannot know it.
    fn tell_that_all_hold(&self, net: &mut dyn Net) -> Result<()>;

    /// At the node that leads: how many items of a kind count as left. `own` is this node's level of it, if levels of it are told.
    fn believed_left(&self, lots: &Lots, target: &Target, own: Option<u16>, others: Vec<u16>) -> usize;

    /// So many blocks are made in one run.
    fn blocks_at_once(&self, target: &Target) -> usize;

    /// Runs of so many items are joined.
    fn fitting(&self, lots: &Lots, target: &Target) -> RangeInclusive<usize>;
}
