//! Shares as words of a Reed-Solomon code: the shares of one value, of all parties that sent theirs, are a
//! polynomial's values at the parties' points.
//!
//! **Degree t, corrected.** Two different polynomials of degree t agree at t points at most. Of 2t + 1 shares
//! that lie on one polynomial of degree t, at least t + 1 come from parties that do not cheat, and these
//! determine it. So it is the right one. A value is taken as soon as 2t + 1 shares agree, from any 2t + 1
//! parties. With n >= 3t + 1 parties that happens at the latest when all parties that do not cheat have
//! answered. Parties whose shares are not on that polynomial are outvoted: they certainly sent a wrong share.
//!
//! **Degree 2t, checked.** n >= 3t + 1 shares of degree 2t detect t wrong ones, but correct none for n =
//! 3t + 1. Two polynomials of degree 2t can agree at 2t points, so n - 2t >= t + 1 of the shares would have
//! to be wrong for a wrong value to pass. All n shares must be there for that.
//!
//! What is decoded here is about to become public. A whole vector is decoded with one set of outvoted
//! parties, because there are t cheaters at most in all places together.

use std::sync::LazyLock;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf128;
use polyclave_kernels::secret::is_zero;

use super::super::arithmetic::scalar;
use super::super::setup::point;
use crate::interface::service::ELEMENT_BYTES;
use crate::{Party, PartySet};

/// What a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// An element of GF(2^8).
    Byte,
    /// An element of GF(2^128), shared at the images of the points.
    Element,
}

/// The shares that one party sent.
pub(crate) type Word<'a> = (Party, &'a [u8]);

/// Shares are compared piece by piece, near the processor.
const PIECE: usize = 4096;

static SCALARS: LazyLock<Vec<Map>> = LazyLock::new(|| (0..=255).map(|c| scalar(Gf256(c))).collect());

/// The values behind shares of degree t, corrected: right as long as no more than t parties cheat. Returns
/// the outvoted parties; `None` if no 2t + 1 shares agree, so that more of them are needed. This party is
/// suspected last.
pub(crate) fn decode(
    symbol: Symbol,
    threshold: usize,
    me: Option<Party>,
    words: &[Word<'_>],
    values: &mut [u8],
) -> Option<PartySet> {
    let there: PartySet = words.iter().map(|(party, _)| *party).collect();
    let spare = words.len().checked_sub(2 * threshold + 1)?.min(threshold);
    let mut suspects: Vec<PartySet> = (0..=there.bits())
        .map(PartySet::from_bits)
        .filter(|set| set.len() <= spare && set.without(there).is_empty())
        .collect();
    suspects.sort_by_key(|set| (set.len(), me.is_some_and(|me| set.contains(me))));
    suspects.into_iter().find(|set| {
        let others: Vec<Word<'_>> = words.iter().filter(|(p, _)| !set.contains(*p)).copied().collect();
        interpolate(symbol, threshold, &others, values)
    })
}

/// The values at 0 of polynomials of this degree, if all the shares lie on them. With no more shares than
/// determine the polynomials there is nothing to check.
pub(in super::super) fn interpolate(
    symbol: Symbol,
    degree: usize,
    words: &[Word<'_>],
    values: &mut [u8],
) -> bool {
    let Some((base, rest)) = words.split_at_checked(degree + 1) else { return false };
    let points: Vec<Gf256> = base.iter().map(|(p, _)| point(*p)).collect();
    let checks: Vec<Vec<Gf256>> = rest.iter().map(|(p, _)| Gf256::lagrange(&points, point(*p))).collect();
    let mut sum = vec![0; PIECE.min(values.len())];
    for start in (0..values.len()).step_by(PIECE) {
        let piece = start..values.len().min(start + PIECE);
        let sum = &mut sum[..piece.len()];
        for ((_, shares), coefficients) in rest.iter().zip(&checks) {
            let terms = base.iter().zip(coefficients).map(|((_, shares), c)| (*c, &shares[piece.clone()]));
            weighted(symbol, terms.chain([(Gf256::ONE, &shares[piece.clone()])]), sum);
            // Whether they all lie on them may be known, and by how much they miss not.
            if !is_zero(sum) {
                return false;
            }
        }
    }
    let at_zero = Gf256::lagrange(&points, Gf256::ZERO);
    weighted(symbol, base.iter().zip(at_zero).map(|((_, shares), c)| (c, *shares)), values);
    true
}

/// At which value, by symbol, shares are first off all polynomials of this degree; `None` if they lie on one
/// everywhere.
pub(super) fn first_fault(symbol: Symbol, degree: usize, words: &[Word<'_>]) -> Option<usize> {
    let width = symbol.bytes();
    let count = words.first().map_or(0, |(_, shares)| shares.len() / width);
    let mut value = vec![0; width];
    (0..count).find(|i| {
        let place = width * i..width * (i + 1);
        let words: Vec<Word<'_>> = words.iter().map(|(p, shares)| (*p, &shares[place.clone()])).collect();
        !interpolate(symbol, degree, &words, &mut value)
    })
}

/// The right share of `party` of one value, computed from `words`: shares of degree t of the value, one
/// symbol each, up to t of them wrong.
pub(super) fn right_share(
    symbol: Symbol,
    threshold: usize,
    words: &[Word<'_>],
    party: Party,
) -> Option<Vec<u8>> {
    let mut value = vec![0; symbol.bytes()];
    let wrong = decode(symbol, threshold, None, words, &mut value)?;
    let base = words.iter().filter(|(p, _)| !wrong.contains(*p)).take(threshold + 1);
    let base: Vec<Word<'_>> = base.copied().collect();
    let points: Vec<Gf256> = base.iter().map(|(p, _)| point(*p)).collect();
    let coefficients = Gf256::lagrange(&points, point(party));
    weighted(symbol, base.iter().zip(coefficients).map(|((_, share), c)| (c, *share)), &mut value);
    Some(value)
}

impl Symbol {
    pub(super) fn bytes(self) -> usize {
        match self {
            Symbol::Byte => 1,
            Symbol::Element => ELEMENT_BYTES,
        }
    }
}

/// A sum of multiples of shares.
pub(super) fn weighted<'a>(symbol: Symbol, terms: impl Iterator<Item = (Gf256, &'a [u8])>, sum: &mut [u8]) {
    match symbol {
        Symbol::Byte => {
            let terms: Vec<Term<'_>> =
                terms.map(|(c, src)| Term { src, map: &SCALARS[usize::from(c.0)] }).collect();
            combine(sum, &terms, 0);
        }
        Symbol::Element => {
            sum.fill(0);
            terms.for_each(|(c, src)| gf128::scale_add(sum, src, &Gf128::embed(c).to_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of three values by polynomials of a degree, at the points of n parties.
    fn shares(n: usize, degree: usize) -> Vec<Vec<u8>> {
        let coefficient = |value: usize, k: usize| Gf256((37 * value + 11 * k * k + 5) as u8);
        let share = |p: Party, value: usize| -> Gf256 {
            (0..=degree).map(|k| coefficient(value, k) * point(p).pow(k as u32)).sum()
        };
        Party::all(n).map(|p| (0..3).map(|value| share(p, value).0).collect()).collect()
    }

    fn words(shares: &[Vec<u8>], from: PartySet) -> Vec<Word<'_>> {
        from.iter().map(|p| (p, &shares[p.index()][..])).collect()
    }

    const RIGHT: [u8; 3] = [5, 42, 79];

    #[test]
    fn up_to_t_wrong_shares_are_corrected_and_named() {
        for (n, t) in [(4, 1), (5, 1), (7, 2)] {
            for bits in 0..1u16 << n {
                let wrong = PartySet::from_bits(bits);
                let mut shares = shares(n, t);
                wrong.iter().for_each(|p| shares[p.index()][usize::from(p.0) % 3] ^= 0x1d + p.0);
                let mut values = [0; 3];
                let outvoted = decode(Symbol::Byte, t, None, &words(&shares, PartySet::all(n)), &mut values);
                if wrong.len() <= t {
                    assert_eq!((outvoted, values), (Some(wrong), RIGHT), "{n} {t} {wrong}");
                }
            }
        }
    }

    #[test]
    fn without_one_of_four_a_wrong_share_is_found_but_not_corrected() {
        let mut shares = shares(4, 1);
        let three = PartySet::from_bits(0b1011);
        let mut values = [0; 3];
        let honest = decode(Symbol::Byte, 1, None, &words(&shares, three), &mut values);
        assert_eq!((honest, values), (Some(PartySet::default()), RIGHT));
        for (party, place) in [(0, 0), (1, 2), (3, 1)] {
            shares[party][place] ^= 9;
            assert_eq!(decode(Symbol::Byte, 1, None, &words(&shares, three), &mut values), None);
            shares[party][place] ^= 9;
        }
        let two = PartySet::from_bits(0b1001);
        assert_eq!(decode(Symbol::Byte, 1, None, &words(&shares, two), &mut values), None);
    }

    #[test]
    fn one_wrong_share_of_four_is_found_at_degree_two() {
        let right = shares(4, 2);
        let mut values = [0; 3];
        assert!(interpolate(Symbol::Byte, 2, &words(&right, PartySet::all(4)), &mut values));
        assert_eq!(values, RIGHT);
        for party in 0..4 {
            let mut shares = right.clone();
            shares[party][1] ^= 0x80;
            let words = words(&shares, PartySet::all(4));
            assert!(!interpolate(Symbol::Byte, 2, &words, &mut values));
            assert_eq!(first_fault(Symbol::Byte, 2, &words), Some(1));
        }
    }

    #[test]
    fn elements_are_corrected_like_bytes() {
        let (low, high) = (Gf128::embed(Gf256(77)).to_bytes(), [0xc3; 16]);
        let share = |p: Party| {
            let mut share = low;
            gf128::scale_add(&mut share, &high, &Gf128::embed(point(p)).to_bytes());
            share.to_vec()
        };
        let mut shares: Vec<Vec<u8>> = Party::all(4).map(share).collect();
        shares[2][15] ^= 1;
        let mut value = [0; 16];
        let words = words(&shares, PartySet::all(4));
        let outvoted = decode(Symbol::Element, 1, Some(Party(0)), &words, &mut value);
        assert_eq!((outvoted, value), (Some(PartySet::from_bits(0b100)), low));
        assert_eq!(right_share(Symbol::Element, 1, &words, Party(2)), Some(share(Party(2))));
    }
}
