//! Joint messages: who tells what to whom, the tags by which a second party vouches for them, and what a
//! party remembers of them until the verdict.
//!
//! **At once.** The party that is told compares a message with the tag of the second party in the same round,
//! before it computes anything from it. If they do not fit, or one of them did not come, the party **stops**:
//! it sends zeros until the verdict. Were they compared later, a cheater could tell a party something wrong
//! and then be told, by that party, a product of the error with a component that the cheater lacks; the tag
//! of the second party, which knows the right product, would show it whether the two are equal, and let it
//! try values of the difference.
//!
//! So every message that a party which follows the protocol sends is either right or zero. Tags are under
//! keys that the teller lacks: they come from the component which it does not hold. The party told and the
//! second have them, and one tag under each ([`super::tag`]). A tag tells its receiver nothing beside the
//! message itself.
//!
//! **For a verdict** the three parties of a message that did not fit broadcast its digest. The teller has no
//! key of tags, so the digest is a hash. It is keyed with the key of the component that is told, which these
//! three have and the fourth lacks: the fourth knows the mask, and hears the digests. Until the verdict a
//! party keeps the messages that it told or vouched for, and computes a digest only if it has to.

use std::ops::Range;

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::Setup;
use super::keys::{Components, Purpose, generators, keys, place};
use super::tag::{TAG_BYTES, Tag, tag};
use super::{COMPONENTS, PARTIES};
use crate::Party;
use crate::interface::session::Stream;
use crate::pool::Shares;

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

    /// Which part of a sum of this length goes along the line.
    pub(super) fn part(&self, len: usize) -> Range<usize> {
        let half = len.div_ceil(2);
        if self.told > self.kept { 0..half } else { half..len }
    }

    /// At a party that tells or vouches: which sum its message is of, and which part of it.
    pub(super) fn message_at(&self, me: Party, len: usize) -> (usize, Range<usize>) {
        let [kept, told] = [self.kept, self.told]
            .map(|component| place(me, component).expect("another party's component is held"));
        (COMPONENTS - kept - told, self.part(len))
    }
}

/// A message that did not fit its tag: in a round since the last verdict, on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fault {
    pub(super) round: u32,
    pub(super) line: u8,
}

/// The sums of which the messages of a round are parts, by the component that is not in the pair, among those
/// that this party has.
pub(super) type Sums = Components<Shares>;

/// What one party remembers since the last verdict.
pub(super) struct Transcript {
    me: Party,
    keys: Components<Zeroizing<[u8; DIGEST_BYTES]>>,
    /// Keys of tags, by the component from which they come: a key for each line of its teller in a round.
    tag_keys: Components<AesPrg>,
    /// Those of this round, by line; 0 where this party is the teller.
    of_lines: Zeroizing<[Tag; LINES]>,
    /// The sums of each round, at a party that has not stopped.
    sums: Vec<Sums>,
    round: u32,
    /// Rounds since the session began: so that no message stands for another.
    number: u64,
    /// Whether this party computes no more, because something was wrong or did not come.
    has_stopped: bool,
    /// The first message that did not fit, and its digest.
    fault: Option<(Fault, Digest)>,
}

impl Transcript {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Transcript {
        let keys = keys(setup, stream, Purpose::Transcript);
        Transcript {
            me: setup.keys.me(),
            keys,
            tag_keys: generators(setup, stream, Purpose::Tag),
            of_lines: Zeroizing::default(),
            sums: Vec::new(),
            round: 0,
            number: 0,
            has_stopped: false,
            fault: None,
        }
    }

    /// Draws the keys of a round's tags.
    pub(super) fn begin_round(&mut self) {
        let mut drawn = Zeroizing::new([0; TAG_BYTES]);
        for (line, key) in Line::all().zip(self.of_lines.iter_mut()) {
            if let Some(at) = place(self.me, line.teller) {
                self.tag_keys[at].fill(&mut *drawn);
                *key = *drawn;
            }
        }
    }

    /// The tag of a message of this round for which this party vouches.
    pub(super) fn vouch(&self, number: usize, message: &[u8]) -> Tag {
        tag(&self.of_lines[number], message)
    }

    /// Keeps what the messages of this round are parts of.
    pub(super) fn keep(&mut self, sums: Sums) {
        self.sums.push(sums);
    }

    /// Compares what this party was told in this round with the tag of the second party. If they do not fit
    /// it stops.
    pub(super) fn compare(&mut self, number: usize, line: &Line, message: &[u8], vouched: &Tag) {
        if !ct_eq(&tag(&self.of_lines[number], message), vouched) {
            self.stop();
            let fault = Fault { round: self.round, line: number as u8 };
            let digest = self.digest(fault, line, message);
            self.fault.get_or_insert((fault, digest));
        }
    }

    /// From now on this party computes nothing from what it has.
    pub(super) fn stop(&mut self) {
        self.has_stopped = true;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    fn digest(&self, fault: Fault, line: &Line, message: &[u8]) -> Digest {
        let key = &self.keys[place(self.me, line.kept).expect("the fourth party takes no part in a line")];
        let number = self.number - u64::from(self.round) + u64::from(fault.round);
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&number.to_le_bytes()).update(&[fault.line]);
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

    /// What this party says about a fault: the digest of the message that it told, or vouched for, or was
    /// told. Zeros if it knows of none.
    pub(super) fn testimony(&self, about: Fault) -> Digest {
        if let Some((_, digest)) = self.fault.filter(|(fault, _)| *fault == about) {
            return digest;
        }
        let line =
            Line::all().nth(about.line.into()).filter(|line| ![line.told, line.kept].contains(&self.me));
        let (Some(line), Some(sums)) = (line, self.sums.get(about.round as usize)) else {
            return Digest::default();
        };
        let (at, part) = line.message_at(self.me, sums[0].len());
        self.digest(about, &line, &sums[at][part])
    }

    /// Forgets the rounds, after a verdict.
    pub(super) fn forget(&mut self) {
        self.sums.clear();
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
