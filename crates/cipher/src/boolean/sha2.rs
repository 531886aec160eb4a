//! The compression functions of SHA-2 (FIPS 180-4, sections 6.2.2 and 6.4.2). SHA-384 and SHA-512 have words
//! of 64 bits where SHA-256 has 32, more rounds, and other distances of rotations ([`Sha2`]).
//!
//! Choice and majority take one AND a bit. What additions take is the caller's choice ([`Additions`]).

mod constants;

use super::words::{add, choice, find_carries, majority, number, save_carries};
use super::{Bit, BooleanBuilder, Word};
use crate::Circuit;

/// A hash of the family. SHA-384 is SHA-512 with another state at the beginning and a shorter result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sha2 {
    /// With words of 32 bits.
    Sha256,
    /// With words of 64 bits.
    Sha384,
    /// With words of 64 bits.
    Sha512,
}

impl Sha2 {
    /// All that are here.
    pub const ALL: [Sha2; 3] = [Sha2::Sha256, Sha2::Sha384, Sha2::Sha512];

    /// The hash with the same compression function: SHA-512 for SHA-384.
    pub const fn compression(self) -> Sha2 {
        match self {
            Sha2::Sha256 => Sha2::Sha256,
            Sha2::Sha384 | Sha2::Sha512 => Sha2::Sha512,
        }
    }

    /// Bytes of a word.
    pub(crate) const fn word_bytes(self) -> usize {
        match self {
            Sha2::Sha256 => 4,
            Sha2::Sha384 | Sha2::Sha512 => 8,
        }
    }

    /// Bits of a word.
    pub(crate) const fn word_bits(self) -> usize {
        8 * self.word_bytes()
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        16 * self.word_bytes()
    }

    /// Bytes of a state.
    pub const fn state_bytes(self) -> usize {
        8 * self.word_bytes()
    }

    /// Bytes of a hash: the first ones of the last state.
    pub const fn hash_bytes(self) -> usize {
        match self {
            Sha2::Sha256 => 32,
            Sha2::Sha384 => 48,
            Sha2::Sha512 => 64,
        }
    }

    /// Bytes of the schedule of a block.
    pub const fn schedule_bytes(self) -> usize {
        self.rounds() * self.word_bytes()
    }

    const fn rounds(self) -> usize {
        match self {
            Sha2::Sha256 => 64,
            Sha2::Sha384 | Sha2::Sha512 => 80,
        }
    }

    /// The functions of rounds: Sigma 0 and 1.
    const fn of_rounds(self) -> [Sigma; 2] {
        let [zero, one] = match self {
            Sha2::Sha256 => [[2, 13, 22], [6, 11, 25]],
            Sha2::Sha384 | Sha2::Sha512 => [[28, 34, 39], [14, 18, 41]],
        };
        [Sigma { by: zero, shifts: false }, Sigma { by: one, shifts: false }]
    }

    /// The functions of the schedule: sigma 0 and 1.
    const fn of_schedule(self) -> [Sigma; 2] {
        let [zero, one] = match self {
            Sha2::Sha256 => [[7, 18, 3], [17, 19, 10]],
            Sha2::Sha384 | Sha2::Sha512 => [[1, 8, 7], [19, 61, 6]],
        };
        [Sigma { by: zero, shifts: true }, Sigma { by: one, shifts: true }]
    }

    /// The constants of the rounds, in the lower bits.
    fn constants(self) -> impl Iterator<Item = u64> {
        constants::of_rounds().take(self.rounds()).map(move |constant| constant >> (64 - self.word_bits()))
    }

    /// The state with which a message begins.
    pub(crate) fn initial_state(self) -> impl Iterator<Item = u64> {
        let skipped = if self == Sha2::Sha384 { 8 } else { 0 };
        constants::of_states().skip(skipped).take(8).map(move |word| word >> (64 - self.word_bits()))
    }

    /// Words, big-endian.
    pub(crate) fn words(self, bytes: &[u8]) -> impl Iterator<Item = u64> {
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        bytes.chunks(self.word_bytes()).map(word)
    }
}

/// A sum of two rotations of a word to the right and a third one, or a shift.
#[derive(Clone, Copy)]
struct Sigma {
    by: [usize; 3],
    /// Whether the third is a shift.
    shifts: bool,
}

/// How numbers are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Additions {
    /// Carries ripple: one AND a bit and number. A round begins while the carries of the one before are still
    /// on their way, 25 levels later with words of 32 bits.
    FewAnds,
    /// Carries are found as prefixes: a round takes about 7 levels, or 8 with words of 64 bits. Two ANDs for
    /// one.
    FewLevels,
}

/// `block` (512 bits) and `state` (256 bits) to the next `state` of SHA-256, in few ANDs.
pub fn sha256_compression() -> Circuit {
    let mut b = BooleanBuilder::new("sha-256");
    let block = b.input_words("block", 16, 32);
    let state = b.input_words("state", 8, 32);
    let sums = compressed(&mut b, Sha2::Sha256, Additions::FewAnds, block, &state);
    b.output_words("state", &sums);
    b.finish()
}

/// The state after a block.
pub(crate) fn compressed(
    b: &mut BooleanBuilder,
    hash: Sha2,
    how: Additions,
    block: Vec<Word>,
    state: &[Word],
) -> Vec<Word> {
    let [zero, one] = hash.of_schedule();
    let mut schedule = block;
    for t in 16..hash.rounds() {
        let s0 = sigma(b, &schedule[t - 15], zero);
        let s1 = sigma(b, &schedule[t - 2], one);
        schedule.push(sum(b, how, &[&schedule[t - 16], &s0, &schedule[t - 7], &s1]));
    }
    let constants = hash.constants().map(|constant| number(constant, hash.word_bits()));
    let added = schedule.into_iter().zip(constants).map(|(word, constant)| vec![word, constant]);
    rounds(b, (hash, how), added, state)
}

/// The state after a block whose schedule is given as [`schedule`] writes it.
pub(crate) fn compressed_by_schedule(
    b: &mut BooleanBuilder,
    hash: Sha2,
    how: Additions,
    schedule: Vec<Word>,
    state: &[Word],
) -> Vec<Word> {
    rounds(b, (hash, how), schedule.into_iter().map(|word| vec![word]), state)
}

/// The schedule of a block that everybody knows: a word for each round, with the constant of the round added.
pub fn schedule(hash: Sha2, block: &[u8]) -> Vec<u8> {
    let (width, mask) = (hash.word_bits(), u64::MAX >> (64 - hash.word_bits()));
    let of = |Sigma { by: [first, second, third], .. }, x: u64| {
        let rotated = |by: usize| x >> by | x << (width - by);
        (rotated(first) ^ rotated(second) ^ x >> third) & mask
    };
    let [zero, one] = hash.of_schedule();
    let mut words: Vec<u64> = hash.words(block).collect();
    for t in 16..hash.rounds() {
        let (s0, s1) = (of(zero, words[t - 15]), of(one, words[t - 2]));
        let sum = words[t - 16].wrapping_add(s0).wrapping_add(words[t - 7]).wrapping_add(s1);
        words.push(sum & mask);
    }
    let sums = words.iter().zip(hash.constants()).map(|(word, constant)| word.wrapping_add(constant));
    sums.flat_map(|sum| sum.to_be_bytes().into_iter().skip(8 - hash.word_bytes())).collect()
}

/// The block of such a schedule: its first words, without the constants.
pub fn scheduled(hash: Sha2, schedule: &[u8]) -> Vec<u8> {
    let words = hash.words(&schedule[..hash.block_bytes().min(schedule.len())]).zip(hash.constants());
    let words = words.map(|(word, constant)| word.wrapping_sub(constant));
    words.flat_map(|word| word.to_be_bytes().into_iter().skip(8 - hash.word_bytes())).collect()
}

/// The rounds, and the addition of the state from before. In each round the given words are added.
fn rounds(
    b: &mut BooleanBuilder,
    (hash, how): (Sha2, Additions),
    added: impl Iterator<Item = Vec<Word>>,
    state: &[Word],
) -> Vec<Word> {
    let mut working = state.to_vec();
    for added in added {
        let (new_a, new_e) = match how {
            Additions::FewAnds => round_of_few_ands(b, hash, &added, &working),
            Additions::FewLevels => round_of_few_levels(b, hash, &added, &working),
        };
        working.rotate_right(1);
        (working[0], working[4]) = (new_a, new_e);
    }
    state.iter().zip(&working).map(|(old, new)| sum(b, how, &[old, new])).collect()
}

/// The new a and e of a round.
fn round_of_few_ands(b: &mut BooleanBuilder, hash: Sha2, added: &[Word], working: &[Word]) -> (Word, Word) {
    let [x, y, z, d, e, f, g, h] = working else { unreachable!("there are eight") };
    let [zero, one] = hash.of_rounds();
    let s1 = sigma(b, e, one);
    let choice: Word = (0..e.len()).map(|i| choice(b, e[i], f[i], g[i])).collect();
    let numbers: Vec<&Word> = added.iter().chain([h, &choice, &s1]).collect();
    let first = add(b, &numbers);
    let s0 = sigma(b, x, zero);
    let majority: Word = (0..x.len()).map(|i| majority(b, x[i], y[i], z[i])).collect();
    let new_e = add(b, &[d, &first]);
    (add(b, &[&majority, &s0, &first]), new_e)
}

/// The same. The next round begins when e is there, and what is known before is added before: from e to e
/// there are the choice, the last carries that are saved, and the prefixes. a = e - d + sigma + majority
/// follows, as many levels later in every round.
fn round_of_few_levels(b: &mut BooleanBuilder, hash: Sha2, added: &[Word], working: &[Word]) -> (Word, Word) {
    let [x, y, z, d, e, f, g, h] = working else { unreachable!("there are eight") };
    let [zero, one] = hash.of_rounds();
    let s1 = sigma(b, e, one);
    let choice: Word = (0..e.len()).map(|i| choice(b, e[i], f[i], g[i])).collect();
    let numbers: Vec<&Word> = added.iter().chain([h, d, &s1, &choice]).collect();
    let new_e = sum(b, Additions::FewLevels, &numbers);
    let s0 = sigma(b, x, zero);
    let majority: Word = (0..x.len()).map(|i| majority(b, x[i], y[i], z[i])).collect();
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

/// What a function makes of a word.
fn sigma(b: &mut BooleanBuilder, x: &Word, Sigma { by: [first, second, third], shifts }: Sigma) -> Word {
    let width = x.len();
    let rotated = |i: usize, by: usize| x[(i + by) % width];
    let last = |i: usize| if shifts && i + third >= width { Bit::ZERO } else { rotated(i, third) };
    (0..width).map(|i| b.xor_all(&[rotated(i, first), rotated(i, second), last(i)])).collect()
}
