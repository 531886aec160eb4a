//! The compression function of SHA-256 (FIPS 180-4, section 6.2.2).
//!
//! Choice and majority take one AND a bit. What additions take is the caller's choice ([`Additions`]).

use super::words::{add, choice, find_carries, majority, number, save_carries};
use super::{Bit, BooleanBuilder, Word};
use crate::Circuit;

/// Bytes of a block.
pub const BLOCK: usize = 64;

/// Bytes of the schedule of a block.
pub const SCHEDULE: usize = 256;

/// How numbers are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Additions {
    /// Carries ripple: one AND a bit and number. A round begins while the carries of the one before are still
    /// on their way, 25 levels later.
    FewAnds,
    /// Carries are found as prefixes: a round takes about 7 levels. Two ANDs for one.
    FewLevels,
}

/// `block` (512 bits) and `state` (256 bits) to the next `state`, in few ANDs.
pub fn compression() -> Circuit {
    let mut b = BooleanBuilder::new("sha-256");
    let block = b.input_words("block", 16, 32);
    let state = b.input_words("state", 8, 32);
    let sums = compressed(&mut b, Additions::FewAnds, block, &state);
    b.output_words("state", &sums);
    b.finish()
}

/// The state after a block.
pub(crate) fn compressed(
    b: &mut BooleanBuilder,
    how: Additions,
    block: Vec<Word>,
    state: &[Word],
) -> Vec<Word> {
    let mut schedule = block;
    for t in 16..64 {
        let s0 = rotations(b, &schedule[t - 15], [7, 18], Third::Shift(3));
        let s1 = rotations(b, &schedule[t - 2], [17, 19], Third::Shift(10));
        schedule.push(sum(b, how, &[&schedule[t - 16], &s0, &schedule[t - 7], &s1]));
    }
    let constants = round_constants().map(|constant| number(constant.into(), 32));
    let added = schedule.into_iter().zip(constants).map(|(word, constant)| vec![word, constant]);
    rounds(b, how, added, state)
}

/// The state after a block whose schedule is given as [`schedule`] writes it.
pub(crate) fn compressed_by_schedule(
    b: &mut BooleanBuilder,
    how: Additions,
    schedule: Vec<Word>,
    state: &[Word],
) -> Vec<Word> {
    rounds(b, how, schedule.into_iter().map(|word| vec![word]), state)
}

/// The schedule of a block that everybody knows: 64 words, each with the constant of its round added.
pub fn schedule(block: &[u8; BLOCK]) -> [u8; SCHEDULE] {
    let mut words: Vec<u32> = block.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    for t in 16..64 {
        let (x, y) = (words[t - 15], words[t - 2]);
        let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
        let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
        words.push(words[t - 16].wrapping_add(s0).wrapping_add(words[t - 7]).wrapping_add(s1));
    }
    let mut bytes = [0; SCHEDULE];
    for ((word, constant), bytes) in words.iter().zip(round_constants()).zip(bytes.as_chunks_mut().0) {
        *bytes = word.wrapping_add(constant).to_be_bytes();
    }
    bytes
}

/// The block of such a schedule: its first words, without the constants.
pub fn scheduled(schedule: &[u8; SCHEDULE]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let words = schedule.as_chunks().0.iter().zip(round_constants());
    for (bytes, (word, constant)) in block.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = u32::from_be_bytes(*word).wrapping_sub(constant).to_be_bytes();
    }
    block
}

/// 64 rounds, and the addition of the state from before. In each round the given words are added.
fn rounds(
    b: &mut BooleanBuilder,
    how: Additions,
    added: impl Iterator<Item = Vec<Word>>,
    state: &[Word],
) -> Vec<Word> {
    let mut working = state.to_vec();
    for added in added {
        let (new_a, new_e) = match how {
            Additions::FewAnds => round_of_few_ands(b, &added, &working),
            Additions::FewLevels => round_of_few_levels(b, &added, &working),
        };
        working.rotate_right(1);
        (working[0], working[4]) = (new_a, new_e);
    }
    state.iter().zip(&working).map(|(old, new)| sum(b, how, &[old, new])).collect()
}

/// The new a and e of a round.
fn round_of_few_ands(b: &mut BooleanBuilder, added: &[Word], working: &[Word]) -> (Word, Word) {
    let [x, y, z, d, e, f, g, h] = working else { unreachable!("there are eight") };
    let s1 = rotations(b, e, [6, 11], Third::Rotation(25));
    let choice: Word = (0..32).map(|i| choice(b, e[i], f[i], g[i])).collect();
    let numbers: Vec<&Word> = added.iter().chain([h, &choice, &s1]).collect();
    let first = add(b, &numbers);
    let s0 = rotations(b, x, [2, 13], Third::Rotation(22));
    let majority: Word = (0..32).map(|i| majority(b, x[i], y[i], z[i])).collect();
    let new_e = add(b, &[d, &first]);
    (add(b, &[&majority, &s0, &first]), new_e)
}

/// The same. The next round begins when e is there, and what is known before is added before: from e to e
/// there are the choice, the last carries that are saved, and the prefixes. a = e - d + sigma + majority
/// follows, as many levels later in every round.
fn round_of_few_levels(b: &mut BooleanBuilder, added: &[Word], working: &[Word]) -> (Word, Word) {
    let [x, y, z, d, e, f, g, h] = working else { unreachable!("there are eight") };
    let s1 = rotations(b, e, [6, 11], Third::Rotation(25));
    let choice: Word = (0..32).map(|i| choice(b, e[i], f[i], g[i])).collect();
    let numbers: Vec<&Word> = added.iter().chain([h, d, &s1, &choice]).collect();
    let new_e = sum(b, Additions::FewLevels, &numbers);
    let s0 = rotations(b, x, [2, 13], Third::Rotation(22));
    let majority: Word = (0..32).map(|i| majority(b, x[i], y[i], z[i])).collect();
    // -d is !d + 1, and no carry goes into the lowest bit.
    let not_d: Word = d.iter().map(|bit| !*bit).collect();
    let (rest, mut carries) = save_carries(b, &new_e, &not_d, &s0);
    carries[0] = Bit::ONE;
    (sum(b, Additions::FewLevels, &[&rest, &carries, &majority]), new_e)
}

/// The sum of at least two numbers. Those that are ready late go last.
fn sum(b: &mut BooleanBuilder, how: Additions, numbers: &[&Word]) -> Word {
    let [first, second, others @ ..] = numbers else { unreachable!("there are two") };
    if how == Additions::FewAnds {
        return add(b, numbers);
    }
    let (mut sum, mut carries) = (first.to_vec(), second.to_vec());
    for number in others {
        (sum, carries) = save_carries(b, &sum, &carries, number);
    }
    find_carries(b, &sum, &carries)
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
    primes().take(64).map(|prime| root(prime << 96, 3) as u32)
}

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes (5.3.3): the state
/// with which a message begins.
pub(crate) fn initial_state() -> impl Iterator<Item = u32> {
    primes().take(8).map(|prime| root(prime << 64, 2) as u32)
}

fn primes() -> impl Iterator<Item = u128> {
    (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// The largest number whose power is at most x, for roots below 2^36.
fn root(x: u128, power: u32) -> u128 {
    (0..36)
        .rev()
        .map(|i| 1 << i)
        .fold(0, |root: u128, bit: u128| if (root | bit).pow(power) <= x { root | bit } else { root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_standard() {
        let constants: Vec<u32> = round_constants().collect();
        assert_eq!((constants[0], constants[1], constants[63]), (0x428a_2f98, 0x7137_4491, 0xc671_78f2));
        let initial: Vec<u32> = initial_state().collect();
        assert_eq!((initial[0], initial[7]), (0x6a09_e667, 0x5be0_cd19));
    }
}
