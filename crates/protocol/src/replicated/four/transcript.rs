//! What a party has told, would have told, or was told in joint messages: digests, round by round.
//!
//! A digest is keyed with the key of the component that is told, which the three parties of the message have
//! and the fourth lacks. The fourth party hears the digests, and knows the mask of the message. Without the
//! key it could try values of the rest.

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

    /// Whether a party knows the messages.
    pub(super) fn is_known_to(&self, party: Party) -> bool {
        party != self.kept
    }

    /// The parties that know the messages.
    pub(super) fn parties(&self) -> [Party; 3] {
        [self.teller, self.second, self.told]
    }
}

/// One party's digests since the last verdict.
pub(super) struct Transcript {
    me: Party,
    keys: Components<Zeroizing<[u8; 32]>>,
    /// By line, a digest for each round.
    rounds: Vec<Vec<Digest>>,
    /// Rounds since the session began: so that no message stands for another.
    number: u64,
}

impl Transcript {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Transcript {
        let keys = keys(setup, stream, Purpose::Transcript);
        Transcript { me: setup.keys.me(), keys, rounds: vec![Vec::new(); LINES], number: 0 }
    }

    /// Notes a message of this round.
    pub(super) fn note(&mut self, number: usize, line: &Line, message: &[u8]) {
        let key = &self.keys[place(self.me, line.kept).expect("only known lines are noted")];
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&self.number.to_le_bytes()).update(&[number as u8]);
        hasher.update(&(message.len() as u64).to_le_bytes()).update(message);
        self.rounds[number].push(*hasher.finalize().as_bytes());
    }

    /// Notes that a message of this round did not come.
    pub(super) fn note_missing(&mut self, number: usize) {
        self.rounds[number].push([0; DIGEST_BYTES]);
    }

    /// Ends a round.
    pub(super) fn next_round(&mut self) {
        self.number += 1;
    }

    /// Number of rounds since the last verdict.
    pub(super) fn len(&self) -> usize {
        self.rounds.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// One digest for each line of all its rounds. Those of lines that this party does not know are zero.
    pub(super) fn totals(&self) -> Vec<Digest> {
        let total = |(line, rounds): (Line, &Vec<Digest>)| match line.is_known_to(self.me) {
            true => total(rounds.as_flattened()),
            false => [0; DIGEST_BYTES],
        };
        Line::all().zip(&self.rounds).map(total).collect()
    }

    /// The digests of these lines, line by line and round by round. Zeros for lines that this party does not
    /// know.
    pub(super) fn rounds(&self, lines: &[usize]) -> Vec<u8> {
        let (len, mut all) = (self.len(), Vec::new());
        for line in lines {
            let mut rounds = self.rounds[*line].clone();
            rounds.resize(len, [0; DIGEST_BYTES]);
            all.extend_from_slice(rounds.as_flattened());
        }
        all
    }

    /// Forgets the rounds, after a verdict.
    pub(super) fn forget(&mut self) {
        self.rounds.iter_mut().for_each(Vec::clear);
    }
}

/// The digest of the digests of all rounds.
pub(super) fn total(rounds: &[u8]) -> Digest {
    blake3::derive_key("polyclave 2026 joint messages of all rounds", rounds)
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
