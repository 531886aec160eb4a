//! How the nodes agree on which items a session takes: one node proposes and all follow
//! ([`proposer`](super::proposer)), or a [`quorum`](super::quorum) votes.

use std::ops::RangeInclusive;

use polyclave_protocol::Party;
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::Kind;
use zeroize::Zeroizing;

use super::Lots;
use super::lot::Lot;
use crate::Result;
use crate::material::target::Target;

/// What a node says if it holds its part of a lot.
pub(super) const HELD: [u8; 1] = [1];
/// Blocks in one run: enough to make a run worth its rounds, and few enough for levels to rise visibly.
pub(super) const BLOCKS_AT_ONCE: usize = 8;
/// A full level, in thousandths.
pub(crate) const FULL: usize = 1000;

/// Where all nodes serve: the first one proposes.
pub(crate) struct ByProposer;

/// Where some of the nodes serve: the one with the lowest number proposes, and a quorum must take the items.
pub(crate) struct ByQuorum {
    /// Votes needed to spend an item. Any two quorums have a node in common that does not cheat.
    pub(crate) quorum: usize,
}

/// How the nodes claim from the stock, and what follows from that for making it.
pub(crate) trait Claiming: Send + Sync {
    /// Takes items. Every node that takes some takes the same.
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>;

    /// The same for material that a session can go on without, of several kinds: nothing, at all nodes, if
    /// there is too little of one now. Where a quorum takes items no such material is kept.
    fn take_if_there(
        &self,
        _lots: &Lots,
        _wanted: &[(Kind, usize)],
        _net: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        Ok(None)
    }

    /// Whether a claim waits until there is enough material.
    fn waits(&self) -> bool;

    /// Whether a failed claim makes the stock useless.
    fn ends_with_a_failed_claim(&self) -> bool;

    /// Whether a lot that can be claimed counts as stock, in a cluster of `nodes`.
    fn counts(&self, lot: &Lot, nodes: usize) -> bool;

    /// How many nodes must hold a lot for it to be of use.
    fn least_holders(&self) -> usize;

    /// Whether a node keeps a lot without having heard that all nodes hold it.
    fn keeps_in_doubt(&self, me: Party) -> bool;

    /// Before a run: compares the stock of a kind between nodes, and checks that there is room for more.
    fn compare(&self, lots: &Lots, kind: &Kind, level: usize, net: &mut dyn Net) -> Result<()>;

    /// After a run: tells the others that this node holds its part of the lot, and waits until the others say
    /// the same.
    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()>;

    /// Tells the others what this node has heard, if they cannot know it.
    fn tell_that_all_hold(&self, net: &mut dyn Net) -> Result<()>;

    /// At the leading node: how many items of a kind count as left. `own` is this node's level, if nodes
    /// report levels of the kind.
    fn believed_left(&self, lots: &Lots, target: &Target, own: Option<u16>, others: Vec<u16>) -> usize;

    /// How many blocks one run makes.
    fn blocks_at_once(&self, lots: &Lots, target: &Target) -> usize;

    /// How many runs may be under way at a time where others make the material.
    fn runs_at_once(&self) -> usize;

    /// At the leading node: whether to make material of the target's kind when `left` items are left.
    fn is_due(&self, lots: &Lots, target: &Target, left: usize) -> bool;

    /// How many items a run may make for this node to take part.
    fn fitting(&self, lots: &Lots, target: &Target) -> RangeInclusive<usize>;
}
