//! The Reed-Solomon code C over GF(2^16), and its Schur square C* (Damgard et al. 2016, section 6, footnote
//! 2).
//!
//! A word of C holds the values of a polynomial of degree below k at n = 2k + extra points. It is systematic:
//! the values at the first k points are the message. The products, place by place, of two words span C*:
//! degree below 2k - 1, so two words of C* differ in at least **n - 2k + 2 = extra + 2** places
//! ([`Code::square_distance`]). In a constant ratio of extra to k both k and the distance are linear in n,
//! and so is the product's: what the paper asks of its code.
//!
//! A word of C* is known from 2k - 1 of its places. The sum of a polynomial's values over a subspace of 2k
//! points is its coefficient at 2k - 1 times a constant that is not zero (sum over x of x^j is zero for j
//! below 2k - 1), so **the first 2k places of a word of C* add up to zero, and no other condition is on
//! them**; the extra places follow from them.
//!
//! **How long must it be?** A cheater that changes a word of C* changes at least extra + 2 places, and for
//! each of them must guess a symbol of the MAC key, or be lucky with a coefficient: 2^-15 (`check.rs`). So
//! the error is 2^(-15 (extra + 2)), and extra = 3 would do for 2^-64. [`Code::STANDARD`] has k = 64, extra =
//! 16, n = 144: distance 18, error 2^-270, at 2.25 symbols of code a symbol of message. Larger k with the
//! same ratio is as large in data, costs more levels of transforms and more padding, and gains nothing.

use polyclave_field::Gf2_16;

use super::additive_fft::{evaluate, evaluate_some, interpolate};
use polyclave_protocol::{Error, Result};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    message: usize,
    extra: usize,
}

impl Code {
    /// Error 2^-270.
    pub const STANDARD: Code = Code { message: 64, extra: 16 };

    /// A code for messages of `message` symbols, 2 to 2^14, with `extra` places beyond those that determine a
    /// word of the square. `extra` is at most `message`, and both are powers of two.
    pub fn new(message: usize, extra: usize) -> Result<Code> {
        let is_fit = message.is_power_of_two() && extra.is_power_of_two();
        if !is_fit || !(2..=1 << 14).contains(&message) || extra > message {
            let what =
                format!("there is no code with messages of {message} symbols and {extra} places to spare");
            return Err(Error::misuse(what));
        }
        Ok(Code { message, extra })
    }

    /// k: symbols of a message.
    pub fn message(&self) -> usize {
        self.message
    }

    /// n: places of a word.
    pub fn places(&self) -> usize {
        2 * self.message + self.extra
    }

    /// k - 1: the places that, together with the message, determine a word of the square. They come next to
    /// it.
    pub fn free(&self) -> usize {
        self.message - 1
    }

    /// Places in which two words of the square differ at least.
    pub fn square_distance(&self) -> usize {
        self.extra + 2
    }

    /// A cheater that opens something else gets through with a probability of 2 to minus this.
    pub fn security_bits(&self) -> usize {
        15 * self.square_distance()
    }

    /// From rows of messages to rows of words: the first k are given, the others found. For public messages:
    /// copies stay in memory.
    pub(crate) fn encode(&self, words: &mut [u16], lanes: usize) {
        let (message, others) = words.split_at_mut(self.message * lanes);
        let (second, last) = others.split_at_mut(message.len());
        second.copy_from_slice(message);
        interpolate(second, lanes, 0);
        let mut rest = second.to_vec();
        evaluate_some(&mut rest, lanes, 2 * self.message, self.extra);
        last.copy_from_slice(&rest[..last.len()]);
        evaluate(second, lanes, self.message);
    }

    /// From rows of messages, in place, to the next k rows of their words.
    pub(crate) fn next_rows(&self, rows: &mut [u16], lanes: usize) {
        interpolate(rows, lanes, 0);
        evaluate(rows, lanes, self.message);
    }

    /// From the first 2k - 1 rows of words of the square to all. For public words.
    pub(crate) fn complete_square(&self, words: &mut [u16], lanes: usize) {
        let (first, extra) = words.split_at_mut(2 * self.message * lanes);
        let (known, parity) = first.split_at_mut((2 * self.message - 1) * lanes);
        parity.fill(0);
        known.chunks_exact(lanes).for_each(|row| Gf2_16::add_row(parity, row));
        let mut rest = first.to_vec();
        interpolate(&mut rest, lanes, 0);
        evaluate_some(&mut rest, lanes, 2 * self.message, self.extra);
        extra.copy_from_slice(&rest[..extra.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u32, count: usize) -> impl Iterator<Item = u16> {
        (1..=count as u32).map(move |i| ((i + seed).wrapping_mul(0x9e37_79b9) >> 14) as u16)
    }

    fn encoded(code: Code, message: impl Iterator<Item = u16>) -> Vec<u16> {
        let mut word: Vec<u16> = message.collect();
        word.resize(code.places(), 0);
        code.encode(&mut word, 1);
        word
    }

    /// Whether it is a word of the square.
    fn is_in_square(code: Code, word: &[u16]) -> bool {
        let mut completed = word.to_vec();
        code.complete_square(&mut completed, 1);
        completed == word
    }

    fn codes() -> impl Iterator<Item = Code> {
        [(2, 1), (4, 4), (16, 4), (64, 64), (1024, 256)]
            .into_iter()
            .map(|(k, e)| Code::new(k, e).expect("fits"))
    }

    /// By Lagrange's interpolation.
    #[test]
    fn a_word_holds_the_values_of_a_polynomial_that_the_message_determines() {
        let code = Code::new(8, 4).expect("fits");
        let word = encoded(code, noise(1, 8));
        for (x, value) in word.iter().enumerate() {
            let term = |i: usize| {
                let others = (0..8).filter(|j| *j != i);
                others.fold(word[i], |term, j| {
                    let quotient = Gf2_16::inverse_or_zero((i ^ j) as u16);
                    Gf2_16::multiply(term, Gf2_16::multiply((x ^ j) as u16, quotient))
                })
            };
            assert_eq!((0..8).fold(0, |sum, i| sum ^ term(i)), *value);
        }
        assert!(word[..8].iter().copied().eq(noise(1, 8)));
    }

    #[test]
    fn products_of_words_are_in_the_square() {
        for code in codes() {
            let mut product = encoded(code, noise(1, code.message()));
            Gf2_16::multiply_row(&mut product, &encoded(code, noise(70_000, code.message())));
            assert!(is_in_square(code, &product), "{code:?}");
            for place in [0, code.message(), code.places() - 1] {
                product[place] ^= 0x100;
                assert!(!is_in_square(code, &product), "{code:?}");
                product[place] ^= 0x100;
            }
        }
    }

    #[test]
    fn the_next_rows_are_those_of_the_word() {
        for code in codes() {
            let mut rows: Vec<u16> = noise(3, code.message()).collect();
            let word = encoded(code, rows.iter().copied());
            code.next_rows(&mut rows, 1);
            assert_eq!(rows, word[code.message()..2 * code.message()]);
        }
    }

    /// Whether no word but zero vanishes on these places: the columns of the generator matrix there are
    /// independent.
    fn determine(generator: &[Vec<u16>], places: &[usize]) -> bool {
        let mut rows: Vec<Vec<u16>> =
            generator.iter().map(|word| places.iter().map(|p| word[*p]).collect()).collect();
        for column in 0..places.len() {
            let Some(pivot) = (column..rows.len()).find(|r| rows[*r][column] != 0) else { return false };
            rows.swap(column, pivot);
            let (row, inverse) = (rows[column].clone(), Gf2_16::inverse_or_zero(rows[column][column]));
            for other in &mut rows[column + 1..] {
                let factor = Gf2_16::multiply(other[column], inverse);
                Gf2_16::add_multiple(other, &row, factor);
            }
        }
        true
    }

    /// All sets of places of small codes: any 2k - 1 places determine a word of the square, so one that is
    /// not zero vanishes in 2k - 2 at most; and some word does.
    #[test]
    fn the_square_has_its_distance() {
        for (message, extra) in [(2, 2), (4, 2), (4, 4)] {
            let code = Code::new(message, extra).expect("fits");
            let (n, dimension) = (code.places(), 2 * message - 1);
            let unit = |i: usize| {
                let mut word = vec![0; n];
                word[i] = 1;
                code.complete_square(&mut word, 1);
                word
            };
            let generator: Vec<_> = (0..dimension).map(unit).collect();
            let sets = (0..1u32 << n).filter(|set| set.count_ones() as usize == dimension);
            let places = |set: u32| (0..n).filter(|p| set >> p & 1 == 1).collect::<Vec<_>>();
            assert!(sets.clone().all(|set| determine(&generator, &places(set))));
            let least = generator.iter().map(|word| word.iter().filter(|x| **x != 0).count()).min();
            assert_eq!(least, Some(code.square_distance()));
            assert_eq!(code.square_distance(), n - 2 * message + 2);
        }
    }

    #[test]
    fn the_standard_code_is_longer_than_it_must_be() {
        let code = Code::STANDARD;
        assert_eq!(Code::new(code.message(), code.extra), Ok(code));
        assert_eq!((code.places(), code.square_distance(), code.security_bits()), (144, 18, 270));
        assert!(Code::new(16, 4).expect("fits").security_bits() >= 64);
    }

    #[test]
    fn a_code_that_does_not_fit_is_refused() {
        for (message, extra) in [(0, 0), (1, 1), (3, 1), (8, 3), (8, 16), (1 << 15, 1)] {
            assert!(matches!(Code::new(message, extra), Err(Error::Misuse(_))), "{message} {extra}");
        }
    }
}
