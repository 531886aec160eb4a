//! The Feistel network of FF1 (SP 800-38G, section 5.1, algorithm 7; its inverse, algorithm 8) on many
//! strings at once, without its rounds.
//!
//! A half of a string is a number below 2^96. Round i takes the one half, b bytes, and gives a sum of d bytes
//! for the other, modulo radix^m.
//!
//! This runs at the client, which knows the values; others who can measure its time do not. A division of 128
//! bits takes a time that depends on its operands, so nothing is divided here that depends on a value:
//! multiples of public numbers are subtracted, each by a mask ([`subtract_if_not_larger`]).

use polyclave_cipher::ff1::{Ff1, ROUNDS};
use polyclave_kernels::secret::mask;
use zeroize::Zeroizing;

/// Strings on their way through the rounds.
pub struct Feistel {
    ff1: Ff1,
    inverse: bool,
    /// Rounds that were taken.
    taken: u8,
    /// A and B of each string.
    halves: Zeroizing<Vec<[u128; 2]>>,
}

impl Feistel {
    /// Strings as their digits, as many as `ff1` has.
    pub fn new<'d>(ff1: Ff1, inverse: bool, strings: impl Iterator<Item = &'d [u8]>) -> Feistel {
        let number = |digits: &[u8]| {
            digits.iter().fold(0, |number, digit| number * u128::from(ff1.radix()) + u128::from(*digit))
        };
        let halves = strings.map(|digits| {
            let (a, b) = digits.split_at(ff1.first_digits() as usize);
            [number(a), number(b)]
        });
        Feistel { ff1, inverse, taken: 0, halves: Zeroizing::new(halves.collect()) }
    }

    pub(crate) fn ff1(&self) -> Ff1 {
        self.ff1
    }

    pub(crate) fn is_inverse(&self) -> bool {
        self.inverse
    }

    /// How many strings there are.
    pub(crate) fn values(&self) -> usize {
        self.halves.len()
    }

    /// Bytes of all sums of a round.
    pub fn sum_bytes(&self) -> usize {
        self.values() * self.ff1.sum_bytes()
    }

    /// The number of the next round.
    pub(crate) fn round(&self) -> u8 {
        if self.inverse { ROUNDS - 1 - self.taken } else { self.taken }
    }

    /// What the next round takes of each string.
    pub fn numbers(&self) -> Zeroizing<Vec<u8>> {
        let bytes = self.ff1.number_bytes();
        let mut numbers = Zeroizing::new(Vec::with_capacity(self.values() * bytes));
        for [a, b] in self.halves.iter() {
            let number = if self.inverse { a } else { b };
            numbers.extend_from_slice(&number.to_be_bytes()[size_of::<u128>() - bytes..]);
        }
        numbers
    }

    /// Takes a round, with the sum that it gives for each string.
    pub fn advance(&mut self, sums: &[u8]) {
        let strings = self.ff1.strings_in(self.round());
        let sum_bits = 8 * self.ff1.sum_bytes() as u32;
        for ([a, b], sum) in self.halves.iter_mut().zip(sums.chunks(self.ff1.sum_bytes())) {
            // At most 16 bytes.
            let sum = sum.iter().fold(0, |sum: u128, byte| sum << 8 | u128::from(*byte));
            let sum = remainder(sum, sum_bits, strings);
            let mut changed = if self.inverse { *b + strings - sum } else { *a + sum };
            subtract_if_not_larger(&mut changed, strings);
            (*a, *b) = if self.inverse { (changed, *a) } else { (*b, changed) };
        }
        self.taken += 1;
    }

    /// The digits of each string.
    pub fn digits(&self) -> Vec<Zeroizing<Vec<u8>>> {
        let (first, second) = (self.ff1.first_digits() as usize, self.ff1.second_digits() as usize);
        let string = |[a, b]: &[u128; 2]| {
            let mut digits = Zeroizing::new(vec![0; first + second]);
            write(*a, self.ff1.radix(), &mut digits[..first]);
            write(*b, self.ff1.radix(), &mut digits[first..]);
            digits
        };
        self.halves.iter().map(string).collect()
    }
}

/// Subtracts a public number from a secret one if it is not larger. Returns all ones then, else zero.
fn subtract_if_not_larger(number: &mut u128, part: u128) -> u128 {
    let (difference, is_larger) = number.overflowing_sub(part);
    let subtracted = mask(u128::from(!is_larger));
    *number ^= (*number ^ difference) & subtracted;
    subtracted
}

/// A secret number of so many bits modulo a public one, which has no more.
fn remainder(mut number: u128, bits: u32, modulus: u128) -> u128 {
    // The number is below twice the modulus, shifted so far; then below the modulus, shifted so far; then
    // below half of that ..
    let furthest = bits - 1 - modulus.ilog2();
    for shift in (0..=furthest).rev() {
        subtract_if_not_larger(&mut number, modulus << shift);
    }
    number
}

/// A secret number as digits, as many as it has at most.
fn write(mut number: u128, radix: u32, digits: &mut [u8]) {
    let mut power = u128::from(radix).pow(digits.len() as u32);
    for digit in digits {
        power /= u128::from(radix);
        *digit = 0;
        for bit in (0..=(radix - 1).ilog2()).rev() {
            let subtracted = subtract_if_not_larger(&mut number, power << bit);
            *digit |= subtracted as u8 & 1 << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use fpe::ff1::{FF1, FlexibleNumeralString};

    use super::*;
    use crate::operations::tokenize::Alphabet;

    const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94";

    /// The sums of a round, in the clear.
    fn sums<C: BlockCipherEncrypt>(cipher: &C, feistel: &Feistel, tweak: &[u8]) -> Vec<u8> {
        let ff1 = feistel.ff1();
        let numbers = feistel.numbers();
        let mut sums = Vec::new();
        for number in numbers.chunks(ff1.number_bytes()) {
            let mut blocks = ff1.blocks(tweak, feistel.round());
            let last = blocks.last_mut().expect("a block");
            last[16 - number.len()..].copy_from_slice(number);
            blocks.insert(0, ff1.first_block(tweak.len()));
            let mut chain = vec![0; 16];
            for block in blocks {
                chain.iter_mut().zip(block).for_each(|(chain, byte)| *chain ^= byte);
                let mut encrypted = Array::try_from(&chain[..]).expect("a block");
                cipher.encrypt_block(&mut encrypted);
                chain = encrypted.to_vec();
            }
            sums.extend(&chain[..ff1.sum_bytes()]);
        }
        sums
    }

    fn exchanged<C: BlockCipherEncrypt>(
        cipher: &C,
        (radix, tweak, inverse): (u32, &[u8], bool),
        strings: &[Vec<u8>],
    ) -> Vec<Vec<u8>> {
        let ff1 = Ff1::new(radix, strings[0].len() as u32).expect("it fits");
        let mut feistel = Feistel::new(ff1, inverse, strings.iter().map(Vec::as_slice));
        for _ in 0..ROUNDS {
            let sums = sums(cipher, &feistel, tweak);
            feistel.advance(&sums);
        }
        feistel.digits().iter().map(|digits| digits.to_vec()).collect()
    }

    /// The samples 1 to 9 that NIST publishes for FF1.
    #[test]
    fn samples_of_the_standard_come_out() {
        let (none, ten, eleven) = ("", "39383736353433323130", "3737373770717273373737");
        let (digits, letters) = ("0123456789", "0123456789abcdefghi");
        for (bytes, radix, tweak, value, token) in [
            (16, 10, none, digits, "2433477484"),
            (16, 10, ten, digits, "6124200773"),
            (16, 36, eleven, letters, "a9tv40mll9kdu509eum"),
            (24, 10, none, digits, "2830668132"),
            (24, 10, ten, digits, "2496655549"),
            (24, 36, eleven, letters, "xbj3kv35jrawxv32ysr"),
            (32, 10, none, digits, "6657667009"),
            (32, 10, ten, digits, "1001623463"),
            (32, 36, eleven, letters, "xs8a0azh2avyalyzuwd"),
        ] {
            let (key, tweak) = (hex::decode(KEY).expect("hex"), hex::decode(tweak).expect("hex"));
            let alphabet = Alphabet::of_radix(radix).expect("an alphabet");
            let of = |text| vec![alphabet.digits(text, false).expect("its characters").to_vec()];
            let run = |inverse, strings: &[Vec<u8>]| match bytes {
                16 => exchanged(
                    &aes::Aes128::new_from_slice(&key[..16]).expect("a key"),
                    (radix, &tweak, inverse),
                    strings,
                ),
                24 => exchanged(
                    &aes::Aes192::new_from_slice(&key[..24]).expect("a key"),
                    (radix, &tweak, inverse),
                    strings,
                ),
                _ => exchanged(
                    &aes::Aes256::new_from_slice(&key).expect("a key"),
                    (radix, &tweak, inverse),
                    strings,
                ),
            };
            assert_eq!(run(false, &of(value)), of(token), "{bytes} {radix}");
            assert_eq!(run(true, &of(token)), of(value), "{bytes} {radix}");
        }
    }

    /// Numbers from a fixed seed.
    struct Numbers(blake3::OutputReader);

    impl Numbers {
        fn below(&mut self, end: u32) -> u32 {
            let mut bytes = [0; 8];
            self.0.fill(&mut bytes);
            (u64::from_le_bytes(bytes) % u64::from(end)) as u32
        }

        fn bytes(&mut self, len: usize) -> Vec<u8> {
            let mut bytes = vec![0; len];
            self.0.fill(&mut bytes);
            bytes
        }
    }

    /// All alphabets, lengths and tweaks that are allowed.
    #[test]
    fn random_strings_are_exchanged_as_by_another_program() {
        let mut random = Numbers(blake3::Hasher::new().update(b"strings for ff1").finalize_xof());
        let mut lengths = std::collections::BTreeSet::new();
        for case in 0..1500 {
            let radix = 2 + random.below(35);
            let allowed: Vec<u32> = (0..200).filter(|length| Ff1::new(radix, *length).is_ok()).collect();
            let length = allowed[random.below(allowed.len() as u32) as usize];
            let tweak_bytes = random.below(65) as usize;
            let (key, tweak) = (random.bytes(16), random.bytes(tweak_bytes));
            let mut string = || (0..length).map(|_| random.below(radix) as u8).collect::<Vec<u8>>();
            let strings = [string(), string()];
            let cipher = aes::Aes128::new_from_slice(&key).expect("a key");
            let tokens = exchanged(&cipher, (radix, &tweak, false), &strings);
            let other = FF1::<aes_of_fpe::Aes128>::new(&key, radix).expect("a key and a radix");
            for (string, token) in strings.iter().zip(&tokens) {
                let string: Vec<u16> = string.iter().map(|digit| u16::from(*digit)).collect();
                let expected = other.encrypt(&tweak, &FlexibleNumeralString::from(string)).expect("it fits");
                let expected: Vec<u16> = expected.into();
                let token: Vec<u16> = token.iter().map(|digit| u16::from(*digit)).collect();
                assert_eq!(token, expected, "case {case}: {length} digits to {radix}");
            }
            assert_eq!(exchanged(&cipher, (radix, &tweak, true), &tokens), strings, "case {case}");
            lengths.insert(length);
        }
        assert!(lengths.len() > 100, "most lengths were tried: {lengths:?}");
    }
}
