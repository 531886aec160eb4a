//! Joint messages: who tells what to whom, the digests by which a second party vouches for them, and what a
//! party remembers of them until the verdict.
//!
//! **At once.** The party that is told compares a message with the digest of the second party in the same
//! round, before it computes anything from it. If they do not fit, or one of them did not come, the party
//! **stops**: it sends zeros until the verdict. Were digests compared later, a cheater could tell a party
//! something wrong and then be told, by that party, a product of the error with a component that the cheater
//! lacks; the digest of the second party, which knows the right product, would show it whether the two are
//! equal, and let it try values of the difference.
//!
//! So every message that a party which follows the protocol sends is either right or zero. A digest tells its
//! receiver nothing beside the message itself. It is keyed with the key of the component that is told, which
//! the three parties of the message have and the fourth lacks: the fourth knows the mask, and hears the
//! digests that are broadcast for a verdict.

use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::Setup;
use super::PARTIES;
use super::keys::{Components, Purpose, keys, place};
use crate::Party;
use crate::interface::session::Stream;

pub(super) const DIGEST_BYTES: usize = 32;
pub(super) type Digest = [u8; DIGEST_BYTES];

/// A stream of joint messages: component `kept` is told to the party `told`, which lacks part of it. One of
/// the two other parties tells it, and the second vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) told: Party,
    pub(super) kept: Party,
    pub(super) teller: Party,
    pub(super) second: Party,
}

/// Number of [`Line`]s.
pub(super) const LINES: usize = PARTIES * (PARTIES - 1);

impl Line {
    /// All of them, in the order of their numbers. Each party tells each other one thing in a round.
    pub(super) fn all() -> impl Iterator<Item = Line> {
        Party::all(PARTIES).flat_map(|told| {
            let others: Vec<Party> = told.peers(PARTIES).collect();
            (0..others.len()).map(move |at| Line {
                told,
                kept: others[at],
                teller: others[(at + 1) % others.len()],
                second: others[(at + 2) % others.len()],
            })
        })
    }
}

/// A message that did not fit its digest: in a round since the last verdict, on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fault {
    pub(super) round: u32,
    pub(super) line: u8,
}

/// What a party says about a fault: digests of the message that it told or vouched for, or of the one that it
/// was told and of the one that was vouched for.
pub(super) type Testimony = [Digest; 2];

/// What one party remembers since the last verdict.
pub(super) struct Transcript {
    me: Party,
    keys: Components<Zeroizing<[u8; DIGEST_BYTES]>>,
    /// By line that this party tells or vouches for, a digest for each round.
    digests: Vec<Vec<Digest>>,
    round: u32,
    /// Rounds since the session began: so that no message stands for another.
    number: u64,
    /// Whether this party computes no more, because something was wrong or did not come.
    has_stopped: bool,
    fault: Option<(Fault, Testimony)>,
}

impl Transcript {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Transcript {
        let keys = keys(setup, stream, Purpose::Transcript);
        let digests = vec![Vec::new(); LINES];
        Transcript {
            me: setup.keys.me(),
            keys,
            digests,
            round: 0,
            number: 0,
            has_stopped: false,
            fault: None,
        }
    }

    /// The digest of a message of this round that this party tells or vouches for.
    pub(super) fn vouch(&mut self, number: usize, line: &Line, message: &[u8]) -> Digest {
        let digest = self.digest(number, line, message);
        self.digests[number].push(digest);
        digest
    }

    /// Compares what this party was told in this round with what the second party vouches for. If they differ
    /// it stops.
    pub(super) fn compare(&mut self, number: usize, line: &Line, message: &[u8], vouched: &Digest) {
        let told = self.digest(number, line, message);
        if !ct_eq(&told, vouched) {
            self.stop();
            let fault = Fault { round: self.round, line: number as u8 };
            self.fault.get_or_insert((fault, [told, *vouched]));
        }
    }

    /// From now on this party computes nothing from what it has.
    pub(super) fn stop(&mut self) {
        self.has_stopped = true;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    fn digest(&self, number: usize, line: &Line, message: &[u8]) -> Digest {
        let key = &self.keys[place(self.me, line.kept).expect("the fourth party takes no part in a line")];
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&self.number.to_le_bytes()).update(&[number as u8]);
        hasher.update(&(message.len() as u64).to_le_bytes()).update(message);
        *hasher.finalize().as_bytes()
    }

    /// Ends a round.
    pub(super) fn next_round(&mut self) {
        self.round += 1;
        self.number += 1;
    }

    /// Number of rounds since the last verdict.
    pub(super) fn rounds(&self) -> u32 {
        self.round
    }

    /// The first message that did not fit.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.map(|(fault, _)| fault)
    }

    /// What this party says about a fault.
    pub(super) fn testimony(&self, about: Fault) -> Testimony {
        match self.fault {
            Some((fault, testimony)) if fault == about => testimony,
            _ => {
                let digest = self.digests[usize::from(about.line)].get(about.round as usize);
                [digest.copied().unwrap_or_default(), Digest::default()]
            }
        }
    }

    /// Forgets the rounds, after a verdict.
    pub(super) fn forget(&mut self) {
        self.digests.iter_mut().for_each(Vec::clear);
        (self.round, self.has_stopped, self.fault) = (0, false, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_party_tells_each_other_one_line_and_vouches_for_as_many() {
        let lines: Vec<Line> = Line::all().collect();
        assert_eq!(lines.len(), LINES);
        for line in &lines {
            let mut all = vec![line.told, line.kept, line.teller, line.second];
            all.sort_unstable();
            assert_eq!(all, Party::all(PARTIES).collect::<Vec<_>>());
        }
        for teller in Party::all(PARTIES) {
            for told in teller.peers(PARTIES) {
                let count = |f: fn(&Line) -> Party| {
                    lines.iter().filter(|line| f(line) == teller && line.told == told).count()
                };
                assert_eq!([count(|line| line.teller), count(|line| line.second)], [1, 1]);
            }
        }
    }
}
