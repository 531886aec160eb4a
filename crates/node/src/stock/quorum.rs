//! Taking from the stock among some of the nodes, of which some may cheat.
//!
//! The lowest node that serves proposes; the others judge its claim and mark and take the items, or not. Then every node tells
//! every other what it has taken, and uses it only if so many took the same that any two choices of so many have a node in
//! common that does not cheat ([`least_servers`](polyclave_protocol::service::ServiceScheme::least_servers)).
//!
//! # Why nobody uses an item in two sessions
//!
//! Nodes that use one item in different sessions, even each of them once, would give away how what they hid under it differs: who
//! knows t shares can compute all others from one. Say i uses it in one session, and j in another. Those who told i the same,
//! and those who told j, have a node in common that does not cheat; it gives an item to one session only. So it cannot be, whoever
//! proposes, and whatever a proposer tells to whom. Who took what and uses nothing has lost it: it is wiped.
//!
//! # What cannot be taken from whom
//!
//! A proposer may leave out whatever it likes, and what it leaves out serves the next one that proposes; to leave out much in many
//! small pieces is refused. A node that was away, or was told other things, proposes items that the others have spent. Who
//! refuses a claim says which items in a row it has spent there, and what so many say that too few are left to use it is wiped at the
//! proposer, so that it comes to where the others are; all is compared before material is made ([`census`](super::census)).
//!
//! A proposer that says that the stock is dry while others could take of it is the cause of a refusal, as is one whose claim does not
//! fit: it may have started again, and the client asks the others.

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Lots;
use super::choice::{choose, judge, refuse_pieces};
use super::claims::{RANGE, Range, encode, hear};
use super::lot::Lot;
use super::ranges::Ranges;
use crate::Result;

/// What a node says that has taken nothing.
const NOTHING: [u8; 32] = [0; 32];

/// No items.
const NONE: Range = Range { lot: [0; 16], from: 0, to: 0 };

/// How long a peer has to be silent. Longer than an honest one is late that was held up before, and short enough for openings to follow.
const PATIENCE: Patience = Patience::of(3);

impl Lots {
    /// Takes items that `quorum` nodes take, this one included.
    pub(super) fn take_with_quorum(
        &self,
        kind: &Kind,
        count: usize,
        quorum: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let me = net.me();
        let proposer = net.members().iter().next().unwrap_or(me);
        let mut conflict = NONE;
        let claim = if proposer == me {
            self.propose_to_members(kind, count, quorum, net)
        } else {
            self.follow_proposer(proposer, kind, count, quorum, &mut conflict, net)
        };
        let digest = claim.as_ref().map_or(NOTHING, |(ranges, _)| self.digest(kind, count, ranges));
        let (agreed, conflicts, silent) = confirm(&digest, &conflict, quorum, net)?;
        if proposer == me && !agreed {
            self.learn(kind, quorum, &conflicts);
        }
        let (ranges, items) = claim?;
        if !agreed {
            // Whoever proposed, if somebody is missing it is not known what it would have said.
            return Err(match silent.iter().next() {
                Some(peer) => Error::Closed { peer, detail: "it did not say which material it took".into() },
                None => {
                    let detail = "other nodes took other material, or none".into();
                    Error::Peer { peer: proposer, detail }
                }
            });
        }
        // All that take the same come to it.
        if ranges.is_empty() { Err(self.dry(kind, count)) } else { Ok(items) }
    }

    fn propose_to_members(
        &self,
        kind: &Kind,
        count: usize,
        quorum: usize,
        net: &mut dyn Net,
    ) -> Result<Taken> {
        let members = net.members();
        let proposed = self.propose(kind, count, members, quorum)?.unwrap_or_default();
        for message in encode(&self.epoch, &proposed.0) {
            tell(&message, net)?;
        }
        Ok(proposed)
    }

    fn follow_proposer(
        &self,
        proposer: Party,
        kind: &Kind,
        count: usize,
        quorum: usize,
        conflict: &mut Range,
        net: &mut dyn Net,
    ) -> Result<Taken> {
        let misfit = |detail: String| Error::Peer { peer: proposer, detail };
        let ranges = hear(proposer, &self.epoch, PATIENCE, net).map_err(|e| match e {
            Error::System(detail) => misfit(detail),
            other => other,
        })?;
        if ranges.is_empty() {
            return match self.has(kind, count, net.members(), quorum) {
                true => Err(misfit("it says that the stock is dry, which it is not here".into())),
                false => Ok(Taken::default()),
            };
        }
        let mut lots = self.lock();
        judge(&lots, kind, count, &ranges, false)
            .and_then(|()| refuse_pieces(&lots, kind, count, &ranges, net.members(), quorum))
            .map_err(|why| {
                *conflict = first_conflict(&lots, kind, &ranges);
                misfit(why.to_string())
            })?;
        let items = self.spend(&mut lots, &ranges, count * kind.item_bytes)?;
        Ok((ranges, items))
    }

    /// What is claimed of what.
    pub(super) fn digest(&self, kind: &Kind, count: usize, ranges: &[Range]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 claim of material");
        hasher.update(&(kind.name.len() as u64).to_le_bytes()).update(kind.name.as_bytes());
        hasher.update(&(count as u64).to_le_bytes());
        encode(&self.epoch, ranges).iter().for_each(|message| {
            hasher.update(message);
        });
        hasher.finalize().into()
    }

    /// Whether so many of some nodes could take so much.
    fn has(&self, kind: &Kind, count: usize, members: PartySet, quorum: usize) -> bool {
        choose(&self.lock(), kind, count as u64, members, quorum).is_some()
    }

    /// A claim was refused: wipes what too few of the others have left.
    fn learn(&self, kind: &Kind, quorum: usize, conflicts: &[Range]) {
        let spent = |lot: &Lot| {
            let of_lot = conflicts.iter().filter(|range| range.lot == lot.id);
            let as_set = |range: &Range| {
                let mut set = Ranges::default();
                set.add(range.from, range.to.min(lot.count()));
                set
            };
            of_lot.map(as_set).collect::<Vec<_>>()
        };
        // A proposer has heard of no claim of them that it could still follow.
        let mut lots = self.lock();
        for lot in lots.iter_mut().filter(|lot| lot.kind == *kind) {
            let useless = Ranges::in_at_least(self.nodes - quorum + 1, &spent(lot));
            lot.lose(&useless);
        }
        lots.retain(|lot| lot.left() > 0);
    }
}

/// Of the first range of a claim that cannot be taken: the spent items that it meets, in a row. All, of a lot that is not here.
fn first_conflict(lots: &[Lot], kind: &Kind, ranges: &[Range]) -> Range {
    let met = |range: &Range| {
        let lot = range.lot;
        match lots.iter().find(|lot| lot.id == range.lot && lot.kind == *kind) {
            Some(here) => {
                here.spent().first_met(range.from, range.to).map(|(from, to)| Range { lot, from, to })
            }
            None => Some(Range { lot, from: 0, to: u64::MAX }),
        }
    };
    ranges.iter().find_map(met).unwrap_or(NONE)
}

/// Ranges, none if the stock is dry, and the items.
type Taken = (Vec<Range>, Zeroizing<Vec<u8>>);

/// Sends all peers the same. One that takes nothing is missing from those who confirm.
fn tell(message: &[u8], net: &mut dyn Net) -> Result<()> {
    if !message.is_empty() {
        let out = to_peers(message, net);
        let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        net.gather(&out, &mut nothing, PATIENCE, &mut |_, _| true)?;
    }
    Ok(())
}

/// Whether so many nodes took the same as this one, which items others say to have spent, and who fell silent.
fn confirm(
    mine: &[u8; 32],
    conflict: &Range,
    quorum: usize,
    net: &mut dyn Net,
) -> Result<(bool, Vec<Range>, PartySet)> {
    let message = [&mine[..], &conflict.encode()].concat();
    let out = to_peers(&message, net);
    let mut theirs = vec![[0; 32 + RANGE]; out.len()];
    let awaited = if *mine == NOTHING { PartySet::default() } else { net.members() };
    let (me, mut agreed) = (net.me(), false);
    let mut into: Vec<&mut [u8]> = Party::all(out.len())
        .zip(&mut theirs)
        .map(|(p, buffer)| if p != me && awaited.contains(p) { &mut buffer[..] } else { &mut [][..] })
        .collect();
    let gathered = net.gather(&out, &mut into, PATIENCE, &mut |arrived, into| {
        agreed = 1 + arrived.iter().filter(|p| into[p.index()][..32] == mine[..]).count() >= quorum;
        agreed
    })?;
    let conflicts = gathered.arrived.iter().map(|p| Range::decode(&theirs[p.index()][32..])).collect();
    Ok((agreed, conflicts, gathered.lost))
}

fn to_peers<'m>(message: &'m [u8], net: &dyn Net) -> Vec<&'m [u8]> {
    let (me, members) = (net.me(), net.members());
    let to = |p: Party| if p != me && members.contains(p) { message } else { &[][..] };
    Party::all(net.parties()).map(to).collect()
}
