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
//! A proposer that says that the stock is dry while others could take of it is the cause of a refusal, as is one whose claim does not
//! fit: it may have started again, and the client asks the others.

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::claims::{Range, encode, hear};
use super::{Lots, held, judge};
use crate::Result;

/// What a node says that has taken nothing.
const NOTHING: [u8; 32] = [0; 32];

/// How long a peer has to be silent.
const PATIENCE: Patience = Patience::of(1);

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
        let claim = if proposer == me {
            self.propose_to_members(kind, count, quorum, net)
        } else {
            self.follow_proposer(proposer, kind, count, quorum, net)
        };
        let digest = claim.as_ref().map_or(NOTHING, |(ranges, _)| self.digest(kind, count, ranges));
        let agreed = confirm(&digest, quorum, net)?;
        let (ranges, items) = claim?;
        if !agreed {
            let detail = "other nodes took other material, or none".into();
            return Err(Error::Peer { peer: proposer, detail });
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
        net: &mut dyn Net,
    ) -> Result<Taken> {
        let misfit = |detail: String| Error::Peer { peer: proposer, detail };
        let ranges = hear(proposer, &self.epoch, net).map_err(|e| match e {
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
        judge(&lots, kind, count, &ranges, false).map_err(|why| misfit(why.to_string()))?;
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
        let lots = self.lock();
        let enough = held(&lots, kind).filter(|lot| lot.held_by(members).len() >= quorum);
        enough.map(|lot| lot.ahead()).sum::<u64>() >= count as u64
    }
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

/// Whether so many nodes took the same as this one.
fn confirm(mine: &[u8; 32], quorum: usize, net: &mut dyn Net) -> Result<bool> {
    let out = to_peers(mine, net);
    let mut theirs = vec![[0; 32]; out.len()];
    let awaited = if *mine == NOTHING { PartySet::default() } else { net.members() };
    let (me, mut agreed) = (net.me(), false);
    let mut into: Vec<&mut [u8]> = Party::all(out.len())
        .zip(&mut theirs)
        .map(|(p, buffer)| if p != me && awaited.contains(p) { &mut buffer[..] } else { &mut [][..] })
        .collect();
    net.gather(&out, &mut into, PATIENCE, &mut |arrived, into| {
        agreed = 1 + arrived.iter().filter(|p| *into[p.index()] == mine[..]).count() >= quorum;
        agreed
    })?;
    Ok(agreed)
}

fn to_peers<'m>(message: &'m [u8], net: &dyn Net) -> Vec<&'m [u8]> {
    let (me, members) = (net.me(), net.members());
    let to = |p: Party| if p != me && members.contains(p) { message } else { &[][..] };
    Party::all(net.parties()).map(to).collect()
}
