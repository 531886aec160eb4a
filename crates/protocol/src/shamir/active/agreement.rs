//! Broadcast: one party sends a message, and all parties that follow the protocol receive the same message,
//! even if parties cheat.
//!
//! Channels between two parties are private, so a party can tell its peers different things. This is the
//! algorithm of Pease, Shostak and Lamport (1980; "oral messages", Lamport, Shostak and Pease 1982) in its
//! form as a tree of relayed statements ("p says that q said"). It takes t + 1 rounds, for t < n/3 cheating
//! parties in a synchronous network, in which a party that sends nothing in time counts as saying nothing.
//! Digests go through the tree. Then all parties tell all others what they received, for those that lack a
//! message.
//!
//! * If the sender follows the protocol, all parties receive what it sent.
//! * In any case all parties that follow the protocol receive the same: a message, or nothing.
//!
//! In the last round of the tree, and after it, nobody waits for a cheater: each party ends when what is
//! still to come cannot change the result, and the messages of honest parties are enough for that. (For an
//! honest sender, the paths that are still missing then hold cheaters' statements only, which are a minority.
//! For a cheating sender, the paths that end with an honest party are there.) In the rounds before, a party
//! that waits for a cheater falls behind the others by that time. So each round is patient with parties that
//! are behind, and its limit is one longer.
//!
//! Assumes that BLAKE3 is collision resistant.

use std::collections::BTreeMap;

use crate::interface::net::{Gathered, Net, Patience};
use crate::{Party, PartySet, Result};

type Digest = [u8; 32];

/// Nothing, or something that no message has as its digest.
const NOTHING: Digest = [0; 32];

/// The way that a message took: the sender first, then the parties that relayed it, in order.
type Path = Vec<Party>;

/// What the parties take part in.
pub(crate) struct Broadcast<'a> {
    /// The same at all of them, this one included.
    pub(crate) members: PartySet,
    /// How many of them may cheat.
    pub(crate) threshold: usize,
    /// The length of the message of each party; 0 for those that say nothing.
    pub(crate) lens: &'a [usize],
    /// How long a member that follows the protocol may still have been waiting for one that does not.
    pub(crate) behind: Patience,
}

impl Broadcast<'_> {
    /// Broadcasts `mine`, and returns what all others broadcast, by party; `None` for a party that sends
    /// nothing. Also returns which parties are lost, and the number of rounds.
    pub(crate) fn run(&self, mine: &[u8], net: &mut dyn Net) -> Result<Heard> {
        let (me, n) = (net.me(), net.parties());
        let mut messages: Vec<Vec<u8>> = Party::all(n)
            .map(|p| vec![0; if self.members.contains(p) && p != me { self.lens[p.index()] } else { 0 }])
            .collect();
        let out: Vec<&[u8]> =
            Party::all(n).map(|p| if self.members.contains(p) && p != me { mine } else { &[] }).collect();
        let mut behind = self.behind;
        let mut gathered = gather(&out, &mut messages, behind, net, &mut |_, _| false)?;
        behind = one_round_more(behind, self.lens.iter().copied().max().unwrap_or(0));
        messages[me.index()] = mine.to_vec();
        let mut rounds = 1;

        let heard = |p: &Party| *p == me || gathered.arrived.contains(*p);
        let senders: Vec<Party> = self.members.iter().filter(|p| self.lens[p.index()] > 0).collect();
        let digest_of = |p: &Party| if heard(p) { digest(*p, &messages[p.index()]) } else { NOTHING };
        let mut tree: BTreeMap<Path, Digest> = senders.iter().map(|p| (vec![*p], digest_of(p))).collect();
        for depth in 1..=self.threshold {
            gathered = self.relay(depth, &mut tree, &senders, behind, net)?;
            rounds += 1;
            if depth < self.threshold {
                behind = one_round_more(behind, size_of::<Digest>() * self.paths(depth, &senders).len());
            }
        }

        let agreed: Vec<Digest> = Party::all(n)
            .map(|p| if senders.contains(&p) { self.resolve(&vec![p], &tree) } else { NOTHING })
            .collect();
        let lost = self.supply(&agreed, &mut messages, &senders, behind, net)?;
        gathered.lost = gathered.lost.and(lost);
        let fits =
            |p: Party| agreed[p.index()] != NOTHING && digest(p, &messages[p.index()]) == agreed[p.index()];
        let heard = Party::all(n).map(fits).collect::<Vec<_>>();
        let messages =
            messages.into_iter().zip(heard).map(|(message, fits)| fits.then_some(message)).collect();
        Ok(Heard { messages, lost: gathered.lost, rounds, behind })
    }

    /// All parties relay what they received in the round before, for the paths that they are not on.
    fn relay(
        &self,
        depth: usize,
        tree: &mut BTreeMap<Path, Digest>,
        senders: &[Party],
        behind: Patience,
        net: &mut dyn Net,
    ) -> Result<Gathered> {
        let (me, n) = (net.me(), net.parties());
        let paths = |without: Party| {
            self.paths(depth, senders).into_iter().filter(move |path| !path.contains(&without))
        };
        let message: Vec<u8> =
            paths(me).flat_map(|path| tree.get(&path).copied().unwrap_or(NOTHING)).collect();
        let mut messages: Vec<Vec<u8>> = Party::all(n)
            .map(|p| {
                if self.members.contains(p) && p != me { vec![0; 32 * paths(p).count()] } else { Vec::new() }
            })
            .collect();
        let out: Vec<&[u8]> = Party::all(n)
            .map(|p| if self.members.contains(p) && p != me { &message[..] } else { &[] })
            .collect();
        let add = |tree: &mut BTreeMap<Path, Digest>, p: Party, said: &[u8]| {
            for (path, said) in paths(p).zip(said.as_chunks::<32>().0) {
                tree.insert(path.into_iter().chain([p]).collect(), *said);
            }
        };
        add(tree, me, &message);
        let is_last = depth == self.threshold;
        gather(&out, &mut messages, behind, net, &mut |arrived, messages| {
            arrived.iter().for_each(|p| add(tree, p, messages[p.index()]));
            is_last && senders.iter().all(|p| self.settled(&vec![*p], tree).is_some())
        })
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

    /// The members' joint statement about a path: the majority of their statements, each resolved in the same
    /// way. A member that has sent nothing counts as saying that it received nothing.
    fn resolve(&self, path: &Path, tree: &BTreeMap<Path, Digest>) -> Digest {
        if path.len() == self.threshold + 1 {
            return tree.get(path).copied().unwrap_or(NOTHING);
        }
        let said: Vec<Digest> = self.longer(path).map(|path| self.resolve(&path, tree)).collect();
        majority(&said, said.len()).unwrap_or(NOTHING)
    }

    /// The same, if it does not depend on messages that are still to come.
    fn settled(&self, path: &Path, tree: &BTreeMap<Path, Digest>) -> Option<Digest> {
        if path.len() == self.threshold + 1 {
            return tree.get(path).copied();
        }
        let all: Vec<Option<Digest>> = self.longer(path).map(|path| self.settled(&path, tree)).collect();
        let said: Vec<Digest> = all.iter().flatten().copied().collect();
        majority(&said, all.len()).or((said.len() == all.len()).then_some(NOTHING))
    }

    /// The path with every member at its end that is not on it.
    fn longer(&self, path: &Path) -> impl Iterator<Item = Path> {
        let others = self.members.iter().filter(|p| !path.contains(p));
        others.map(|p| path.iter().copied().chain([p]).collect())
    }

    /// All parties pass on to all others the messages of the senders that they have. A party that lacks a
    /// message takes it from there. A party that lacks none does not wait.
    fn supply(
        &self,
        agreed: &[Digest],
        messages: &mut [Vec<u8>],
        senders: &[Party],
        behind: Patience,
        net: &mut dyn Net,
    ) -> Result<PartySet> {
        let (me, n) = (net.me(), net.parties());
        let is_peer = |j: Party| j != me && self.members.contains(j);
        let mine: Vec<u8> = senders.iter().flat_map(|p| messages[p.index()].clone()).collect();
        let right = |p: Party, message: &[u8]| digest(p, message) == agreed[p.index()];
        let lacking = |p: &&Party| agreed[p.index()] != NOTHING && !right(**p, &messages[p.index()]);
        let mut missing: Vec<Party> = senders.iter().filter(lacking).copied().collect();
        let mut supplied: Vec<Vec<u8>> =
            Party::all(n).map(|j| vec![0; if is_peer(j) { mine.len() } else { 0 }]).collect();
        let out: Vec<&[u8]> = Party::all(n).map(|j| if is_peer(j) { &mine[..] } else { &[] }).collect();
        let gathered = gather(&out, &mut supplied, behind, net, &mut |arrived, supplied| {
            for j in arrived.iter() {
                let mut rest = &*supplied[j.index()];
                for p in senders {
                    let (message, others) = rest.split_at(self.lens[p.index()]);
                    rest = others;
                    if missing.contains(p) && right(*p, message) {
                        messages[p.index()] = message.to_vec();
                        missing.retain(|other| other != p);
                    }
                }
            }
            missing.is_empty()
        })?;
        Ok(gathered.lost)
    }
}

/// Waits for one limit more than others may be behind.
fn gather(
    out: &[&[u8]],
    into: &mut [Vec<u8>],
    behind: Patience,
    net: &mut dyn Net,
    enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
) -> Result<Gathered> {
    let mut into: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    net.gather(out, &mut into, one_round_more(behind, 0), enough)
}

/// How far others may be behind after a round in which a party may have waited in vain for a message of
/// `bytes` bytes.
fn one_round_more(behind: Patience, bytes: usize) -> Patience {
    Patience { limits: behind.limits + 1, bytes: behind.bytes + bytes as u64 }
}

/// The statement of more than half of `of` parties.
fn majority(said: &[Digest], of: usize) -> Option<Digest> {
    let most = |one: &&Digest| 2 * said.iter().filter(|other| other == one).count() > of;
    said.iter().find(most).copied()
}

/// The result of a broadcast.
pub(crate) struct Heard {
    /// By party.
    pub(crate) messages: Vec<Option<Vec<u8>>>,
    /// Peers that were given up.
    pub(crate) lost: PartySet,
    pub(crate) rounds: u64,
    /// How far members may be behind now.
    pub(crate) behind: Patience,
}

fn digest(sender: Party, message: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 shamir broadcast");
    *hasher.update(&[sender.0]).update(message).finalize().as_bytes()
}
