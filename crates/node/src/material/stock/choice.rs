//! Which items a proposer chooses, and which claims the others follow.

use polyclave_protocol::PartySet;
use polyclave_protocol::stock::Kind;

use super::claims::{MAX_RANGES, Range};
use super::lot::{Lot, LotStatus, Refused};

/// Where a claim may leave out anything, it may have twice the ranges that this node would propose, and this
/// many more: other claims may be on their way.
const SPARE_RANGES: usize = 16;

/// The lots of a kind that can be claimed.
pub(super) fn held<'a>(lots: &'a [Lot], kind: &Kind) -> impl DoubleEndedIterator<Item = &'a Lot> + Clone {
    lots.iter().filter(move |lot| lot.kind == *kind && lot.status == LotStatus::Held)
}

/// Chooses items that were never claimed: from lots that all members hold, or else from lots that at least
/// `enough` of them hold; `None` if there are not enough. The oldest first, and in order: what was left out
/// comes first, and no lot keeps a few items for ever. Where that takes more ranges than a claim may have,
/// the longest ranges are chosen instead.
pub(super) fn choose(
    lots: &[Lot],
    kind: &Kind,
    count: u64,
    members: PartySet,
    enough: usize,
) -> Option<Vec<Range>> {
    let unspent = || of_use(held(lots, kind), members, enough).flat_map(Lot::unspent);
    let chosen = add_up(unspent(), count)?;
    if chosen.len() <= MAX_RANGES {
        return Some(chosen);
    }
    let mut by_length: Vec<Range> = unspent().collect();
    by_length.sort_by_key(|range| std::cmp::Reverse(range.to - range.from));
    add_up(by_length.into_iter(), count).filter(|chosen| chosen.len() <= MAX_RANGES)
}

/// The same from the youngest lots first, for a node that does not know what the others have spent of older
/// ones.
pub(super) fn choose_youngest(
    lots: &[Lot],
    kind: &Kind,
    count: u64,
    members: PartySet,
    enough: usize,
) -> Option<Vec<Range>> {
    let youngest = of_use(held(lots, kind).rev(), members, enough);
    add_up(youngest.flat_map(Lot::unspent), count).filter(|chosen| chosen.len() <= MAX_RANGES)
}

/// The lots that all members hold, and then those that at least `enough` of them hold.
fn of_use<'a>(
    lots: impl Iterator<Item = &'a Lot> + Clone,
    members: PartySet,
    enough: usize,
) -> impl Iterator<Item = &'a Lot> {
    let is_partly = move |lot: &&Lot| !lot.is_held_by(members) && lot.held_by(members).len() >= enough;
    lots.clone().filter(move |lot| lot.is_held_by(members)).chain(lots.filter(is_partly))
}

fn add_up(ranges: impl Iterator<Item = Range>, count: u64) -> Option<Vec<Range>> {
    let (mut chosen, mut due) = (Vec::new(), count);
    for range in ranges {
        if due == 0 {
            break;
        }
        let to = range.to.min(range.from.saturating_add(due));
        due -= to - range.from;
        chosen.push(Range { to, ..range });
    }
    (due == 0).then_some(chosen)
}

/// Judges whether to follow a claim. `hears_all`: this node hears of every claim, so it knows what is left
/// out.
pub(super) fn judge(
    lots: &[Lot],
    kind: &Kind,
    count: usize,
    ranges: &[Range],
    hears_all: bool,
) -> Result<(), Refused> {
    let mut claimed = 0_u64;
    for range in ranges {
        let lot = lots.iter().find(|lot| lot.id == range.lot && lot.kind == *kind);
        if let Some(why) = lot.ok_or(Refused::Unknown)?.refuses(range, hears_all) {
            return Err(why);
        }
        claimed = claimed.saturating_add(range.to - range.from);
    }
    let mut in_order: Vec<&Range> = ranges.iter().collect();
    in_order.sort_unstable_by_key(|range| (range.lot, range.from));
    if in_order.windows(2).any(|pair| pair[0].lot == pair[1].lot && pair[1].from < pair[0].to) {
        return Err(Refused::Repeated);
    }
    let asked = count as u64;
    if claimed == asked { Ok(()) } else { Err(Refused::Count { asked, claimed }) }
}

/// Refuses a claim with many more ranges than it needs. Otherwise a proposer could cut the stock into pieces
/// so small that the rest fits into no claim.
pub(super) fn refuse_pieces(
    lots: &[Lot],
    kind: &Kind,
    count: usize,
    ranges: &[Range],
    members: PartySet,
    enough: usize,
) -> Result<(), Refused> {
    let needed = choose(lots, kind, count as u64, members, enough).map_or(MAX_RANGES, |own| own.len());
    let (claimed, most) = (ranges.len(), 2 * needed + SPARE_RANGES);
    if claimed <= most { Ok(()) } else { Err(Refused::Pieces { claimed, most }) }
}
