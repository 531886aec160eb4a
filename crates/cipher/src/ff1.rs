//! FF1 (SP 800-38G, section 5.1, algorithms 7 and 8): which blocks its rounds encrypt, and which strings it
//! takes.
//!
//! FF1 is a Feistel network of ten rounds on the two halves of a string of digits. A round encrypts one half
//! by a CBC-MAC with zeros as its initial block, of a block P and of Q. P says radix, length and the length
//! of the tweak. Q is the tweak, zeros, the number of the round, and the number that the half is, in b bytes.
//! The first d bytes of the result are a number, which is added to the other half.
//!
//! Here b is at most 12, so only the last block of Q depends on the round and on the half. Everything before
//! it is public and the same in all rounds.
//!
//! # Why every round can be given to whoever may use the key
//!
//! A CBC-MAC is a pseudorandom function as long as no input is the beginning of another one (Petrank and
//! Rackoff, "CBC MAC for real-time data sources", Journal of Cryptology 2000; cited from memory). P fixes b
//! and the length of the tweak, and so the length of the whole input; two inputs that begin alike are equally
//! long. So the output of a round, for any number of b bytes, says nothing of other inputs.

use crate::{Builder, Cipher, Circuit};

/// Rounds of the Feistel network.
pub const ROUNDS: u8 = 10;

/// The largest radix: the digits and 26 letters.
pub const MAX_RADIX: u32 = 36;

/// The most bytes of a tweak.
pub const MAX_TWEAK: usize = 64;

/// The fewest strings of a length, so that a token cannot be found by trying (SP 800-38G revision 1, draft,
/// section 5.1).
pub const MIN_DOMAIN: u128 = 1_000_000;

const BLOCK: usize = 16;

/// FF1 on strings of one length over one alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ff1 {
    radix: u32,
    length: u32,
    /// Strings that the second half can be.
    halves: u128,
    number: usize,
}

impl Ff1 {
    /// The error says why there is none for such strings.
    pub fn new(radix: u32, length: u32) -> Result<Ff1, String> {
        if !(2..=MAX_RADIX).contains(&radix) {
            return Err(format!("ff1 takes alphabets of 2 to {MAX_RADIX} characters, not of {radix}"));
        }
        let strings = u128::from(radix).checked_pow(length);
        if length < 2 || strings.is_some_and(|strings| strings < MIN_DOMAIN) {
            return Err(format!(
                "there are only {} strings of {length} characters over an alphabet of {radix}, and ff1 needs at least {MIN_DOMAIN}: tokens of \
                 fewer could be found by trying. Such a value has at least {} characters",
                strings.unwrap_or_default(),
                least_length(radix)
            ));
        }
        let halves = u128::from(radix).checked_pow(length.div_ceil(2));
        let number =
            halves.map(|halves| (halves - 1).checked_ilog2().map_or(0, |bits| bits as usize + 1).div_ceil(8));
        match (halves, number) {
            (Some(halves), Some(number)) if sum_bytes(number) <= BLOCK => {
                Ok(Ff1 { radix, length, halves, number })
            }
            _ => Err(format!(
                "a value of {length} characters over an alphabet of {radix} is too long: half of it must be a number below 2^96; cut it"
            )),
        }
    }

    /// Characters of the alphabet.
    pub fn radix(&self) -> u32 {
        self.radix
    }

    /// Digits of a string.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Digits of the first half: u.
    pub fn first_digits(&self) -> u32 {
        self.length / 2
    }

    /// Digits of the second half: v.
    pub fn second_digits(&self) -> u32 {
        self.length - self.first_digits()
    }

    /// The number of strings that a half can be which a round changes: radix^m.
    pub fn strings_in(&self, round: u8) -> u128 {
        let has_one_less = round.is_multiple_of(2) && self.first_digits() < self.second_digits();
        if has_one_less { self.halves / u128::from(self.radix) } else { self.halves }
    }

    /// Bytes of the number that a round takes: b.
    pub fn number_bytes(&self) -> usize {
        self.number
    }

    /// Bytes of the sum that a round gives: d.
    pub fn sum_bytes(&self) -> usize {
        sum_bytes(self.number)
    }

    /// P, for a tweak of `tweak` bytes.
    pub fn first_block(&self, tweak: usize) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..3].copy_from_slice(&[1, 2, 1]);
        block[3..6].copy_from_slice(&self.radix.to_be_bytes()[1..]);
        block[6..8].copy_from_slice(&[ROUNDS, self.first_digits() as u8]);
        block[8..12].copy_from_slice(&self.length.to_be_bytes());
        block[12..].copy_from_slice(&(tweak as u32).to_be_bytes());
        block
    }

    /// Blocks of Q before the last, with a tweak of `tweak` bytes.
    pub fn leading_blocks(&self, tweak: usize) -> usize {
        (tweak + 1 + self.number).div_ceil(BLOCK) - 1
    }

    /// Q in a round, with zeros where the number of the half is added.
    pub fn blocks(&self, tweak: &[u8], round: u8) -> Vec<[u8; BLOCK]> {
        let mut blocks = vec![0; BLOCK * (self.leading_blocks(tweak.len()) + 1)];
        blocks[..tweak.len()].copy_from_slice(tweak);
        let at = blocks.len() - self.number - 1;
        blocks[at] = round;
        blocks.as_chunks().0.to_vec()
    }
}

/// The fewest characters of a value over an alphabet of at least two.
pub fn least_length(radix: u32) -> u32 {
    (2..).find(|length| u128::from(radix).pow(*length) >= MIN_DOMAIN).unwrap_or(u32::MAX)
}

/// d, from b.
fn sum_bytes(number: usize) -> usize {
    4 * number.div_ceil(4) + 4
}

/// The last block of a round: `number`, of `number_bytes` bytes, `public`, `chain` and `round_keys` to `sum`,
/// of `sum_bytes` bytes. The number is added to the last bytes of the sum of `public` and `chain`. The result
/// is encrypted, and `sum` is the beginning of the ciphertext.
///
/// No input for the other bytes of the block comes with the number. So the party that gives the number cannot
/// influence them.
pub fn round(cipher: &Cipher, number_bytes: usize, sum_bytes: usize) -> Circuit {
    let (block, keys) = (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[1]);
    let (cells, bits) = (block.cells.len(), block.bits);
    let in_cells = |bytes: usize| 8 * bytes / usize::from(bits);
    let mut b = Builder::new(&format!("{}-ff1-{number_bytes}-{sum_bytes}", cipher.name));
    let number = b.input("number", in_cells(number_bytes), bits);
    let public = b.input("public", cells, bits);
    let chain = b.input("chain", cells, bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let mut sum = b.xor_each(&public, &chain);
    let before = cells - number.len();
    for (cell, digit) in number.iter().enumerate() {
        sum[before + cell] = b.xor(&[public[before + cell], chain[before + cell], *digit]);
    }
    let encrypted = b.call(&cipher.encrypt, &[&sum, &round_keys]).remove(0);
    b.output("sum", &encrypted[..in_cells(sum_bytes)]);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    /// SP 800-38G, appendix, samples 1 and 3: b and d of ten digits, and of nineteen digits and letters.
    #[test]
    fn sizes_are_those_of_the_standard() {
        for (radix, length, number, sum) in [
            (10, 10, 3, 8),
            (36, 19, 7, 12),
            (2, 20, 2, 8),
            (10, 56, 12, 16),
            (36, 36, 12, 16),
            (2, 192, 12, 16),
        ] {
            let ff1 = Ff1::new(radix, length).expect("it fits");
            assert_eq!((ff1.number_bytes(), ff1.sum_bytes()), (number, sum), "{radix}^{length}");
            assert!(Ff1::new(radix, length + 2).is_ok() != (number == 12), "{radix}^{length}");
        }
    }

    #[test]
    fn alphabets_and_lengths_that_are_too_small_or_too_large_are_refused() {
        let message = |radix, length| Ff1::new(radix, length).expect_err("refused");
        for radix in [0, 1, 37, u32::MAX] {
            assert!(message(radix, 10).contains("2 to 36 characters"));
        }
        for (radix, length) in [(10, 5), (2, 19), (36, 3), (10, 0), (10, 1), (36, 1)] {
            assert!(message(radix, length).contains("at least 1000000"), "{radix}^{length}");
        }
        for (radix, length) in [(10, 6), (2, 20), (36, 4)] {
            assert!(Ff1::new(radix, length).is_ok(), "{radix}^{length}");
        }
        for (radix, length) in [(10, 57), (36, 37), (2, 193), (36, 1000), (10, u32::MAX)] {
            assert!(message(radix, length).contains("is too long"), "{radix}^{length}");
        }
    }

    /// Sample 2 of the standard: P, and Q of the first round without its number; and tweaks around the end of
    /// a block.
    #[test]
    fn blocks_are_those_of_the_standard() {
        let ff1 = Ff1::new(10, 10).expect("it fits");
        assert_eq!(
            hex::encode(ff1.first_block(10)),
            "010201 00000a 0a 05 0000000a 0000000a".replace(' ', "")
        );
        let blocks = |tweak: usize, round| ff1.blocks(&vec![0xee; tweak], round).as_flattened().to_vec();
        assert_eq!(hex::encode(blocks(10, 7)), format!("{}000007000000", "ee".repeat(10)));
        assert_eq!(hex::encode(blocks(12, 7)), format!("{}07000000", "ee".repeat(12)));
        assert_eq!(hex::encode(blocks(13, 9)), format!("{}{}09000000", "ee".repeat(13), "00".repeat(15)));
        for (tweak, leading) in [(0, 0), (12, 0), (13, 1), (28, 1), (29, 2), (64, 4)] {
            assert_eq!(ff1.leading_blocks(tweak), leading, "{tweak}");
            assert_eq!(blocks(tweak, 0).len(), BLOCK * (leading + 1));
        }
    }

    #[test]
    fn halves_have_their_lengths_in_turn() {
        let ff1 = Ff1::new(10, 7).expect("it fits");
        assert_eq!((ff1.strings_in(0), ff1.strings_in(1), ff1.strings_in(8)), (1000, 10_000, 1000));
        assert_eq!(Ff1::new(10, 8).expect("it fits").strings_in(0), 10_000);
    }

    /// In both forms of AES, and with other bytes in other lanes.
    #[test]
    fn a_round_encrypts_the_sum_of_chain_public_block_and_number() {
        let aes = catalog::find("aes-128").expect("it is there");
        for cipher in [aes.clone(), crate::boolean::expanded(aes)] {
            let run = |circuit: &Circuit, lanes, inputs: &[(usize, &[u8])]| {
                let compiled = compile(circuit, &AnyMap);
                let port = |at: usize| &circuit.inputs()[at];
                let cells = |(at, bytes): &(usize, &[u8])| {
                    Cells::from_blocks(port(*at).cells.len(), port(*at).bits, bytes).expect("whole")
                };
                let inputs: Vec<Cells> = inputs.iter().map(cells).collect();
                cleartext::run(&compiled, lanes, &inputs).expect("they fit").remove(0).to_blocks()
            };
            let key: Vec<u8> = (0..16).collect();
            let round_keys = run(&cipher.key_schedule, 1, &[(0, &key)]);
            let bytes = |len: usize, by: usize| (0..len).map(|i| (i * by + by) as u8).collect::<Vec<u8>>();
            let (number, public, chain) = (bytes(6, 29), bytes(32, 7), bytes(32, 113));
            let circuit = round(&cipher, 3, 8);
            let sums = run(&circuit, 2, &[(0, &number), (1, &public), (2, &chain), (3, &round_keys)]);
            let mut expected: Vec<u8> = Vec::new();
            for lane in 0..2 {
                let mut block: Vec<u8> =
                    (0..16).map(|i| public[16 * lane + i] ^ chain[16 * lane + i]).collect();
                (0..3).for_each(|i| block[13 + i] ^= number[3 * lane + i]);
                expected.extend(&run(&cipher.encrypt, 1, &[(0, &block), (1, &round_keys)])[..8]);
            }
            assert_eq!(sums, expected);
        }
    }
}
