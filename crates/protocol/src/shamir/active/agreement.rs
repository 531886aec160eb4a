//! Broadcast: what one party says, and all that follow the protocol come to hear alike, whoever cheats.
//!
//! Channels between two parties are private, so a party can tell its peers different things. This is the algorithm of Pease,
//! Shostak and Lamport (1980; "oral messages", Lamport, Shostak and Pease 1982) in its form as a tree of who said that who
//! said what: t + 1 rounds, for t < n/3 cheating parties in a synchronous network, where whoever says nothing in time
//! counts as saying nothing. Digests go through the tree, and afterwards whoever lacks a message gets it from those who said
//! that they have it.
//!
//! * If the sender follows the protocol, all hear what it said.
//! * In any case all that follow the protocol hear the same: a message, or nothing.
//!
//! Assumes that BLAKE3 is collision resistant.

use std::collections::BTreeMap;

use crate::net::{Gathered, Net};
use crate::{Party, PartySet, Result};

type Digest = [u8; 32];

/// Nothing, or something that no message has as its digest.
const NOTHING: Digest = [0; 32];

/// Who said that who said: parties from the last to the first, that is, from the sender on.
type Path = Vec<Party>;

/// What the parties take part in.
pub(super) struct Broadcast<'a> {
    /// The same at all of them, this one included.
    pub(super) members: PartySet,
    /// So many of them may cheat.
    pub(super) threshold: usize,
    /// The length of the message of each party; 0 for those that say nothing.
    pub(super) lens: &'a [usize],
    /// How often a network's time limit the first round waits; every later one waits once more, for those whom somebody has
    /// kept waiting in the round before.
    pub(super) patience: u32,
}

impl Broadcast<'_> {
    /// Says `mine`, and hears what all others say: by party, `None` for who says nothing. Also who is lost, and the number of
    /// rounds.
    pub(super) fn run(&self, mine: &[u8], net: &mut dyn Net) -> Result<Heard> {
        let (me, n) = (net.me(), net.parties());
        let mut messages: Vec<Vec<u8>> = Party::all(n)
            .map(|p| vec![0; if self.members.contains(p) && p != me { self.lens[p.index()] } else { 0 }])
            .collect();
        let out: Vec<&[u8]> =
            Party::all(n).map(|p| if self.members.contains(p) && p != me { mine } else { &[] }).collect();
        let mut gathered = self.gather(&out, &mut messages, 0, net)?;
        messages[me.index()] = mine.to_vec();
        let mut rounds = 1;

        let heard = |p: &Party| *p == me || gathered.arrived.contains(*p);
        let senders: Vec<Party> = self.members.iter().filter(|p| self.lens[p.index()] > 0).collect();
        let digest_of = |p: &Party| if heard(p) { digest(*p, &messages[p.index()]) } else { NOTHING };
        let mut tree: BTreeMap<Path, Digest> = senders.iter().map(|p| (vec![*p], digest_of(p))).collect();
        for depth in 1..=self.threshold {
            gathered = self.relay(depth, &mut tree, &senders, rounds, net)?;
            rounds += 1;
        }

        let agreed: Vec<Digest> = Party::all(n)
            .map(|p| if senders.contains(&p) { self.resolve(&vec![p], &tree) } else { NOTHING })
            .collect();
        let lacks = |j: Party, p: Party| tree.get(&vec![p, j]).is_some_and(|said| *said != agreed[p.index()]);
        gathered.lost =
            gathered.lost.and(self.supply(&agreed, &mut messages, &senders, &lacks, rounds, net)?);
        let fits =
            |p: Party| agreed[p.index()] != NOTHING && digest(p, &messages[p.index()]) == agreed[p.index()];
        let heard = Party::all(n).map(fits).collect::<Vec<_>>();
        let messages =
            messages.into_iter().zip(heard).map(|(message, fits)| fits.then_some(message)).collect();
        Ok(Heard { messages, lost: gathered.lost, rounds: rounds as u64 })
    }

    /// All say what they heard in the round before, of paths that they are not on.
    fn relay(
        &self,
        depth: usize,
        tree: &mut BTreeMap<Path, Digest>,
        senders: &[Party],
        round: u32,
        net: &mut dyn Net,
    ) -> Result<Gathered> {
        let (me, n) = (net.me(), net.parties());
        let paths = |without: Party| {
            self.paths(depth, senders).into_iter().filter(move |path| !path.contains(&without))
        };
        let message: Vec<u8> = paths(me).flat_map(|path| tree[&path]).collect();
        let mut messages: Vec<Vec<u8>> = Party::all(n)
            .map(|p| {
                if self.members.contains(p) && p != me { vec![0; 32 * paths(p).count()] } else { Vec::new() }
            })
            .collect();
        let out: Vec<&[u8]> = Party::all(n)
            .map(|p| if self.members.contains(p) && p != me { &message[..] } else { &[] })
            .collect();
        let gathered = self.gather(&out, &mut messages, round, net)?;
        messages[me.index()] = message;
        for p in self.members.iter() {
            let said = messages[p.index()].as_chunks::<32>().0;
            for (path, said) in paths(p).zip(said) {
                let known = p == me || gathered.arrived.contains(p);
                let longer = path.into_iter().chain([p]).collect();
                tree.insert(longer, if known { *said } else { NOTHING });
            }
        }
        Ok(gathered)
    }

    /// Paths of a length that begin with a sender: no party is on one twice.
    fn paths(&self, len: usize, senders: &[Party]) -> Vec<Path> {
        let mut paths: Vec<Path> = senders.iter().map(|p| vec![*p]).collect();
        for _ in 1..len {
            let longer = paths.iter().flat_map(|path| {
                let others = self.members.iter().filter(|p| !path.contains(p));
                others.map(|p| path.iter().copied().chain([p]).collect())
            });
            paths = longer.collect();
        }
        paths
    }

    /// What the members together say of a path: the majority of what each says, in turn, of what each says.
    fn resolve(&self, path: &Path, tree: &BTreeMap<Path, Digest>) -> Digest {
        if path.len() == self.threshold + 1 {
            return tree.get(path).copied().unwrap_or(NOTHING);
        }
        let others: Vec<Digest> = self
            .members
            .iter()
            .filter(|p| !path.contains(p))
            .map(|p| self.resolve(&path.iter().copied().chain([p]).collect(), tree))
            .collect();
        let most = |said: &&Digest| 2 * others.iter().filter(|other| other == said).count() > others.len();
        others.iter().find(most).copied().unwrap_or(NOTHING)
    }

    /// Gives every party the messages that it said it has not, or not right. Those that it may ask are they that said they have.
    fn supply(
        &self,
        agreed: &[Digest],
        messages: &mut [Vec<u8>],
        senders: &[Party],
        lacks: &dyn Fn(Party, Party) -> bool,
        round: u32,
        net: &mut dyn Net,
    ) -> Result<PartySet> {
        let (me, n) = (net.me(), net.parties());
        let wanted = |p: &&Party| agreed[p.index()] != NOTHING;
        let missing: Vec<Party> =
            senders.iter().filter(wanted).copied().filter(|p| *p != me && lacks(me, *p)).collect();
        let is_peer = |j: Party| j != me && self.members.contains(j);
        let given = |j: Party| {
            // The sender itself is asked for nothing: it may have said another thing to everybody.
            let theirs = senders.iter().filter(wanted).filter(|p| ![j, me].contains(p) && lacks(j, **p));
            theirs
                .filter(|p| !missing.contains(p))
                .flat_map(|p| messages[p.index()].clone())
                .collect::<Vec<u8>>()
        };
        let out: Vec<Vec<u8>> =
            Party::all(n).map(|j| if is_peer(j) { given(j) } else { Vec::new() }).collect();
        let from = |j: Party| missing.iter().filter(move |p| is_peer(j) && **p != j && !lacks(j, **p));
        let mut supplied: Vec<Vec<u8>> =
            Party::all(n).map(|j| vec![0; from(j).map(|p| self.lens[p.index()]).sum()]).collect();
        let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        let gathered = self.gather(&out, &mut supplied, round, net)?;
        for j in gathered.arrived.iter() {
            let mut rest = &supplied[j.index()][..];
            for p in from(j) {
                let (message, others) = rest.split_at(self.lens[p.index()]);
                rest = others;
                if digest(*p, message) == agreed[p.index()] {
                    messages[p.index()] = message.to_vec();
                }
            }
        }
        Ok(gathered.lost)
    }

    fn gather(&self, out: &[&[u8]], into: &mut [Vec<u8>], round: u32, net: &mut dyn Net) -> Result<Gathered> {
        let mut into: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
        net.gather(out, &mut into, self.patience + round, &mut |_, _| false)
    }
}

/// What came of a broadcast.
pub(super) struct Heard {
    /// By party.
    pub(super) messages: Vec<Option<Vec<u8>>>,
    /// Peers that were given up.
    pub(super) lost: PartySet,
    pub(super) rounds: u64,
}

fn digest(sender: Party, message: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 shamir broadcast");
    *hasher.update(&[sender.0]).update(message).finalize().as_bytes()
}
