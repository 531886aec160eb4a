//! Claims where all nodes serve every request: the first node proposes and tells the others, which follow if the claim fits.
//!
//! A lot can be claimed when all nodes have told the proposer that they hold their parts. The proposer drops a lot if it does not hear
//! that; the others keep it ([`MOST_IN_DOUBT`](super::MOST_IN_DOUBT)).

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Lots;
use super::choice::{choose, judge};
use super::claiming::{BLOCKS_AT_ONCE, ByProposer, Claiming, HELD};
use super::claims::{self, PROPOSER, Range, refused};
use super::lot::{Lot, Refused};
use crate::Result;
use crate::material::target::Target;

/// How long a claim that leaves out too much waits for earlier claims that are still on their way.
pub(super) const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(10) };

/// The ranges that the proposer takes, and their items.
type Proposed = (Vec<Range>, Zeroizing<Vec<u8>>);

impl Claiming for ByProposer {
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        if (net.me(), net.parties(), net.members()) != (lots.me, lots.nodes, PartySet::all(lots.nodes)) {
            return Err(Error::misuse("all nodes that made the material must take it together"));
        }
        if net.me() == PROPOSER {
            let proposed = lots.propose(kind, count)?;
            let ranges = proposed.as_ref().map_or(&[][..], |(ranges, _)| ranges);
            claims::tell(&lots.epoch, ranges, net)?;
            return match proposed {
                Some((_, items)) => Ok(items),
                None => {
                    let (there, _) = lots.of_use(kind);
                    claims::tell_left(there, net)?;
                    Err(lots.dry_with(kind, count, (there, 0)))
                }
            };
        }
        match claims::hear(PROPOSER, &lots.epoch, Patience::of(1), net)? {
            none if none.is_empty() => Err(lots.dry_with(kind, count, (claims::hear_left(net)?, 0))),
            ranges => lots.follow(kind, count, &ranges),
        }
    }

    /// The stocks of the nodes differ, if only by a claim that was lost. The nodes begin anew.
    fn ends_with_a_failed_claim(&self) -> bool {
        true
    }

    fn counts(&self, _: &Lot, _: usize) -> bool {
        true
    }

    /// A lot ends with the epoch, at all nodes.
    fn least_holders(&self) -> usize {
        0
    }

    /// Except at the proposer, which is the one to claim it.
    fn keeps_in_doubt(&self, me: Party) -> bool {
        me != PROPOSER
    }

    /// All nodes have heard of the same claims.
    fn compare(&self, _: &Lots, _: &Kind, _: usize, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        match net.me() {
            PROPOSER => Party::all(net.parties()).skip(1).try_for_each(|peer| hear(peer, net)),
            _ => {
                net.send(PROPOSER, &HELD)?;
                hear(PROPOSER, net)
            }
        }
    }

    fn tell_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        match net.me() {
            PROPOSER => Party::all(net.parties()).skip(1).try_for_each(|peer| net.send(peer, &HELD)),
            _ => Ok(()),
        }
    }

    fn believed_left(&self, lots: &Lots, target: &Target, _: Option<u16>, _: Vec<u16>) -> usize {
        lots.left(&target.kind)
    }

    fn blocks_at_once(&self, _: &Target) -> usize {
        BLOCKS_AT_ONCE
    }

    /// Stocks can differ a little between nodes, after a run that some nodes did not complete.
    fn fitting(&self, lots: &Lots, target: &Target) -> RangeInclusive<usize> {
        1..=(2 * target.items()).saturating_sub(lots.left(&target.kind))
    }
}

impl Lots {
    /// At the proposer: [chooses](choose) items and spends them.
    pub(super) fn propose(&self, kind: &Kind, count: usize) -> Result<Option<Proposed>> {
        let mut lots = self.lock();
        let chosen = choose(&lots, kind, count as u64, PartySet::all(self.nodes), self.nodes);
        let Some(ranges) = chosen else { return Ok(None) };
        let items = self.spend(&mut lots, &ranges, count * kind.item_bytes)?;
        Ok(Some((ranges, items)))
    }

    /// At the others: spends the items of a claim.
    fn follow(&self, kind: &Kind, count: usize, ranges: &[Range]) -> Result<Zeroizing<Vec<u8>>> {
        let until = Instant::now() + PATIENCE;
        let mut lots = self.lock();
        loop {
            match judge(&lots, kind, count, ranges, true) {
                Ok(()) => return self.spend(&mut lots, ranges, count * kind.item_bytes),
                Err(why @ Refused::TooFar { .. }) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(refused(why));
                    }
                    self.claimed.wait_for(&mut lots, left);
                }
                Err(why) => return Err(refused(why)),
            }
        }
    }
}

fn hear(peer: Party, net: &mut dyn Net) -> Result<()> {
    let mut said = [0];
    net.recv(peer, &mut said)?;
    match said == HELD {
        true => Ok(()),
        false => Err(Error::Peer { peer, detail: "it did not confirm that a lot is held".into() }),
    }
}
