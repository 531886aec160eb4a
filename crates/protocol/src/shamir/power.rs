//! Computes x -> x^254 on vectors of shares: the part of each inversion method that comes after x is known in
//! shares.
//!
//! # Differences from the paper
//! The paper (4.1, Masking) and the VIFF note (1.1.1) set `b = 1 - product of (1 - a_i)`, which is 0 for a =
//! 0 and 1 for all others: the opposite of the b that they define and need. Here b is the product.
//!
//! *Views* uses the four products of Rivain and Prouff's power chain (Keller et al. 2017, section 3.1) and a
//! fact about openings: from a public z + r and shares of r, every image M(z) follows locally when shares of
//! M(r) do, and pseudorandom sharing gives them ([`super::prss`]). So a product that is opened under a mask
//! comes with all its squares.

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::Matrix;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::chain::Chain;
use super::masked_powers::EXPONENTS;
use super::opening::{Opening, Secret};
use super::prss::View;
use super::security::AdversaryModel;
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};
use crate::{Error, Result};

/// Shares of powers of random masks, made ahead and used from the front.
pub(super) struct Powers {
    /// Power by power; the mask itself first.
    pub(super) powers: Vec<Shares>,
    pub(super) spent: usize,
}

impl Powers {
    /// r, r^2, r^4 .. r^128 for masked exponentiation, by seven squarings, all values together: 7 operations
    /// a value, 7 rounds.
    pub(super) fn squares<S: AdversaryModel>(
        arithmetic: &mut Arithmetic<S>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Powers> {
        let identity = arithmetic.prss.view(&Matrix::identity(8));
        let mut powers = arithmetic.prss.random(count, &[identity], &arithmetic.pool);
        for i in 0..7 {
            let square = arithmetic.multiply(&[(&powers[i], &powers[i])], net)?.remove(0);
            powers.push(square);
        }
        Ok(Powers { powers, spent: 0 })
    }

    /// As a party keeps them: mask by mask, its powers.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let count = self.powers.first().map_or(0, |power| power.len());
        let mut items = Zeroizing::new(Vec::with_capacity(count * self.powers.len()));
        (0..count).for_each(|i| items.extend(self.powers.iter().map(|power| power[i])));
        items
    }

    /// From what [`save`](Powers::save) wrote of [`products`](Powers::products).
    pub(super) fn restore(items: &[u8], pool: &Pool) -> Powers {
        let width = EXPONENTS.len();
        let column = |k: usize| {
            let mut column = pool.take(items.len() / width);
            column.iter_mut().zip(items.chunks_exact(width)).for_each(|(byte, item)| *byte = item[k]);
            column
        };
        Powers { powers: (0..width).map(column).collect(), spent: 0 }
    }

    pub(super) fn spend(&mut self, count: usize) -> Result<Range<usize>> {
        let range = self.spent..self.spent + count;
        if range.end > self.powers[0].len() {
            return Err(Error::misuse("the batch was prepared for fewer lookups"));
        }
        self.spent = range.end;
        Ok(range)
    }
}

/// x^14 and x^240 from x and x^2: x^3 = x x^2 with (x^3)^4; then x^14 = x^12 x^2 and x^15 = x^12 x^3 with
/// (x^15)^16. Three operations, two rounds.
pub(super) fn rivain_prouff<S: AdversaryModel>(
    x: &[u8],
    x2: &[u8],
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<[Shares; 2]> {
    let [one, four, sixteen] = [0, 2, 4].map(|times| arithmetic.prss.view(&Matrix::frobenius(times)));
    let product = |a, b, views: &[&Arc<View>]| Opening {
        secret: Secret::Product(a, b),
        views: views.iter().map(|v| Arc::clone(v)).collect(),
    };
    let opened = arithmetic.open_masked(vec![product(x, x2, &[&one, &four])], net)?;
    let (x3, x12) = (opened.shares(0, 0, 0), opened.shares(0, 1, 0));
    let openings = vec![product(&x12, x2, &[&one]), product(&x12, &x3, &[&sixteen])];
    let opened = arithmetic.open_masked(openings, net)?;
    Ok([opened.shares(0, 0, 0), opened.shares(1, 0, 0)])
}

/// The products of an addition chain.
pub(super) fn by_chain<S: AdversaryModel>(
    x: Shares,
    chain: &Chain,
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<Shares> {
    let mut values = vec![x];
    for round in chain.rounds() {
        let products: Vec<(&[u8], &[u8])> =
            round.iter().map(|(a, b)| (&values[*a][..], &values[*b][..])).collect();
        let products = arithmetic.multiply(&products, net)?;
        values.extend(products);
    }
    Ok(values.pop().unwrap_or_default())
}

/// The product of shared vectors, by a tree.
fn product_of<S: AdversaryModel>(
    mut factors: Vec<Shares>,
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<Shares> {
    while factors.len() > 1 {
        let pairs: Vec<(&[u8], &[u8])> = factors.chunks_exact(2).map(|p| (&p[0][..], &p[1][..])).collect();
        let products = arithmetic.multiply(&pairs, net)?;
        let odd = if factors.len() % 2 == 1 { factors.pop() } else { None };
        factors = products.into_iter().chain(odd).collect();
    }
    Ok(factors.pop().unwrap_or_default())
}

/// Masks that may be zero one after another.
const MAX_TRIES: usize = 16;

/// Opens a random multiple of a + \[a = 0\] and inverts that (Damgard and Keller 2010, section 4.1, Masking).
/// `shares` are those of a and of its 8 bits.
///
/// Opened is a non-zero value times a uniform r. It is 0 only for r = 0, which says nothing about a; those
/// positions draw another r, together.
pub(super) fn by_masking<S: AdversaryModel>(
    mut shares: Vec<Shares>,
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<Shares> {
    let mut a = shares.remove(0);
    shares.iter_mut().for_each(|bit| bit.iter_mut().for_each(|share| *share ^= 1));
    let is_zero = product_of(shares, arithmetic, net)?;
    a.iter_mut().zip(is_zero.iter()).for_each(|(a, b)| *a ^= b);

    let identity = arithmetic.prss.view(&Matrix::identity(8));
    let mut inverse = arithmetic.pool.take(a.len());
    let mut open: Vec<usize> = (0..a.len()).collect();
    let mut rest = a;
    let mut tries = 0;
    while !open.is_empty() {
        // Honest parties come so far with probability 2^-128 a position; a party that sends wrong shares
        // could go on for ever.
        tries += 1;
        if tries > MAX_TRIES {
            return Err(Error::System(format!(
                "a masked value was zero {MAX_TRIES} times in a row: a party cheats"
            )));
        }
        let r =
            arithmetic.prss.random(rest.len(), std::slice::from_ref(&identity), &arithmetic.pool).remove(0);
        let product = arithmetic.multiply(&[(&rest, &r)], net)?.remove(0);
        let public = arithmetic.open_plain(&product, net)?;
        let mut quotient = arithmetic.pool.take(rest.len());
        multiply(&mut quotient, &inverses(&public), &r);
        let mut retry = Vec::new();
        let zeros = public.iter().filter(|c| **c == 0).count();
        let mut retried = arithmetic.pool.take(zeros);
        // Which positions retry is public: it depends on opened values only.
        for (i, at) in open.into_iter().enumerate() {
            if public[i] == 0 {
                retried[retry.len()] = rest[i];
                retry.push(at);
            } else {
                inverse[at] = quotient[i];
            }
        }
        (open, rest) = (retry, retried);
    }
    inverse.iter_mut().zip(is_zero.iter()).for_each(|(inverse, b)| *inverse ^= b);
    Ok(inverse)
}

/// Opens x + r once and multiplies the powers x^2 .. x^128 that follow from it (Damgard and Keller 2010,
/// section 4.1, Masked Exponentiation). Online 7 operations in 4 rounds.
pub(super) fn by_masked_exponentiation<S: AdversaryModel>(
    x: &[u8],
    powers: &mut Powers,
    arithmetic: &mut Arithmetic<S>,
    net: &mut dyn Net,
) -> Result<Shares> {
    let range = powers.spend(x.len())?;
    let mut masked = arithmetic.pool.take(x.len());
    masked.iter_mut().zip(x).zip(&powers.powers[0][range.clone()]).for_each(|((m, x), r)| *m = x ^ r);
    let public = arithmetic.open_plain(&masked, net)?;
    let identity = Map::identity();
    let factors = (1..8).map(|i| {
        let square = Map::new(Matrix::frobenius(i as u32).columns());
        let r = &powers.powers[i][range.clone()];
        let mut power = arithmetic.pool.take(x.len());
        combine(&mut power, &[Term { src: &public, map: &square }, Term { src: r, map: &identity }], 0);
        power
    });
    let factors = factors.collect();
    product_of(factors, arithmetic, net)
}

/// The inverses of public values, and 0 of 0: c^254 by four products and squarings.
fn inverses(public: &[u8]) -> Vec<u8> {
    let squared = |x: &[u8], times| {
        let mut y = vec![0; x.len()];
        combine(&mut y, &[Term { src: x, map: &Map::new(Matrix::frobenius(times).columns()) }], 0);
        y
    };
    let times = |a: &[u8], b: &[u8]| {
        let mut y = vec![0; a.len()];
        multiply(&mut y, a, b);
        y
    };
    let x2 = squared(public, 1);
    let x3 = times(public, &x2);
    let x12 = squared(&x3, 2);
    let x14 = times(&x12, &x2);
    let x15 = times(&x12, &x3);
    times(&squared(&x15, 4), &x14)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_inverses_invert() {
        let all: Vec<u8> = (0..=255).collect();
        let expected: Vec<u8> = all.iter().map(|x| polyclave_field::Gf256(*x).inverse_or_zero().0).collect();
        assert_eq!(inverses(&all), expected);
    }
}
