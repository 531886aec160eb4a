//! The verdict on joint messages: whether all of them were what they should be, and if not, without whom the
//! others go on. It is a function of what all parties have broadcast, so it is the same at all parties that
//! follow the protocol.
//!
//! **Claims.** Each party broadcasts one digest for each line that it knows, over all rounds, and the peers
//! from which a message did not come. If the three digests of every line are equal and nothing is missing,
//! all messages were right: of the teller and the second at least one follows the protocol, and if the party
//! told does, too, it has compared what came with what the honest one of the two computed.
//!
//! **A message is missing**, in a synchronous network: two parties that follow the protocol do not lose each
//! other. So if two parties miss messages of a third, the third is at fault, since one of the two follows the
//! protocol; and so is a party that broadcasts nothing. If only one party complains, one of the two is at
//! fault.
//!
//! A party tells the others in its next messages which peers it has lost, and nobody waits for these any
//! more. Who claims to have heard that from a party that claims to have lost nobody contradicts it: one of
//! the two is at fault.
//!
//! **Digests differ**: the parties broadcast those of each round, for the lines that differ. A party whose
//! digests of the rounds do not make up the digest that it broadcast before is at fault. In the first round
//! with a difference all parties that follow the protocol have computed from the same values, because all
//! messages before were right. So if teller and second differ, one of these two is at fault. If they agree,
//! the party told claims to have received something else: it or the teller is at fault.
//!
//! Whatever happens, a party at fault is among those named, as long as there is one.

use super::PARTIES;
use super::transcript::{DIGEST_BYTES, Digest, LINES, Line, total};
use crate::{Party, PartySet};

/// Bytes of a claim: the digests, the peers that were lost, and those that each party has said to have lost.
pub(super) const CLAIM_BYTES: usize = LINES * DIGEST_BYTES + 1 + PARTIES;

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
    /// These lines differ, and it takes the digests of their rounds to find out where.
    Differ,
}

/// A party's claim. `heard` is, by party, which peers it has said to have lost.
pub(super) fn claim(totals: &[Digest], lost: PartySet, heard: &[PartySet; PARTIES]) -> Vec<u8> {
    let sets = [lost].into_iter().chain(heard.iter().copied()).map(|set| set.bits() as u8);
    totals.as_flattened().iter().copied().chain(sets).collect()
}

/// The verdict on claims, by party.
pub(super) fn judge(claims: &[Option<Vec<u8>>]) -> Verdict {
    let mut silent = Party::all(PARTIES).zip(claims).filter(|(_, claim)| claim.is_none()).map(|(p, _)| p);
    match (silent.next(), silent.next()) {
        (Some(silent), None) => return Verdict::Without(silent),
        (Some(_), Some(_)) => return Verdict::Lost,
        (None, _) => {}
    }
    // A set of a claim: the peers that were lost, or those that a party is said to have lost.
    let set = |by: Party, at: usize| -> PartySet {
        let byte = claims[by.index()].as_ref().and_then(|claim| claim.get(LINES * DIGEST_BYTES + at));
        byte.map_or(PartySet::default(), |set| PartySet::from_bits((*set).into()))
    };
    let misses = |by: Party, of: Party| by != of && set(by, 0).contains(of);
    let complaints = |of: Party| Party::all(PARTIES).filter(move |by| misses(*by, of));
    if let Some(gone) = Party::all(PARTIES).find(|of| complaints(*of).count() > 1) {
        return Verdict::Without(gone);
    }
    if let Some((of, by)) = Party::all(PARTIES).find_map(|of| Some((of, complaints(of).next()?))) {
        return Verdict::Disputed(of, by);
    }
    let made_up = |by: Party, of: Party| by != of && !set(by, 1 + of.index()).is_empty();
    let pairs = Party::all(PARTIES).flat_map(|by| Party::all(PARTIES).map(move |of| (by, of)));
    if let Some((by, of)) = pairs.into_iter().find(|(by, of)| made_up(*by, *of)) {
        return Verdict::Disputed(by, of);
    }
    if differing(claims).is_empty() { Verdict::Right } else { Verdict::Differ }
}

/// The lines on which claims differ.
pub(super) fn differing(claims: &[Option<Vec<u8>>]) -> Vec<usize> {
    let differs = |(number, line): (usize, Line)| {
        let of = |party: Party| total_of(claims, number, party);
        let [teller, second, told] = line.parties().map(of);
        (teller != second || second != told).then_some(number)
    };
    Line::all().enumerate().filter_map(differs).map(|number| number.to_owned()).collect()
}

fn total_of(claims: &[Option<Vec<u8>>], line: usize, party: Party) -> Option<&[u8]> {
    claims[party.index()].as_ref()?.get(line * DIGEST_BYTES..(line + 1) * DIGEST_BYTES)
}

/// The verdict on the digests of all rounds of these lines, by party. `claims` are what the parties had
/// broadcast before.
pub(super) fn judge_rounds(
    lines: &[usize],
    rounds: usize,
    claims: &[Option<Vec<u8>>],
    said: &[Option<Vec<u8>>],
) -> Verdict {
    let mut silent = Party::all(PARTIES).zip(said).filter(|(_, said)| said.is_none()).map(|(p, _)| p);
    match (silent.next(), silent.next()) {
        (Some(silent), None) => return Verdict::Without(silent),
        (Some(_), Some(_)) => return Verdict::Lost,
        (None, _) => {}
    }
    let all: Vec<Line> = Line::all().collect();
    let digests = |at: usize, party: Party| -> &[u8] {
        let len = rounds * DIGEST_BYTES;
        said[party.index()].as_ref().and_then(|said| said.get(at * len..(at + 1) * len)).unwrap_or_default()
    };
    for (at, number) in lines.iter().enumerate() {
        for party in all[*number].parties() {
            if total_of(claims, *number, party) != Some(&total(digests(at, party))[..]) {
                return Verdict::Without(party);
            }
        }
    }
    for round in 0..rounds {
        for (at, number) in lines.iter().enumerate() {
            let line = all[*number];
            let of = |party| digests(at, party).get(round * DIGEST_BYTES..(round + 1) * DIGEST_BYTES);
            let [teller, second, told] = line.parties().map(of);
            if teller != second {
                return Verdict::Disputed(line.teller, line.second);
            }
            if teller != told {
                return Verdict::Disputed(line.teller, line.told);
            }
        }
    }
    // Claims differed and their rounds do not: no party that follows the protocol said so.
    Verdict::Lost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims about two rounds, as all would make them.
    fn rounds() -> Vec<Vec<Digest>> {
        (0..LINES as u8).map(|line| vec![[line + 1; DIGEST_BYTES], [line + 101; DIGEST_BYTES]]).collect()
    }

    fn claims_of(each: &[Vec<Vec<Digest>>], lost: [u16; PARTIES]) -> Vec<Option<Vec<u8>>> {
        let claim_of = |(rounds, lost): (&Vec<Vec<Digest>>, u16)| {
            let totals: Vec<Digest> = rounds.iter().map(|rounds| total(rounds.as_flattened())).collect();
            Some(claim(&totals, PartySet::from_bits(lost), &Default::default()))
        };
        each.iter().zip(lost).map(claim_of).collect()
    }

    fn said(each: &[Vec<Vec<Digest>>], lines: &[usize]) -> Vec<Option<Vec<u8>>> {
        let of = |rounds: &Vec<Vec<Digest>>| {
            Some(lines.iter().flat_map(|line| rounds[*line].as_flattened().to_vec()).collect())
        };
        each.iter().map(of).collect()
    }

    #[test]
    fn equal_claims_are_right_and_what_is_not_known_to_a_party_does_not_count() {
        let mut each = vec![rounds(); PARTIES];
        for (number, line) in Line::all().enumerate() {
            each[line.kept.index()][number][0] = [0; DIGEST_BYTES];
        }
        assert_eq!(judge(&claims_of(&each, [0; PARTIES])), Verdict::Right);
    }

    #[test]
    fn silence_and_complaints_name_whoever_is_at_fault() {
        let each = vec![rounds(); PARTIES];
        let verdict = |lost| judge(&claims_of(&each, lost));
        assert_eq!(verdict([0b1000, 0b1000, 0, 0]), Verdict::Without(Party(3)));
        assert_eq!(verdict([0, 0, 0b0001, 0]), Verdict::Disputed(Party(0), Party(2)));
        assert_eq!(verdict([0, 0b0010, 0, 0]), Verdict::Right, "a party cannot lose itself");
        // One party that complains of all others is at fault in each pair.
        let Verdict::Disputed(one, other) = verdict([0, 0b1101, 0, 0]) else { panic!("it is a dispute") };
        assert!([one, other].contains(&Party(1)));
        let mut claims = claims_of(&each, [0; PARTIES]);
        claims[2] = None;
        assert_eq!(judge(&claims), Verdict::Without(Party(2)));
        claims[1] = None;
        assert_eq!(judge(&claims), Verdict::Lost);
    }

    #[test]
    fn each_false_claim_names_a_pair_with_its_party() {
        for cheater in Party::all(PARTIES) {
            for (number, _) in Line::all().enumerate().filter(|(_, line)| line.is_known_to(cheater)) {
                let mut each = vec![rounds(); PARTIES];
                each[cheater.index()][number][1] = [0xee; DIGEST_BYTES];
                let claims = claims_of(&each, [0; PARTIES]);
                assert_eq!(judge(&claims), Verdict::Differ);
                let lines = differing(&claims);
                assert_eq!(lines, [number]);
                let verdict = judge_rounds(&lines, 2, &claims, &said(&each, &lines));
                let Verdict::Disputed(one, other) = verdict else { panic!("{verdict:?}") };
                assert!([one, other].contains(&cheater), "{cheater} {number}");
                // Afterwards it says that it was told what all say.
                let honest = said(&vec![rounds(); PARTIES], &lines);
                assert_eq!(judge_rounds(&lines, 2, &claims, &honest), Verdict::Without(cheater));
                let mut silent = said(&each, &lines);
                silent[cheater.index()] = None;
                assert_eq!(judge_rounds(&lines, 2, &claims, &silent), Verdict::Without(cheater));
            }
        }
    }

    #[test]
    fn the_first_round_that_differs_counts() {
        let mut each = vec![rounds(); PARTIES];
        let all: Vec<Line> = Line::all().collect();
        // P_0 tells something wrong in the first round; in the second all that it reached goes wrong.
        let told = all.iter().position(|line| line.teller == Party(0)).expect("it tells");
        each[0][told][0] = [0xee; DIGEST_BYTES];
        each[all[told].told.index()][told][0] = [0xee; DIGEST_BYTES];
        let later = all.iter().position(|line| line.teller == all[told].told).expect("it tells");
        each[all[told].told.index()][later][1] = [0xdd; DIGEST_BYTES];
        let claims = claims_of(&each, [0; PARTIES]);
        let lines = differing(&claims);
        let verdict = judge_rounds(&lines, 2, &claims, &said(&each, &lines));
        assert_eq!(verdict, Verdict::Disputed(Party(0), all[told].second));
    }
}
