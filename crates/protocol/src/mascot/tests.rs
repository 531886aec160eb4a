//! Checks, for every field and for two and three parties, what the shares of all parties together are.

use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, Word};

use super::*;
use crate::mesh::run_parties;

/// Runs all parties and returns their shares of the key with what they made.
fn made<F: MacField, T: Send>(
    n: usize,
    make: impl Fn(&mut Mascot<F>, &mut dyn Net) -> Result<T> + Sync,
) -> (F::Word, Vec<T>) {
    let outcomes = run_parties(n, |net| {
        let key = MacKey::<F>::generate(net)?;
        let mut mascot = Mascot::setup(b"tests", &key, 1, net)?;
        Ok((key.reveal_own_share(), make(&mut mascot, net)?))
    });
    let mut alpha = F::Word::ZERO;
    let made = outcomes.into_iter().map(|outcome| {
        let (share, made) = outcome.expect("honest parties finish");
        alpha ^= share;
        made
    });
    let made = made.collect();
    (alpha, made)
}

/// The elements, whose MACs must be right.
fn opened<F: MacField>(alpha: F::Word, shares: &[Authenticated<F>]) -> Vec<F::Word> {
    let mut sum = shares[0].clone();
    shares[1..].iter().for_each(|share| sum.add(share));
    for (value, mac) in sum.values.iter().zip(sum.macs.iter()) {
        assert_eq!(*mac, F::multiply(alpha, *value), "{}", F::NAME);
    }
    sum.values.to_vec()
}

fn distinct<F: MacField>(values: &[F::Word]) -> bool {
    values.iter().enumerate().all(|(i, x)| !values[..i].contains(x))
}

fn triples_multiply<F: MacField>(n: usize, count: usize) {
    let (alpha, triples) = made::<F, _>(n, |mascot, net| mascot.triples(count, net));
    let part = |of: fn(Triples<F>) -> Authenticated<F>, triples: &[Triples<F>]| {
        let parts = triples.iter().map(|t| of(Triples { a: t.a.clone(), b: t.b.clone(), c: t.c.clone() }));
        opened::<F>(alpha, &parts.collect::<Vec<_>>())
    };
    let [a, b, c] = [part(|t| t.a, &triples), part(|t| t.b, &triples), part(|t| t.c, &triples)];
    assert_eq!([a.len(), b.len(), c.len()], [count; 3]);
    for ((a, b), c) in a.iter().zip(&b).zip(&c) {
        assert_eq!(F::multiply(*a, *b), *c, "{}", F::NAME);
    }
    assert!(distinct::<F>(&[a, b].concat()));
}

#[test]
fn triples_are_products_in_every_field() {
    for n in [2, 3] {
        triples_multiply::<Gf2_40>(n, 21);
        triples_multiply::<Gf2_42>(n, 8);
        triples_multiply::<Gf2_64>(n, 11);
        triples_multiply::<Gf2_128>(n, 3);
    }
}

#[test]
fn triples_of_several_batches_are_products() {
    triples_multiply::<Gf2_64>(2, 2111);
}

fn bits_are_bits<F: MacField>(n: usize) {
    let (alpha, bits) = made::<F, _>(n, |mascot, net| mascot.bits(203, net));
    let bits = opened::<F>(alpha, &bits);
    assert!(bits.iter().all(|bit| *bit == F::Word::ZERO || *bit == F::Word::ONE));
    let ones = bits.iter().filter(|bit| **bit == F::Word::ONE).count();
    assert!((40..160).contains(&ones), "{ones} of {}", bits.len());
}

#[test]
fn bits_are_bits_in_every_field() {
    for n in [2, 3] {
        bits_are_bits::<Gf2_40>(n);
        bits_are_bits::<Gf2_42>(n);
        bits_are_bits::<Gf2_64>(n);
        bits_are_bits::<Gf2_128>(n);
    }
}

fn own_bits_are_known<F: MacField>(n: usize) {
    // One extension serves the first and third, a second one the rest of the second.
    let asked = [(Party(0), 50), (Party(0), 70), (Party(1), 100), (Party(n as u8 - 1), 3)];
    let (alpha, made) = made::<F, _>(n, |mascot, net| {
        asked.iter().map(|(owner, count)| mascot.bits_of(*owner, *count, net)).collect::<Result<Vec<_>>>()
    });
    for (i, (owner, count)) in asked.iter().enumerate() {
        let shares: Vec<_> = made.iter().map(|made| made[i].0.clone()).collect();
        let opened = opened::<F>(alpha, &shares);
        assert_eq!(opened.len(), *count);
        for (p, made) in Party::all(n).zip(&made) {
            let bits = made[i].1.as_ref().map(|bits| bits.to_vec());
            let expected = opened.iter().map(|bit| if *bit == F::Word::ONE { 1 } else { 0 }).collect();
            assert_eq!(bits, (p == *owner).then_some(expected));
        }
        assert!(opened.iter().all(|bit| *bit == F::Word::ZERO || *bit == F::Word::ONE));
    }
}

#[test]
fn bits_of_one_party_are_known_to_it_alone() {
    for n in [2, 3] {
        own_bits_are_known::<Gf2_40>(n);
        own_bits_are_known::<Gf2_42>(n);
        own_bits_are_known::<Gf2_64>(n);
        own_bits_are_known::<Gf2_128>(n);
    }
}

fn inputs_are_authenticated<F: MacField>(n: usize) {
    let values: Vec<F::Word> =
        (0..9).map(|i| F::truncate(F::Word::from_bytes(&[0x35 + i; 16][..size_of::<F::Word>()]))).collect();
    for owner in Party::all(n) {
        let (alpha, shares) = made::<F, _>(n, |mascot, net| {
            let own = (net.me() == owner).then_some(&values[..]);
            mascot.authenticate(owner, own, values.len(), net)
        });
        assert_eq!(opened::<F>(alpha, &shares), values, "{}", F::NAME);
        assert!(shares.iter().all(|share| *share.values != values), "the shares tell the values");
    }
}

#[test]
fn inputs_are_authenticated_in_every_field() {
    for n in [2, 3] {
        inputs_are_authenticated::<Gf2_40>(n);
        inputs_are_authenticated::<Gf2_42>(n);
        inputs_are_authenticated::<Gf2_64>(n);
        inputs_are_authenticated::<Gf2_128>(n);
    }
}

#[test]
fn inputs_of_somebody_else_are_refused() {
    made::<Gf2_40, _>(2, |mascot, net| {
        let wrong = [
            mascot.authenticate(Party(0), (net.me() != Party(0)).then_some(&[1]), 1, net),
            mascot.authenticate(Party(2), None, 1, net),
            mascot.authenticate(net.me(), Some(&[1, 2]), 1, net),
        ];
        assert!(wrong.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))));
        assert!(matches!(mascot.bit_triples(1, net), Err(Error::Misuse(_))));
        assert!(mascot.triples(0, net)?.a.is_empty() && mascot.bits(0, net)?.is_empty());
        mascot.bits(1, net)
    });
}

/// The first of several would be tested, and the others believed.
#[test]
fn an_anchor_is_one_element() {
    made::<Gf2_64, _>(2, |mascot, net| {
        for len in [0, 2] {
            let bound = mascot.bind(&Authenticated::zero(len), net);
            assert!(matches!(bound, Err(Error::Misuse(_))), "{len} elements: {bound:?}");
        }
        Ok(())
    });
}
