//! Products by [`crate::carryless`], and the reduction that all forms share.

use super::parts::{PARTS, PLACES};
use crate::Modulus;
use crate::carryless::carryless;

/// See [`super::reduce`] and [`crate::words`].
#[inline]
pub(super) fn reduce<M: Modulus>(sum: u128) -> u64 {
    let high = (sum >> M::DEGREE) as u64;
    let quotient = M::TAPS.iter().fold(high, |quotient, tap| quotient ^ (high >> (M::DEGREE - tap)));
    let low = M::TAPS.iter().fold(sum as u64 ^ quotient, |low, tap| low ^ (quotient << tap));
    low & (u64::MAX >> (u64::BITS - M::DEGREE))
}

/// See [`super::multiply`]; lengths were checked there.
pub(super) fn multiply<M: Modulus>(dst: &mut [u64], a: &[u64], b: &[u64]) {
    for ((product, a), b) in dst.iter_mut().zip(a).zip(b) {
        *product = reduce::<M>(carryless(*a, *b));
    }
}

/// See [`super::combine`]; lengths were checked there.
pub(super) fn combine<M: Modulus>(dst: &mut [u64], terms: &[(&[u64], u64)], constant: u64) {
    dst.fill(constant);
    for (src, factor) in terms {
        for (sum, x) in dst.iter_mut().zip(*src) {
            // Factors are public.
            *sum ^= if *factor == 1 { *x } else { reduce::<M>(carryless(*x, *factor)) };
        }
    }
}

/// See [`super::inner_product_unreduced`]; lengths were checked there.
pub(super) fn inner_product(a: &[u64], b: &[u64]) -> u128 {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum ^ carryless(*a, *b))
}

/// See [`super::parts::products`]; lengths were checked there.
pub(super) fn products_of_parts(u: &[u64], w: &[u64]) -> [u128; PLACES] {
    let mut sums = [0; PLACES];
    for at in 0..u.len() / PARTS {
        let (u, w) = (values_of(parts_at(u, at)), values_of(parts_at(w, at)));
        for ((sum, u), w) in sums.iter_mut().zip(u).zip(w) {
            *sum ^= carryless(u, w);
        }
    }
    sums
}

/// A variable after the other, the last one first, becomes a digit of base three.
fn values_of(parts: [u64; PARTS]) -> [u64; PLACES] {
    let mut all = [0; PLACES];
    all[..PARTS].copy_from_slice(&parts);
    let (mut digits, mut bits) = (1, PARTS);
    while bits > 1 {
        let known = all;
        bits /= 2;
        for high in 0..bits {
            let pair = &known[2 * high * digits..][..2 * digits];
            for low in 0..digits {
                let (zero, one) = (pair[low], pair[digits + low]);
                all[3 * high * digits + low] = zero;
                all[(3 * high + 1) * digits + low] = one;
                all[(3 * high + 2) * digits + low] = zero ^ one;
            }
        }
        digits *= 3;
    }
    all
}

fn parts_at(all: &[u64], at: usize) -> [u64; PARTS] {
    core::array::from_fn(|part| all[part * (all.len() / PARTS) + at])
}

/// See [`super::parts::fold`]; lengths were checked there.
pub(super) fn fold_parts<M: Modulus>(all: &mut [u64], factors: [u64; PARTS - 1]) {
    for at in 0..all.len() / PARTS {
        let [first, others @ ..] = parts_at(all, at);
        let products = others.iter().zip(factors).map(|(other, factor)| carryless(first ^ other, factor));
        all[at] = first ^ reduce::<M>(products.fold(0, |sum, product| sum ^ product));
    }
}
