//! Characters as digits.

use polyclave_cipher::ff1::MOST_RADIX;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// Digits and letters in the order of SP 800-38G.
const DIGITS_AND_LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// The characters of values, in order: each stands for a digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    characters: Vec<char>,
}

impl Alphabet {
    /// The first of the digits `0` to `9` and the letters `a` to `z`: 10 are the decimal digits.
    pub fn of_radix(radix: u32) -> Result<Alphabet> {
        Alphabet::new(DIGITS_AND_LETTERS.get(..radix as usize).unwrap_or_default())
            .map_err(|_| Error::Misuse(format!("a radix is 2 to {MOST_RADIX}, not {radix}")))
    }

    /// An alphabet of these characters: 2 to 36, each once.
    pub fn new(characters: &str) -> Result<Alphabet> {
        let characters: Vec<char> = characters.chars().collect();
        if !(2..=MOST_RADIX as usize).contains(&characters.len()) {
            let told = format!("an alphabet has 2 to {MOST_RADIX} characters, not {}", characters.len());
            return Err(Error::Misuse(told));
        }
        let mut sorted = characters.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Misuse(format!("the alphabet has the character {:?} twice", pair[0])));
        }
        Ok(Alphabet { characters })
    }

    /// How many characters it has.
    pub fn radix(&self) -> u32 {
        self.characters.len() as u32
    }

    /// Whether a character is one of it.
    pub fn has(&self, character: char) -> bool {
        self.digit(character).is_some()
    }

    fn digit(&self, character: char) -> Option<u8> {
        self.characters.iter().position(|known| *known == character).map(|digit| digit as u8)
    }

    /// The digits of a text, without its other characters if it may have some.
    pub(crate) fn digits(&self, text: &str, keeps_others: bool) -> Result<Zeroizing<Vec<u8>>> {
        let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
        for (place, character) in text.chars().enumerate() {
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
    pub(crate) fn text(&self, text: &str, digits: &[u8]) -> Zeroizing<String> {
        let mut digits = digits.iter().map(|digit| self.characters[usize::from(*digit)]);
        // Allocated at once: growing would leave a copy behind.
        let mut exchanged = Zeroizing::new(String::with_capacity(size_of::<char>() * text.len()));
        for character in text.chars() {
            let other = self.digit(character).and_then(|_| digits.next());
            exchanged.push(other.unwrap_or(character));
        }
        exchanged
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
        let told = decimal.digits("4929-12", false).expect_err("refused").to_string();
        assert!(told.contains("character number 5"), "{told}");
        let greek = Alphabet::new("αβγδε").expect("an alphabet");
        assert_eq!(greek.radix(), 5);
        assert_eq!(greek.digits("δα ε", true).expect("digits")[..], [3, 0, 4]);
        assert_eq!(*greek.text("δα ε", &[0, 4, 1]), "αε β");
        assert_eq!(*decimal.text("no digit", &[]), "no digit");
    }

    #[test]
    fn alphabets_that_are_none_are_refused() {
        for radix in [0, 1, 37, u32::MAX] {
            let told = Alphabet::of_radix(radix).expect_err("refused").to_string();
            assert!(told.contains("2 to 36"), "{told}");
        }
        assert_eq!(
            Alphabet::of_radix(16).expect("an alphabet"),
            Alphabet::new("0123456789abcdef").expect("one")
        );
        for (characters, why) in [("", "not 0"), ("0", "not 1"), ("0120", "'0' twice")] {
            let told = Alphabet::new(characters).expect_err("refused").to_string();
            assert!(told.contains(why), "{told}");
        }
        let long: String = ('!'..='~').take(37).collect();
        assert!(Alphabet::new(&long).is_err() && Alphabet::new(&long[1..]).is_ok());
    }
}
