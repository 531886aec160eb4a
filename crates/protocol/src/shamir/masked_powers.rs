//! Inversion by one opening and one product: x^254 = x^170 x^84.
//!
//! 254 is the sum of the powers of two 2^1 .. 2^7. With d = x + a opened for a shared random a, x^(2^i) =
//! d^(2^i) + a^(2^i). The product of some of these is a sum, over the subsets S of them, of public powers of
//! d times a^(sum of S). So with powers of a made ahead, any product of powers x^(2^i) is local once d is
//! public. For 170 = 2 + 8 + 32 + 128 and 84 = 4 + 16 + 64 only the exponents 5, 17, 21 and 85 occur, up to
//! squarings (which every opening under a mask gives without cost, `opening.rs`): four products ahead. (All
//! exponents below 254 would take 33.) Then x^170 x^84 is one product, opened under a mask, so that every
//! image of it follows.
//!
//! Online 2 operations in 2 rounds, ahead 4 operations in 2 rounds. Neither paper has this; the idea is
//! masked exponentiation (Damgard and Keller 2010, section 4.1) with the powers multiplied ahead.
//!
//! What is opened: d, which is uniform because a is uniform and used once; and products under their own
//! masks.

use polyclave_cipher::Matrix;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;

use super::arithmetic::Arithmetic;
use super::opening::{Opening, Secret};
use super::power::Powers;
use super::security::AdversaryModel;
use crate::Result;
use crate::interface::net::Net;
use crate::pool::Shares;

/// Operations and rounds ahead, for one inversion.
pub(super) const COST: (usize, usize) = (4, 2);

/// The exponents of the shares that one inversion takes: the mask, its squares, and products of those.
pub(super) const EXPONENTS: [u8; 23] = [
    1, 2, 4, 8, 16, 32, 64, 128, //
    10, 34, 130, 40, 136, 160, // pairs of 2, 8, 32, 128
    42, 138, 162, 168, 170, // three and all of them
    20, 68, 80, 84, // of 4, 16, 64
];

/// Values that stay in the first-level cache with all their powers.
const TILE: usize = 512;

impl Powers {
    /// For this many inversions by [`by_masked_powers`].
    pub(super) fn products<S: AdversaryModel>(
        arithmetic: &mut Arithmetic<S>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Powers> {
        let views: Vec<_> = (0..8).map(|i| arithmetic.prss.view(&Matrix::frobenius(i))).collect();
        let mut powers = arithmetic.prss.random(count, &views, &arithmetic.pool);
        let mut opening = |a, b, images: &[u32]| Opening {
            secret: Secret::Product(a, b),
            views: images.iter().map(|i| arithmetic.prss.view(&Matrix::frobenius(*i))).collect(),
        };
        // a^5 = a a^4 and a^17 = a a^16.
        let images_of_5 = [0, 1, 2, 3, 4, 5, 7];
        let first = vec![
            opening(&powers[0], &powers[2], &images_of_5),
            opening(&powers[0], &powers[4], &[0, 1, 2, 3]),
        ];
        let first = arithmetic.open_masked(first, net)?;
        let (a5, a17, a68) = (first.shares(0, 0, 0), first.shares(1, 0, 0), first.shares(1, 2, 0));
        // a^21 = a^5 a^16 and a^85 = a^17 a^68.
        let mut opening = |a, b, images: &[u32]| Opening {
            secret: Secret::Product(a, b),
            views: images.iter().map(|i| arithmetic.prss.view(&Matrix::frobenius(*i))).collect(),
        };
        let second = vec![opening(&a5, &powers[4], &[1, 2, 3, 5, 7]), opening(&a17, &a68, &[1])];
        let second = arithmetic.open_masked(second, net)?;
        let made: [(u8, &super::opening::Opened, usize, &[u32]); 4] = [
            (5, &first, 0, &images_of_5),
            (17, &first, 1, &[0, 1, 2, 3]),
            (21, &second, 0, &[1, 2, 3, 5, 7]),
            (85, &second, 1, &[1]),
        ];
        for exponent in &EXPONENTS[8..] {
            let image = made.iter().find_map(|(base, opened, which, images)| {
                let view = images.iter().position(|i| base.rotate_left(*i) == *exponent)?;
                Some(opened.shares(*which, view, 0))
            });
            powers.push(image.expect("every exponent is a square of a square of one of the four"));
        }
        Ok(Powers { powers, spent: 0 })
    }
}

/// Shares of x^170 and x^84. One operation, one round.
pub(super) fn by_masked_powers<S: AdversaryModel>(
    x: &[u8],
    powers: &mut Powers,
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<[Shares; 2]> {
    let range = powers.spend(x.len())?;
    let mut masked = arithmetic.pool.take(x.len());
    masked.iter_mut().zip(x).zip(&powers.powers[0][range.clone()]).for_each(|((m, x), a)| *m = x ^ a);
    let d = arithmetic.open_plain(&masked, net)?;
    let mut results = [arithmetic.pool.take(x.len()), arithmetic.pool.take(x.len())];
    let squares: Vec<Map> = (0..8).map(|i| Map::new(Matrix::frobenius(i).columns())).collect();
    let mut scratch = arithmetic.pool.take(16 * TILE);
    for start in (0..x.len()).step_by(TILE) {
        let tile = start..x.len().min(start + TILE);
        let share = |exponent: u8| {
            let at = EXPONENTS.iter().position(|e| *e == exponent).expect("a subset of the exponents");
            &powers.powers[at][range.start + tile.start..range.start + tile.end]
        };
        for (bits, result) in [(&[1, 3, 5, 7][..], 0), (&[2, 4, 6], 1)] {
            product_of_masked(
                bits,
                &d[tile.clone()],
                &squares,
                share,
                &mut scratch,
                &mut results[result][tile.clone()],
            );
        }
    }
    Ok(results)
}

/// The product of x^(2^i) for some i: the sum over subsets S of them of a^S times the public product of
/// d^(2^i) for all others.
fn product_of_masked<'a>(
    bits: &[u32],
    d: &[u8],
    squares: &[Map],
    share: impl Fn(u8) -> &'a [u8],
    scratch: &mut [u8],
    result: &mut [u8],
) {
    let len = d.len();
    let all = 1usize << bits.len();
    // publics[s] is the product of d^(2^i) for the members of s; at 0 there is room for terms.
    let (term, publics) = scratch.split_at_mut(len);
    let at = |s: usize| (s - 1) * len..s * len;
    for (k, i) in bits.iter().enumerate() {
        let top = 1 << k;
        combine(&mut publics[at(top)], &[Term { src: d, map: &squares[*i as usize] }], 0);
        for s in 1..top {
            let (lower, upper) = publics.split_at_mut(at(top + s).start);
            multiply(&mut upper[..len], &lower[at(top)], &lower[at(s)]);
        }
    }
    result.copy_from_slice(&publics[at(all - 1)]);
    for s in 1..all {
        let exponent = bits.iter().enumerate().filter(|(k, _)| s >> k & 1 == 1).map(|(_, i)| 1u8 << i).sum();
        let share = share(exponent);
        match all - 1 - s {
            0 => term.copy_from_slice(share),
            others => multiply(term, share, &publics[at(others)]),
        }
        result.iter_mut().zip(&*term).for_each(|(sum, term)| *sum ^= term);
    }
}
