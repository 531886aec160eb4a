//! Random decimal digits from random bits.
//!
//! A digit is a random bit (its parity) and a random number modulo 5: the sum of seven numbers of six random
//! bits. The distribution of one of them has Fourier coefficients of size 1/64 (64 numbers are twelve times
//! all of 0 to 4, and four more). Those of a sum are products. So the sum of seven is uniform to within
//! 2^-42.

use polyclave_cipher::Wire;

use crate::tables::{sum_modulo_5, table};
use crate::wiring::Wiring;

/// Numbers in a sum.
const NUMBERS: usize = 7;
/// Bits of each.
const BITS: usize = 6;

/// Random bytes for a digit.
pub(crate) const RANDOM_BYTES: usize = (1 + NUMBERS * BITS).div_ceil(8);

/// Random digits as residues ([`crate::tables::residues`]): four layers.
pub(crate) fn random_digits(w: &mut Wiring, count: usize) -> Vec<Vec<Wire>> {
    (0..count).map(|_| random_digit(w)).collect()
}

fn random_digit(w: &mut Wiring) -> Vec<Wire> {
    let bits = w.random(8 * RANDOM_BYTES);
    let modulo = table("rest modulo 5", BITS as u8, 3, |x| x % 5);
    let mut numbers: Vec<Vec<Wire>> =
        bits[1..].chunks_exact(BITS).take(NUMBERS).map(|bits| w.lookup(&modulo, bits)).collect();
    while numbers.len() > 1 {
        numbers = numbers
            .chunks(2)
            .map(|pair| match pair {
                [x, y] => w.lookup(&sum_modulo_5(), &[&x[..], y].concat()),
                alone => alone[0].clone(),
            })
            .collect();
    }
    [&bits[..1], &numbers[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all 2^42 choices of bits for the sum, how many give each rest.
    #[test]
    fn sums_are_uniform_to_within_2_to_the_minus_42() {
        let one: Vec<u64> =
            (0..5).map(|rest| (0..1u64 << BITS).filter(|x| x % 5 == rest).count() as u64).collect();
        let sum_of = |x: &[u64]| -> Vec<u64> {
            (0..5).map(|rest| (0..5).map(|i| x[i] * one[(rest + 5 - i) % 5]).sum()).collect()
        };
        let sums = (1..NUMBERS).fold(one.clone(), |sums, _| sum_of(&sums));
        assert_eq!(sums.iter().sum::<u64>(), 1 << 42);
        let (least, most) = (sums.iter().min().expect("five"), sums.iter().max().expect("five"));
        assert!(most - least <= 1, "{sums:?}");
    }
}
