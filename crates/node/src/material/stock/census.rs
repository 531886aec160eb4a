//! The comparison of what each node still holds, before the nodes make more of a kind. For protocols that
//! correct wrong shares.
//!
//! A node does not hear of claims in sessions that it does not serve, so it keeps items that are spent
//! elsewhere. They would count as stock, and as a proposer the node would claim them in vain. An item is used
//! only if a quorum takes it ([`quorum`](super::quorum)). So an item that fewer nodes hold is of no use and
//! is wiped. A node that lies that it has spent an item could have refused the item anyway. A node that lies
//! that it holds an item can only keep it here: what counts is whether a quorum holds it, including this
//! node.
//!
//! # Room
//!
//! Usable material is not given up for new material. Otherwise a leader of fills could make all nodes give up
//! all they have and then fall silent. There is one exception: lots that a node has lost by starting again.
//! They serve in an emergency, and would accumulate with every start. The oldest of them is dropped if a full
//! level remains in other lots on which every node has just said that it relies, not counting the nodes that
//! lost them. A node that lies here makes another node keep more, or keep items that only the liar denies. It
//! can never make another node give up the last lots that honest nodes have in common.

use std::collections::HashMap;
use std::time::Duration;

use polyclave_protocol::net::Net;
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};

use super::lot::{Lot, LotStatus};
use super::ranges::Ranges;
use super::{Lots, held};
use crate::Result;
use crate::peers::exchange::tell_all;

/// The most bytes that a node says. Beyond, it leaves out which items of its youngest lots are spent.
const MAX_BYTES: usize = 4 << 20;

/// Items that others have spent are wiped here once a comparison this long ago showed the same. The others do
/// not wait for a node that is behind, and the same claims may still be on their way to it.
pub(super) const ON_ITS_WAY: Duration =
    if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(20) };

const LOT: usize = 16 + 4;
const RANGE: usize = 8 + 8;
/// Flag in the count of ranges of a lot: all nodes are known to hold it.
const HELD: u32 = 1 << 31;

/// What a node says about the lots that it has.
type Inventory = HashMap<[u8; 16], (LotStatus, Ranges)>;

impl Lots {
    /// Compares the stock of a kind, wipes what is of no use, and makes room for more: at most twice the
    /// level may be left.
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

    /// Wipes items that too few nodes hold, by what others have spent of each lot, once no claim of them can
    /// still be on its way.
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
                !lot.holders().contains(*party) || matches!(said.get(&lot.id), Some((LotStatus::Held, _)))
            };
            inventories.iter().all(counts_on_it)
        };
        loop {
            let left: u64 = lots.iter().filter(|lot| lot.kind == *kind).map(Lot::of_use).sum();
            // With this limit and one run more, a full level is always in lots that no node lost, however
            // small the level.
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
                        "the first node ordered more material than this node keeps: it has {left} {name}, and its level is {level}"
                    )));
                }
            }
        }
    }

    /// What this node has of a kind.
    fn inventory(&self, kind: &Kind) -> Vec<u8> {
        let lots = self.lock();
        let of_kind = || lots.iter().filter(|lot| lot.kind == *kind);
        let mut room = MAX_BYTES.saturating_sub(of_kind().count() * LOT);
        let mut said = Vec::new();
        for lot in of_kind() {
            // Leaving out what is spent only means that others keep it.
            let ranges = if lot.spent().pieces() * RANGE <= room { lot.spent().pieces() } else { 0 };
            room -= ranges * RANGE;
            let held = if lot.status == LotStatus::Held { HELD } else { 0 };
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

/// Sends this node's inventory to all, and returns theirs.
fn exchange(mine: &[u8], net: &mut dyn Net) -> Result<Vec<(Party, Inventory)>> {
    let lengths = tell_all(&(mine.len() as u32).to_le_bytes(), net)?;
    let mut theirs = vec![Vec::new(); net.parties()];
    for (peer, length) in &lengths {
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_BYTES {
            return Err(Error::Peer {
                peer: *peer,
                detail: format!("its list of what it holds has {length} bytes"),
            });
        }
        theirs[peer.index()] = vec![0; length];
    }
    let to = |p: Party| if lengths.iter().any(|(peer, _)| *peer == p) { mine } else { &[][..] };
    let out: Vec<&[u8]> = Party::all(net.parties()).map(to).collect();
    net.exchange(&out, &mut theirs.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    let read = |(peer, _): &(Party, [u8; 4])| {
        let misfit = || Error::Peer { peer: *peer, detail: "its list of what it holds is cut off".into() };
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
            // Ranges come in order, so adding one is fast for any message of a peer.
            if from < spent.end() || to <= from {
                return None;
            }
            spent.add(from, to);
        }
        let status = if count & HELD != 0 { LotStatus::Held } else { LotStatus::Pending };
        lots.insert(*id, (status, spent));
        bytes = rest;
    }
    bytes.is_empty().then_some(lots)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An inventory that says that a node holds some lots and has spent nothing.
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
        let (status, spent) = &said[&[7; 16]];
        assert!(*status == LotStatus::Held && spent.iter().eq([(0, 5), (9, 12)]));
        for bad in [lot(1, &[0]), lot(1, &[5, 5]), lot(2, &[4, 9, 0, 2]), lot(u32::MAX, &[]), vec![1; 19]] {
            assert!(read(&bad).is_none(), "{bad:?}");
        }
    }
}
