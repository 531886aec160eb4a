//! The compression function of SHA-256 (FIPS 180-4, section 6.2.2).
//!
//! Choice and majority take one AND a bit, and additions one a bit and number, the last bit apart. Additions
//! ripple: a round begins while the carries of the one before are still on their way.

use super::words::{add, choice, majority, number};
use super::{Bit, BooleanBuilder, Word};
use crate::Circuit;

/// `block` (512 bits) and `state` (256 bits) to the next `state`.
pub fn compression() -> Circuit {
    let mut b = BooleanBuilder::new("sha-256");
    let mut schedule = b.input_words("block", 16, 32);
    let state = b.input_words("state", 8, 32);
    for t in 16..64 {
        let s0 = rotations(&mut b, &schedule[t - 15], [7, 18], Third::Shift(3));
        let s1 = rotations(&mut b, &schedule[t - 2], [17, 19], Third::Shift(10));
        schedule.push(add(&mut b, &[&schedule[t - 16], &s0, &schedule[t - 7], &s1]));
    }
    let mut working = state.clone();
    for (word, constant) in schedule.iter().zip(round_constants()) {
        let [x, y, z, _, e, f, g, h] = &working[..] else { unreachable!("there are eight") };
        let constant = number(constant.into(), 32);
        let s1 = rotations(&mut b, e, [6, 11], Third::Rotation(25));
        let choice: Word = (0..32).map(|i| choice(&mut b, e[i], f[i], g[i])).collect();
        let first = add(&mut b, &[word, &constant, h, &choice, &s1]);
        let s0 = rotations(&mut b, x, [2, 13], Third::Rotation(22));
        let majority: Word = (0..32).map(|i| majority(&mut b, x[i], y[i], z[i])).collect();
        let new_e = add(&mut b, &[&working[3], &first]);
        let new_a = add(&mut b, &[&majority, &s0, &first]);
        working.rotate_right(1);
        (working[0], working[4]) = (new_a, new_e);
    }
    let sums: Vec<Word> = state.iter().zip(&working).map(|(old, new)| add(&mut b, &[old, new])).collect();
    b.output_words("state", &sums);
    b.finish()
}

/// What the functions sigma add as their third term.
enum Third {
    Rotation(usize),
    Shift(usize),
}

/// The sum of rotations to the right, the third one perhaps a shift.
fn rotations(b: &mut BooleanBuilder, x: &Word, by: [usize; 2], third: Third) -> Word {
    let bit = |i: usize| match third {
        Third::Rotation(by) => x[(i + by) % 32],
        Third::Shift(by) => x.get(i + by).copied().unwrap_or(Bit::ZERO),
    };
    (0..32).map(|i| b.xor_all(&[x[(i + by[0]) % 32], x[(i + by[1]) % 32], bit(i)])).collect()
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2).
fn round_constants() -> impl Iterator<Item = u32> {
    let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    primes.take(64).map(|prime| cube_root(prime << 96) as u32)
}

/// The largest number whose cube is at most x, for roots below 2^36.
fn cube_root(x: u128) -> u128 {
    (0..36)
        .rev()
        .map(|i| 1 << i)
        .fold(0, |root: u128, bit: u128| if (root | bit).pow(3) <= x { root | bit } else { root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_constants_are_those_of_the_standard() {
        let constants: Vec<u32> = round_constants().collect();
        assert_eq!((constants[0], constants[1], constants[63]), (0x428a_2f98, 0x7137_4491, 0xc671_78f2));
    }
}
