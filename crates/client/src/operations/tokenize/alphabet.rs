//! Characters as digits.
//!
//! Which characters of a text are in the alphabet is public: the others stay in place, or are an error. So is
//! how many bytes each character has, since it says where the next one is. Which character of the alphabet
//! one is, is secret: it is compared with all of them. Only where it has more than one byte, Rust itself
//! looks at the first ones when the text is put together.

use polyclave_cipher::ff1::MAX_RADIX;
use polyclave_kernels::secret::public;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::{Error, Result};

/// Digits and letters in the order of SP 800-38G.
const DIGITS_AND_LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// The characters of values, in order: each stands for a digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    characters: Vec<char>,
    /// The same in UTF-8, each with zeros behind it.
    encoded: Vec<Encoded>,
}

/// A character in UTF-8: its bytes as a number, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Encoded {
    bytes: u32,
    count: u8,
}

impl Encoded {
    fn of(character: &[u8]) -> Encoded {
        let mut bytes = [0; size_of::<u32>()];
        bytes[..character.len()].copy_from_slice(character);
        Encoded { bytes: u32::from_le_bytes(bytes), count: character.len() as u8 }
    }
}

/// The characters of a text in UTF-8. A byte in which another character begins has other upper bits than one
/// in which a character goes on.
fn characters(text: &str) -> impl Iterator<Item = &[u8]> {
    // How many bytes a character has is public.
    text.as_bytes().chunk_by(|_, next| public(next & 0xc0 == 0x80))
}

impl Alphabet {
    /// The first of the digits `0` to `9` and the letters `a` to `z`: 10 are the decimal digits.
    pub fn of_radix(radix: u32) -> Result<Alphabet> {
        Alphabet::new(DIGITS_AND_LETTERS.get(..radix as usize).unwrap_or_default())
            .map_err(|_| Error::Misuse(format!("a radix is 2 to {MAX_RADIX}, not {radix}")))
    }

    /// An alphabet of these characters: 2 to 36, each once.
    pub fn new(characters: &str) -> Result<Alphabet> {
        let characters: Vec<char> = characters.chars().collect();
        if !(2..=MAX_RADIX as usize).contains(&characters.len()) {
            let message = format!("an alphabet has 2 to {MAX_RADIX} characters, not {}", characters.len());
            return Err(Error::Misuse(message));
        }
        let mut sorted = characters.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Misuse(format!("the alphabet has the character {:?} twice", pair[0])));
        }
        let encoded = |character: &char| Encoded::of(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(Alphabet { encoded: characters.iter().map(encoded).collect(), characters })
    }

    /// How many characters it has.
    pub fn radix(&self) -> u32 {
        self.characters.len() as u32
    }

    /// Whether a character is one of it.
    pub fn has(&self, character: char) -> bool {
        self.characters.contains(&character)
    }

    /// The digit that a character in UTF-8 stands for.
    fn digit(&self, character: &[u8]) -> Option<u8> {
        let character = Encoded::of(character);
        let (mut digit, mut is_known) = (0, Choice::from(0));
        for (other, known) in (0..).zip(&self.encoded) {
            let is_same = character.bytes.ct_eq(&known.bytes);
            digit.conditional_assign(&other, is_same);
            is_known |= is_same;
        }
        // Others stay in place, or are an error.
        public(is_known.unwrap_u8() == 1).then_some(digit)
    }

    /// The character that a digit stands for.
    fn character(&self, digit: u8) -> Encoded {
        let mut character = Encoded { bytes: 0, count: 0 };
        for (other, known) in (0..).zip(&self.encoded) {
            let is_same = digit.ct_eq(&other);
            character.bytes.conditional_assign(&known.bytes, is_same);
            character.count.conditional_assign(&known.count, is_same);
        }
        // How many bytes a character has is public.
        Encoded { count: public(character.count), ..character }
    }

    /// The digits of a text, without its other characters if it may have some.
    pub fn digits(&self, text: &str, keeps_others: bool) -> Result<Zeroizing<Vec<u8>>> {
        let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
        for (place, character) in characters(text).enumerate() {
            match self.digit(character) {
                Some(digit) => digits.push(digit),
                None if keeps_others => {}
                None => {
                    return Err(Error::Misuse(format!(
                        "its character number {} is not in the alphabet; name the alphabet that it has, or have other characters stay in \
                         place",
                        place + 1
                    )));
                }
            }
        }
        Ok(digits)
    }

    /// A text with other digits. Its other characters stay in place.
    pub fn text(&self, text: &str, digits: &[u8]) -> Zeroizing<String> {
        let mut digits = digits.iter();
        // Allocated at once: growing would leave a copy behind.
        let mut exchanged = Zeroizing::new(Vec::with_capacity(size_of::<char>() * text.len()));
        for character in characters(text) {
            match self.digit(character).and_then(|_| digits.next()) {
                Some(digit) => {
                    let Encoded { bytes, count } = self.character(*digit);
                    let bytes = bytes.to_le_bytes();
                    match count {
                        // It has seven bits, so that nothing looks at more of it to see that it is one.
                        1 => exchanged.push(bytes[0] & 0x7f),
                        _ => exchanged.extend_from_slice(&bytes[..usize::from(count)]),
                    }
                }
                None => exchanged.extend_from_slice(character),
            }
        }
        let exchanged = str::from_utf8(&exchanged).expect("whole characters, of a text and of an alphabet");
        Zeroizing::new(exchanged.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_digits_and_other_characters_stay_in_place() {
        let decimal = Alphabet::of_radix(10).expect("an alphabet");
        assert_eq!(decimal.digits("4929-12", true).expect("digits")[..], [4, 9, 2, 9, 1, 2]);
        assert_eq!(*decimal.text("4929-12", &[1, 2, 3, 4, 5, 6]), "1234-56");
        let message = decimal.digits("4929-12", false).expect_err("refused").to_string();
        assert!(message.contains("character number 5"), "{message}");
        let greek = Alphabet::new("αβγδε").expect("an alphabet");
        assert_eq!(greek.radix(), 5);
        assert_eq!(greek.digits("δα ε", true).expect("digits")[..], [3, 0, 4]);
        assert_eq!(*greek.text("δα ε", &[0, 4, 1]), "αε β");
        assert_eq!(*decimal.text("no digit", &[]), "no digit");
        // Characters of one byte to four, in the alphabet and beside it.
        let mixed = Alphabet::new("a\u{0}ß€𝄞").expect("an alphabet");
        assert_eq!(mixed.digits("€ä𝄞a\u{0}", true).expect("digits")[..], [3, 4, 0, 1]);
        assert_eq!(*mixed.text("€ä𝄞a\u{0}", &[0, 1, 2, 4]), "aä\u{0}ß𝄞");
        assert!(mixed.has('€') && !mixed.has('ä'));
    }

    #[test]
    fn alphabets_that_are_none_are_refused() {
        for radix in [0, 1, 37, u32::MAX] {
            let message = Alphabet::of_radix(radix).expect_err("refused").to_string();
            assert!(message.contains("2 to 36"), "{message}");
        }
        assert_eq!(
            Alphabet::of_radix(16).expect("an alphabet"),
            Alphabet::new("0123456789abcdef").expect("one")
        );
        for (characters, why) in [("", "not 0"), ("0", "not 1"), ("0120", "'0' twice")] {
            let message = Alphabet::new(characters).expect_err("refused").to_string();
            assert!(message.contains(why), "{message}");
        }
        let long: String = ('!'..='~').take(37).collect();
        assert!(Alphabet::new(&long).is_err() && Alphabet::new(&long[1..]).is_ok());
    }
}
