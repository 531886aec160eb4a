//! The verdict on joint messages: whether all of them were what they should be, and if not, without whom the
//! others go on. It is a function of what all parties have broadcast, so it is the same at all parties that
//! follow the protocol.
//!
//! **Claims.** Each party broadcasts the first message that did not fit its tag, and the peers from which
//! a message did not come. If nobody claims anything, all messages were right: each party that follows the
//! protocol has compared each one that it was told, and of the teller and the second at least one follows the
//! protocol, too.
//!
//! **A message is missing**, in a synchronous network: two parties that follow the protocol do not lose each
//! other. So if two parties miss messages of a third, the third is at fault, since one of the two follows the
//! protocol; and so is a party that broadcasts nothing. If only one party complains, one of the two is at
//! fault.
//!
//! A party tells the others in its next messages which peers it has lost, and nobody waits for these any
//! more. If a party claims to have heard that from one that claims to have lost nobody, one of these two is
//! at fault.
//!
//! **A message did not fit**: of several claims the one about the earliest round counts. Until then all
//! parties that follow the protocol have computed the right messages ([`super::transcript`]). The parties of
//! that message broadcast its digest: the teller and the second, which have computed it, and the party told.
//! If teller and second differ, one of these two is at fault. If they agree, and the party told names another
//! digest, the teller told it something else, or the party told is at fault. If all agree, the second vouched
//! for it by a wrong tag, or there was no fault, and the party told is at fault. Later claims are
//! consequences, since a party that has found something wrong sends zeros.
//!
//! Whatever happens, a party at fault is among those named, as long as there is one.

use super::PARTIES;
use super::transcript::{DIGEST_BYTES, Fault, Line};
use crate::{Party, PartySet};

/// Bytes of a claim: round and line of a fault, the peers that were lost, and those that each party has said
/// to have lost.
pub(super) const CLAIM_BYTES: usize = 4 + 1 + 1 + PARTIES;
/// Bytes of a testimony.
pub(super) const TESTIMONY_BYTES: usize = DIGEST_BYTES;

/// The round of a claim that says that every message did fit.
const NO_FAULT: u32 = u32::MAX;

/// What all parties that follow the protocol conclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All messages were right.
    Right,
    /// One of two parties is at fault.
    Disputed(Party, Party),
    /// This party is at fault, or gone.
    Without(Party),
    /// More than one party is at fault.
    Lost,
    /// A message did not fit. What its parties say about it will show which of them are to blame.
    Examine(Fault),
}

/// A party's claim. `heard` is, by party, which peers it has said to have lost.
pub(super) fn claim(fault: Option<Fault>, lost: PartySet, heard: &[PartySet; PARTIES]) -> Vec<u8> {
    let Fault { round, line } = fault.unwrap_or(Fault { round: NO_FAULT, line: 0 });
    let sets = [lost].into_iter().chain(heard.iter().copied()).map(|set| set.bits() as u8);
    round.to_le_bytes().into_iter().chain([line]).chain(sets).collect()
}

/// The verdict on claims about so many rounds, by party.
pub(super) fn judge(rounds: u32, claims: &[Option<Vec<u8>>]) -> Verdict {
    if let Some(silent) = silence(claims) {
        return silent;
    }
    let byte = |by: Party, at: usize| -> u8 {
        claims[by.index()].as_ref().and_then(|claim| claim.get(at)).copied().unwrap_or_default()
    };
    // The peers that a party has lost (0), or those that each party is said to have lost (from 1).
    let set = |by: Party, at: usize| PartySet::from_bits(byte(by, 5 + at).into());
    let misses = |by: Party, of: Party| by != of && set(by, 0).contains(of);
    let complaints = |of: Party| Party::all(PARTIES).filter(move |by| misses(*by, of));
    if let Some(gone) = Party::all(PARTIES).find(|of| complaints(*of).count() > 1) {
        return Verdict::Without(gone);
    }
    if let Some((of, by)) = Party::all(PARTIES).find_map(|of| Some((of, complaints(of).next()?))) {
        return Verdict::Disputed(of, by);
    }
    let made_up = |by: Party, of: Party| by != of && !set(by, 1 + of.index()).is_empty();
    let mut pairs = Party::all(PARTIES).flat_map(|by| Party::all(PARTIES).map(move |of| (by, of)));
    if let Some((by, of)) = pairs.find(|(by, of)| made_up(*by, *of)) {
        return Verdict::Disputed(by, of);
    }
    let fault_of = |by: Party| Fault {
        round: u32::from_le_bytes(std::array::from_fn(|at| byte(by, at))),
        line: byte(by, 4),
    };
    let faults =
        || Party::all(PARTIES).map(|by| (fault_of(by), by)).filter(|(fault, _)| fault.round != NO_FAULT);
    let is_possible = |(fault, by): &(Fault, Party)| {
        fault.round < rounds && line_of(*fault).is_some_and(|line| line.told == *by)
    };
    match (faults().find(|claim| !is_possible(claim)), faults().min()) {
        (Some((_, by)), _) => Verdict::Without(by),
        (None, Some((fault, _))) => Verdict::Examine(fault),
        (None, None) => Verdict::Right,
    }
}

fn line_of(fault: Fault) -> Option<Line> {
    Line::all().nth(fault.line.into())
}

/// The verdict on what the parties say about a fault, by party.
pub(super) fn judge_fault(fault: Fault, said: &[Option<Vec<u8>>]) -> Verdict {
    if let Some(silent) = silence(said) {
        return silent;
    }
    let Some(line) = line_of(fault) else { return Verdict::Lost };
    let digest = |by: Party| said[by.index()].as_ref().and_then(|said| said.first_chunk::<DIGEST_BYTES>());
    let [teller, second, told] = [line.teller, line.second, line.told].map(digest);
    match () {
        () if teller != second => Verdict::Disputed(line.teller, line.second),
        () if told != teller => Verdict::Disputed(line.teller, line.told),
        () => Verdict::Disputed(line.second, line.told),
    }
}

/// A party that has broadcast nothing is at fault. If there are several, nothing more can be said.
fn silence(said: &[Option<Vec<u8>>]) -> Option<Verdict> {
    let mut silent = Party::all(PARTIES).zip(said).filter(|(_, said)| said.is_none()).map(|(p, _)| p);
    match (silent.next(), silent.next()) {
        (Some(silent), None) => Some(Verdict::Without(silent)),
        (Some(_), Some(_)) => Some(Verdict::Lost),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::transcript::Digest;
    use super::*;

    const ROUNDS: u32 = 8;

    fn nobody() -> [PartySet; PARTIES] {
        Default::default()
    }

    fn claims(of: impl Fn(Party) -> (Option<Fault>, u16, [PartySet; PARTIES])) -> Vec<Option<Vec<u8>>> {
        let claim_of = |party| {
            let (fault, lost, heard) = of(party);
            Some(claim(fault, PartySet::from_bits(lost), &heard))
        };
        Party::all(PARTIES).map(claim_of).collect()
    }

    /// Claims with these faults.
    fn faults(of: &[(Party, Fault)]) -> Vec<Option<Vec<u8>>> {
        claims(|party| (of.iter().find(|(by, _)| *by == party).map(|(_, fault)| *fault), 0, nobody()))
    }

    /// A line on which this party is told something.
    fn told(party: Party) -> u8 {
        Line::all().position(|line| line.told == party).expect("each party is told something") as u8
    }

    #[test]
    fn silence_and_complaints_name_the_party_at_fault() {
        let verdict = |lost: [u16; PARTIES]| judge(ROUNDS, &claims(|p| (None, lost[p.index()], nobody())));
        assert_eq!(verdict([0; PARTIES]), Verdict::Right);
        assert_eq!(verdict([0b1000, 0b1000, 0, 0]), Verdict::Without(Party(3)));
        assert_eq!(verdict([0, 0, 0b0001, 0]), Verdict::Disputed(Party(0), Party(2)));
        assert_eq!(verdict([0, 0b0010, 0, 0]), Verdict::Right, "a party cannot lose itself");
        // One party that complains of all others is at fault in each pair.
        let Verdict::Disputed(one, other) = verdict([0, 0b1101, 0, 0]) else { panic!("it is a dispute") };
        assert!([one, other].contains(&Party(1)));
        let mut silent = faults(&[]);
        silent[2] = None;
        assert_eq!(judge(ROUNDS, &silent), Verdict::Without(Party(2)));
        silent[1] = None;
        assert_eq!(judge(ROUNDS, &silent), Verdict::Lost);
    }

    #[test]
    fn a_loss_that_was_told_and_not_claimed_is_a_dispute() {
        let mut heard = nobody();
        heard[3] = PartySet::from_bits(0b0001);
        let only = |by: Party, lost: [u16; PARTIES]| {
            claims(|p| (None, lost[p.index()], if p == by { heard } else { nobody() }))
        };
        assert_eq!(judge(ROUNDS, &only(Party(2), [0; PARTIES])), Verdict::Disputed(Party(2), Party(3)));
        assert_eq!(judge(ROUNDS, &only(Party(3), [0; PARTIES])), Verdict::Right, "what it has said itself");
        // It has claimed it: then it is about the one that was lost.
        assert_eq!(judge(ROUNDS, &only(Party(2), [0, 0, 0, 0b0001])), Verdict::Disputed(Party(0), Party(3)));
    }

    #[test]
    fn the_earliest_fault_counts_and_one_that_cannot_be_convicts() {
        let at = |round, party| Fault { round, line: told(party) };
        let (early, late) = (at(2, Party(3)), at(3, Party(0)));
        assert_eq!(judge(ROUNDS, &faults(&[(Party(0), late), (Party(3), early)])), Verdict::Examine(early));
        let foreign = at(2, Party(1));
        assert_eq!(judge(ROUNDS, &faults(&[(Party(0), foreign)])), Verdict::Without(Party(0)));
        assert_eq!(judge(ROUNDS, &faults(&[(Party(1), at(ROUNDS, Party(1)))])), Verdict::Without(Party(1)));
        let no_line = Fault { round: 1, line: 12 };
        assert_eq!(
            judge(ROUNDS, &faults(&[(Party(2), no_line), (Party(3), early)])),
            Verdict::Without(Party(2))
        );
    }

    /// Whatever a cheater has told, vouched for or says, and however it excuses itself, it is among those
    /// named.
    #[test]
    fn each_fault_names_a_pair_with_its_party() {
        const RIGHT: Digest = [1; DIGEST_BYTES];
        const WRONG: Digest = [2; DIGEST_BYTES];
        for (number, line) in Line::all().enumerate() {
            let fault = Fault { round: 2, line: number as u8 };
            let said = |teller: Digest, second: Digest, told: Digest| -> Vec<Option<Vec<u8>>> {
                let of = |party: Party| match party {
                    p if p == line.teller => teller,
                    p if p == line.second => second,
                    p if p == line.told => told,
                    _ => Digest::default(),
                };
                Party::all(PARTIES).map(|party| Some(of(party).to_vec())).collect()
            };
            let check = |cheater: Party, said: Vec<Option<Vec<u8>>>| match judge_fault(fault, &said) {
                Verdict::Disputed(one, other) => assert!([one, other].contains(&cheater), "{line:?}"),
                verdict => assert_eq!(verdict, Verdict::Without(cheater), "{line:?}"),
            };
            for claimed in [RIGHT, WRONG] {
                // It told or vouched for something else than it should.
                check(line.teller, said(claimed, RIGHT, WRONG));
                check(line.second, said(RIGHT, claimed, RIGHT));
                // It claims a fault that was none.
                check(line.told, said(RIGHT, RIGHT, claimed));
            }
            let mut silent = said(RIGHT, RIGHT, WRONG);
            silent[line.teller.index()] = None;
            check(line.teller, silent);
        }
    }
}
