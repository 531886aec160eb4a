//! What each node still holds, told to all before they make more of a kind; where they correct each other.
//!
//! A node hears of no claim in a session that it does not serve, so items stay with it that are spent elsewhere. They would count, and
//! as a proposer it would claim them, in vain. An item is used only if a quorum takes it ([`quorum`](super::quorum)). So one that
//! fewer nodes hold is of no use to anybody, and is wiped. Those who lie that they have spent an item could have refused it all the
//! same, and those who lie that they hold it can keep it here, and no more: what counts is whether a quorum holds it, this node
//! included.
//!
//! # Room
//!
//! Material that could still be used is not given up for new material, or a leader of fills could have all nodes give up all they
//! have and then be silent. One exception: lots that a node has lost by starting again. They serve in an emergency, and would pile
//! up with every start. The eldest of them goes if as much as is to be in stock remains in lots that every node has just said to
//! count on, but for those that lost them. Whoever lies here makes a node keep more, or keep what only the liar denies: it is
//! never made to give up the last that nodes have in common which do not lie.

use std::collections::HashMap;
use std::time::Duration;

use polyclave_protocol::net::Net;
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};

use super::lot::{Lot, Standing};
use super::ranges::Ranges;
use super::{Lots, held};
use crate::Result;
use crate::peers::exchange::tell_all;

/// A node says so much at most: beyond, it leaves out which items of its youngest lots are spent.
const MOST_BYTES: usize = 4 << 20;

/// What others have spent is wiped here if it was so in a comparison that long ago. They do not wait for a node that is behind, which may
/// have the same claims still before it.
pub(super) const ON_ITS_WAY: Duration =
    if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(20) };

const LOT: usize = 16 + 4;
const RANGE: usize = 8 + 8;
/// In the count of ranges of a lot: all are known to hold it.
const HELD: u32 = 1 << 31;

/// What a node says of the lots it has.
type Inventory = HashMap<[u8; 16], (Standing, Ranges)>;

impl Lots {
    /// Compares what there is of a kind, wipes what is of no use, and sees whether there is room for more: no more is left than twice
    /// the level.
    pub(super) fn compare(&self, kind: &Kind, level: usize, quorum: usize, net: &mut dyn Net) -> Result<()> {
        let inventories = exchange(&self.inventory(kind), net)?;
        let absent = |lot: &Lot| Ranges::below(lot.count());
        let spent = |lot: &Lot| {
            let of = |(_, lots): &(Party, Inventory)| match lots.get(&lot.id) {
                Some((_, spent)) => spent.clone(),
                None => absent(lot),
            };
            inventories.iter().map(of).collect()
        };
        self.bury(kind, quorum, ON_ITS_WAY, &spent);
        self.make_room(kind, level as u64, quorum, &inventories)
    }

    /// Wipes items that too few nodes hold, by what others have spent of each lot, as soon as no claim of them can be on its way.
    fn bury(&self, kind: &Kind, quorum: usize, on_its_way: Duration, spent: &dyn Fn(&Lot) -> Vec<Ranges>) {
        let (mut lots, few) = (self.lock(), self.nodes - quorum + 1);
        for lot in lots.iter_mut().filter(|lot| lot.kind == *kind) {
            lot.doom(&Ranges::in_at_least(few, &spent(lot)), on_its_way);
        }
        lots.retain(|lot| lot.left() > 0);
    }

    fn make_room(
        &self,
        kind: &Kind,
        level: u64,
        quorum: usize,
        inventories: &[(Party, Inventory)],
    ) -> Result<()> {
        let mut lots = self.lock();
        let all = PartySet::all(self.nodes);
        lots.retain(|lot| lot.kind != *kind || lot.holders().len() >= quorum);
        let is_sound = |lot: &Lot| {
            let counts_on_it = |(party, said): &(Party, Inventory)| {
                !lot.holders().contains(*party) || matches!(said.get(&lot.id), Some((Standing::Held, _)))
            };
            inventories.iter().all(counts_on_it)
        };
        loop {
            let left: u64 = lots.iter().filter(|lot| lot.kind == *kind).map(Lot::of_use).sum();
            // However small the level: with one run more than this a full level is always in lots that nobody lost.
            if left <= 2 * level {
                return Ok(());
            }
            let eldest = lots.iter().position(|lot| lot.kind == *kind && !lot.is_held_by(all));
            let remains = |but: usize| {
                let but = lots[but].id;
                held(&lots, kind).filter(|lot| lot.id != but && is_sound(lot)).map(Lot::of_use).sum::<u64>()
            };
            match eldest.filter(|at| remains(*at) >= level) {
                Some(at) => drop(lots.remove(at)),
                None => {
                    let name = kind.name;
                    return Err(Error::System(format!(
                        "more material was ordered than this node is to keep: it has {left} {name}, and is to have {level}"
                    )));
                }
            }
        }
    }

    /// What this node has of a kind.
    fn inventory(&self, kind: &Kind) -> Vec<u8> {
        let lots = self.lock();
        let of_kind = || lots.iter().filter(|lot| lot.kind == *kind);
        let mut room = MOST_BYTES.saturating_sub(of_kind().count() * LOT);
        let mut said = Vec::new();
        for lot in of_kind() {
            // To leave out what is spent only keeps it elsewhere.
            let ranges = if lot.spent().pieces() * RANGE <= room { lot.spent().pieces() } else { 0 };
            room -= ranges * RANGE;
            let held = if lot.standing == Standing::Held { HELD } else { 0 };
            said.extend_from_slice(&lot.id);
            said.extend_from_slice(&(ranges as u32 | held).to_le_bytes());
            for (from, to) in lot.spent().iter().take(ranges) {
                said.extend_from_slice(&from.to_le_bytes());
                said.extend_from_slice(&to.to_le_bytes());
            }
        }
        said
    }
}

/// Tells all, and hears what they say.
fn exchange(mine: &[u8], net: &mut dyn Net) -> Result<Vec<(Party, Inventory)>> {
    let lengths = tell_all(&(mine.len() as u32).to_le_bytes(), net)?;
    let mut theirs = vec![Vec::new(); net.parties()];
    for (peer, length) in &lengths {
        let length = u32::from_le_bytes(*length) as usize;
        if length > MOST_BYTES {
            return Err(Error::Peer {
                peer: *peer,
                detail: format!("it says {length} bytes of what it holds"),
            });
        }
        theirs[peer.index()] = vec![0; length];
    }
    let to = |p: Party| if lengths.iter().any(|(peer, _)| *peer == p) { mine } else { &[][..] };
    let out: Vec<&[u8]> = Party::all(net.parties()).map(to).collect();
    net.exchange(&out, &mut theirs.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    let read = |(peer, _): &(Party, [u8; 4])| {
        let misfit = || Error::Peer { peer: *peer, detail: "what it says that it holds is cut off".into() };
        read(&theirs[peer.index()]).map(|said| (*peer, said)).ok_or_else(misfit)
    };
    lengths.iter().map(read).collect()
}

pub(super) fn read(mut bytes: &[u8]) -> Option<Inventory> {
    let mut lots = Inventory::new();
    while let Some((id, rest)) = bytes.split_first_chunk::<16>() {
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count);
        let (ranges, rest) = rest.split_at_checked((count & !HELD) as usize * RANGE)?;
        let mut spent = Ranges::default();
        for range in ranges.chunks_exact(RANGE) {
            let (from, to) = range.split_at(8);
            let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
            let (from, to) = (number(from)?, number(to)?);
            // In order: so adding one is quick, whatever a peer says.
            if from < spent.end() || to <= from {
                return None;
            }
            spent.add(from, to);
        }
        let standing = if count & HELD != 0 { Standing::Held } else { Standing::Pending };
        lots.insert(*id, (standing, spent));
        bytes = rest;
    }
    bytes.is_empty().then_some(lots)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Says that one holds some lots, of which nothing is spent.
    pub(in super::super) fn tell_of(lots: &[[u8; 16]], net: &mut dyn Net) -> Result<()> {
        let said = lots.iter().flat_map(|id| [&id[..], &HELD.to_le_bytes()].concat());
        exchange(&said.collect::<Vec<u8>>(), net).map(drop)
    }

    #[test]
    fn what_is_said_is_read_with_limits() {
        let lot = |ranges: u32, numbers: &[u64]| {
            let numbers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            [&[7; 16][..], &ranges.to_le_bytes(), &numbers].concat()
        };
        let said = read(&lot(2 | HELD, &[0, 5, 9, 12])).expect("read");
        let (standing, spent) = &said[&[7; 16]];
        assert!(*standing == Standing::Held && spent.iter().eq([(0, 5), (9, 12)]));
        for bad in [lot(1, &[0]), lot(1, &[5, 5]), lot(2, &[4, 9, 0, 2]), lot(u32::MAX, &[]), vec![1; 19]] {
            assert!(read(&bad).is_none(), "{bad:?}");
        }
    }
}
