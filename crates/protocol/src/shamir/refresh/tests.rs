use std::sync::Arc;

use super::super::setup::{Setup, contains, weight};
use super::super::{Active, Inversion, Passive, ShamirActiveConfig, Tables};
use super::*;
use crate::interface::protocol::Faults;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::testkit::faults::{Promise, Sweep};
use crate::testkit::tamper::Fault;

const LENS: Lens = Lens { bytes: 5000, elements: 4 * ELEMENT_BYTES };

fn structure(n: usize, t: usize) -> Structure {
    Structure::new(n, t).expect("it is valid")
}

fn arithmetic<S: AdversaryModel>(structure: Structure, net: &mut dyn Net) -> Result<Arithmetic<S>> {
    let setup = Setup::agree(structure, net)?;
    let stream = hello(&HandshakeParameters::new(net.parties()), net)?.stream();
    let mut arithmetic = Arithmetic::new(&setup, stream, net.members())?;
    arithmetic.phase = Phase::Online;
    Ok(arithmetic)
}

/// What every party adds.
fn zeros<S: AdversaryModel>(structure: Structure) -> Vec<Zeroizing<Vec<u8>>> {
    let outcomes =
        run_parties(structure.parties(), |net| arithmetic::<S>(structure, net)?.sum_of_zeros(LENS, net));
    outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
}

/// The value at a point of the polynomial through the shares of the first parties.
fn at(shares: &[Zeroizing<Vec<u8>>], parties: usize, byte: usize, x: Gf256) -> Gf256 {
    let points: Vec<Gf256> = (0..parties).map(|p| point(Party(p as u8))).collect();
    let coefficients = Gf256::lagrange(&points, x);
    coefficients.iter().zip(shares).map(|(l, share)| *l * Gf256(share[byte])).sum()
}

fn are_uniform_sharings_of_zero<S: AdversaryModel>(n: usize, t: usize) {
    let shares = zeros::<S>(structure(n, t));
    let mut histograms = vec![[0u32; 256]; t];
    for byte in 0..LENS.bytes {
        assert_eq!(at(&shares, t + 1, byte, Gf256::ZERO), Gf256::ZERO);
        for p in t + 1..n {
            let x = point(Party(p as u8));
            assert_eq!(at(&shares, t + 1, byte, x), Gf256(shares[p][byte]), "degree t");
        }
        // t shares of a polynomial that is 0 at 0 are as good as its coefficients.
        shares.iter().zip(&mut histograms).for_each(|(share, h)| h[usize::from(share[byte])] += 1);
    }
    for histogram in histograms {
        let expected = LENS.bytes as f64 / 256.0;
        let chi_squared: f64 = histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        assert!(chi_squared < 255.0 + 9.0 * 22.6, "{chi_squared}");
    }
    // Elements: the polynomial of the first t + 1 of them and 0.
    let points: Vec<Gf256> = (0..=t).map(|p| point(Party(p as u8))).collect();
    let mut values = [0; LENS.elements];
    for (share, l) in shares.iter().zip(Gf256::lagrange(&points, Gf256::ZERO)) {
        let elements = &LENS.split(share).1[..LENS.elements];
        assert!(elements.iter().any(|byte| *byte != 0));
        scale_add(&mut values, elements, &Gf128::embed(l).to_bytes());
    }
    assert_eq!(values, [0; LENS.elements]);
}

#[test]
fn what_is_added_shares_zeros_by_uniform_polynomials() {
    for (n, t) in [(3, 1), (5, 2), (9, 4)] {
        are_uniform_sharings_of_zero::<Passive>(n, t);
    }
    for (n, t) in [(4, 1), (7, 2)] {
        are_uniform_sharings_of_zero::<Active>(n, t);
    }
}

/// A polynomial by its values at 0 and at the points of all parties.
type Values = Vec<Gf256>;

fn has_degree(t: usize, values: &Values) -> bool {
    let points: Vec<Gf256> = (0..values.len() as u8).map(Gf256).collect();
    (t + 1..values.len()).all(|i| {
        let l = Gf256::lagrange(&points[..=t], points[i]);
        l.iter().zip(values).map(|(l, v)| *l * *v).sum::<Gf256>() == values[i]
    })
}

/// Of polynomials as the parties have made them: for every set of t parties before, every such set after, and
/// every key there is exactly one pair of polynomials that looks the same to both sets together, and to the
/// parties in both of them, who also know what was dealt.
#[test]
fn old_shares_and_new_ones_of_t_nodes_each_fit_every_key_in_one_way() {
    let (n, t) = (5, 2);
    let structure = structure(n, t);
    let dealt = zeros::<Passive>(structure);
    let f = |outside: u16| -> Values {
        let everyone = (1 << n) - 1;
        let at = |p| weight(structure, everyone & !outside, p);
        [Gf256::ONE].into_iter().chain(Party::all(n).map(at)).collect()
    };
    let sum = |a: &Values, b: &Values| -> Values { a.iter().zip(b).map(|(a, b)| *a + *b).collect() };
    let times = |k: Gf256, a: &Values| -> Values { a.iter().map(|a| k * *a).collect() };
    let old: Values =
        (0..=n as u8).map(|x| Gf256(77) + Gf256(5) * Gf256(x) + Gf256(9) * Gf256(x).pow(2)).collect();
    let zeros: Values = [Gf256::ZERO].into_iter().chain(dealt.iter().map(|share| Gf256(share[3]))).collect();
    assert!(has_degree(t, &old) && has_degree(t, &zeros));
    let new = sum(&old, &zeros);
    let sets = || (0..1u16 << n).filter(|set| set.count_ones() as usize == t);
    for before in sets() {
        for after in sets() {
            for k in 0..=255 {
                let (f_before, f_after) = (f(before), f(after));
                let other_old = sum(&old, &times(Gf256(k), &f_before));
                let other_zeros = sum(&zeros, &times(Gf256(k), &sum(&f_before, &f_after)));
                let other_new = sum(&other_old, &other_zeros);
                assert!(has_degree(t, &other_old) && has_degree(t, &other_zeros));
                assert_eq!((other_old[0], other_zeros[0]), (old[0] + Gf256(k), Gf256::ZERO), "another key");
                let same = |set: u16, a: &Values, b: &Values| {
                    Party::all(n).filter(|p| contains(set, *p)).all(|p| a[p.index() + 1] == b[p.index() + 1])
                };
                assert!(same(before, &old, &other_old) && same(after, &new, &other_new));
                assert!(same(before & after, &zeros, &other_zeros));
            }
        }
    }
    // t old shares and the new ones of one node more are another matter only if a node is in both: without
    // fresh zeros they would meet.
    let mixed: Values = old.iter().take(t + 1).chain(&new[t + 1..]).copied().collect();
    assert!(!has_degree(t, &mixed), "old shares and new ones lie on no common polynomial");
}

/// What each of n parties publishes, if dealer 1 gives party 2 a wrong share of a byte.
fn published_with(structure: Structure, spoil: impl Fn(&mut Vec<Vec<Zeroizing<Vec<u8>>>>)) -> Vec<Vec<u8>> {
    let n = structure.parties();
    let mut random = AesPrg::new(&[7; 16], 0);
    // By dealer, then by party.
    let mut dealt: Vec<_> = (0..n).map(|_| deal(structure, LENS, &mut random)).collect();
    spoil(&mut dealt);
    let at = |p: usize| dealt.iter().map(|dealt| dealt[p].clone()).collect::<Vec<_>>();
    (0..n).map(|p| combinations(LENS, &at(p), &[9; 32])).collect()
}

fn set(parties: &[u8]) -> PartySet {
    parties.iter().map(|p| Party(*p)).collect()
}

#[test]
fn a_dealer_whose_zeros_do_not_fit_is_left_out_or_found() {
    let last = LENS.bytes + CHECKS + LENS.elements - 1;
    for place in [0, LENS.bytes - 1, LENS.bytes + CHECKS, last] {
        let spoil = |dealt: &mut Vec<Vec<Zeroizing<Vec<u8>>>>| dealt[1][2][place] ^= 1;
        let judged = judge(structure(4, 1), true, &published_with(structure(4, 1), spoil));
        let left_out = Judged { dealers: set(&[0, 2, 3]), cheaters: set(&[]) };
        assert_eq!(judged, Ok(left_out), "either may have cheated");
        let found = judge(structure(3, 1), false, &published_with(structure(3, 1), spoil));
        assert!(matches!(found, Err(Error::Peer { peer: Party(1), .. })), "{found:?}");
    }
    // A sharing of another value, and one of a higher degree.
    for others in [vec![0, 1, 2, 3], vec![0, 3]] {
        let spoil =
            |dealt: &mut Vec<Vec<Zeroizing<Vec<u8>>>>| others.iter().for_each(|p| dealt[2][*p][8] ^= 1);
        let judged = judge(structure(4, 1), true, &published_with(structure(4, 1), spoil));
        assert_eq!(judged, Ok(Judged { dealers: set(&[0, 1, 3]), cheaters: set(&[2]) }));
    }
}

#[test]
fn who_contradicts_more_dealers_than_can_cheat_is_found_and_leaves_nobody_out() {
    let mut published = published_with(structure(4, 1), |_| ());
    published[3][PUBLISHED + 2] ^= 1;
    let judged = judge(structure(4, 1), true, &published).expect("three remain");
    assert_eq!(judged, Judged { dealers: set(&[0, 2, 3]), cheaters: set(&[]) });
    published[3][2 * PUBLISHED + 9] ^= 1;
    let judged = judge(structure(4, 1), true, &published).expect("three remain");
    assert_eq!(judged, Judged { dealers: set(&[0, 1, 2]), cheaters: set(&[3]) });
    published[3].clear();
    let judged = judge(structure(4, 1), true, &published).expect("three remain");
    assert_eq!(judged.cheaters, set(&[3]), "who is silent contradicts all");

    // Two that lie as much as they can without being found.
    let mut published = published_with(structure(7, 2), |_| ());
    for (liar, dealer) in [(5, 0), (5, 1), (6, 2), (6, 3)] {
        published[liar][PUBLISHED * dealer] ^= 1;
    }
    let judged = judge(structure(7, 2), true, &published).expect("an honest one remains");
    assert_eq!(judged, Judged { dealers: set(&[4, 5, 6]), cheaters: set(&[]) });
    published[6][PUBLISHED * 4] ^= 1;
    let judged = judge(structure(7, 2), true, &published).expect("more remain");
    assert_eq!(judged, Judged { dealers: set(&[2, 3, 4, 5]), cheaters: set(&[6]) });
}

/// A value with a view, and what it is after a refresh in which parties may cheat.
fn refreshed<S: AdversaryModel>(structure: Structure, net: &mut dyn Net) -> Result<(Vec<u8>, Faults)> {
    let mut arithmetic = arithmetic::<S>(structure, net)?;
    let (me, header) = (net.me(), storage::header(S::KINDS[1], structure, net.me()));
    // The sharings i + (i + 3) x for row i: known, so that every change shows.
    let share = |i: u8| (Gf256(i) + Gf256(i.wrapping_add(3)) * point(me)).0;
    let identity = polyclave_cipher::Matrix::identity(8);
    let rows = Zeroizing::new((0..64).map(share).collect::<Vec<_>>());
    let value = Shared { bits: 8, count: 32, lanes: 1, views: vec![identity, identity], rows };
    let mut elements = Elements::zero(2);
    elements.shares[3] = 9;
    let (value, elements) = (value.save(header), elements.save(&[]));
    let stored = [Stored::Value(&value), Stored::Elements(&elements)];
    let fresh = refresh(&mut arithmetic, &stored, net)?;
    assert!(*fresh[0] != *value && *fresh[1] != *elements, "fresh shares");
    let value = Shared::restore(&fresh[0], storage::PROTOCOL, header)?;
    let opened = arithmetic.open_plain(&value.rows, net)?.to_vec();
    Ok((opened, S::faults(&arithmetic)))
}

#[test]
fn values_stay_as_they_are_whatever_one_party_of_four_sends() {
    let config = ShamirActiveConfig::new(structure(4, 1), Inversion::MaskedPowers, Tables::Masked);
    let structure = config.expect("enough parties").structure();
    let right: Vec<u8> = (0..64).collect();
    let honest = run_parties(4, |net| refreshed::<Active>(structure, net));
    assert!(honest.iter().all(|outcome| outcome.as_ref().is_ok_and(|(value, _)| *value == right)));
    let party = Arc::new(move |net: &mut dyn Net| {
        let (value, _) = refreshed::<Active>(structure, net)?;
        Ok(value == (0..64).collect::<Vec<u8>>())
    });
    // Once all have what was dealt, nothing that one party sends or leaves out stops the others, so what is
    // lost need not show.
    let faults = vec![Fault::FlipBit { byte: 9, bit: 2 }, Fault::Garbage { seed: 1 }];
    let sweep = Sweep { faults, drop_every: u64::MAX, ..Sweep::new(4, Party(2), Promise::RightOrAborted) };
    let swept = sweep.run(move |net| party(net));
    assert!(
        swept.messages > 20 && swept.faults > swept.messages && swept.survived > swept.messages,
        "{swept:?}"
    );
}

#[test]
fn values_stay_as_they_are_under_the_passive_protocol() {
    let right: Vec<u8> = (0..64).collect();
    for outcome in run_parties(3, |net| refreshed::<Passive>(structure(3, 1), net)) {
        assert_eq!(outcome, Ok((right.clone(), Faults::default())));
    }
}
