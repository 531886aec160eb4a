//! Numbers of cards, of which some digits stay: for example the first six, which name the bank, and the last four, which people compare.
//!
//! The digits between them are the free ones. They are tokenized under a tweak that has the digits that stay, so that the free digits of two
//! banks have nothing to do with each other.
//!
//! With the check digit kept, a token passes the Luhn test as the number does (ISO/IEC 7812-1, annex B). Then the last free digit is no
//! choice: whatever the other digits are, exactly one digit in its place makes the sum a multiple of ten, because each digit adds another
//! amount modulo ten, doubled or not. So numbers that pass the test and strings of the other free digits belong to each other one to one.
//! Those strings are tokenized, and the last free digit is computed. That is a permutation of the numbers that pass the test. It has ten times
//! fewer numbers than without the check digit.
//!
//! FF1 needs a million strings. So there are at least six free digits, and one more if the check digit is kept: of sixteen digits, six and
//! four can stay without it, and nine with it.

use zeroize::Zeroizing;

use crate::{Error, Result};

/// The fewest digits that are tokenized: a million strings.
const LEAST: usize = 6;
/// Lengths of numbers of cards (ISO/IEC 7812-1).
const DIGITS: std::ops::RangeInclusive<usize> = 12..=19;

/// Which digits of a card's number stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardTemplate {
    /// So many at the beginning.
    pub first: usize,
    /// So many at the end.
    pub last: usize,
    /// Whether a token passes the Luhn test. Numbers that do not pass it are then an error.
    pub keeps_check: bool,
}

/// The first six and the last four stay.
impl Default for CardTemplate {
    fn default() -> Self {
        CardTemplate { first: 6, last: 4, keeps_check: false }
    }
}

impl CardTemplate {
    /// Takes a number apart. Spaces and hyphens between its digits stay in place.
    pub fn take_apart(&self, number: &str) -> Result<Card> {
        let refused = |told: String| Err(Error::Misuse(told));
        let mut digits = Zeroizing::new(String::with_capacity(number.len()));
        for character in number.chars() {
            match character {
                '0'..='9' => digits.push(character),
                ' ' | '-' => {}
                _ => return refused("the number of a card has digits, spaces and hyphens only".into()),
            }
        }
        let count = digits.len();
        if !DIGITS.contains(&count) {
            let (least, most) = (DIGITS.start(), DIGITS.end());
            return refused(format!("the number of a card has {least} to {most} digits, not {count}"));
        }
        let free = count
            .saturating_sub(self.first.saturating_add(self.last).saturating_add(self.keeps_check.into()));
        if free < LEAST {
            return refused(format!(
                "of {count} digits {free} would be free to be tokenized, and fewer than {LEAST} can be found by trying: let fewer digits \
                 stay{}",
                if self.keeps_check { ", or do not keep the check digit, which takes one" } else { "" }
            ));
        }
        if self.keeps_check && luhn(digits.as_bytes()) != 0 {
            return refused("its check digit is wrong, so a token of it cannot have a right one".into());
        }
        let free = Zeroizing::new(digits[self.first..self.first + free].to_owned());
        Ok(Card { template: *self, written: Zeroizing::new(number.to_owned()), digits, free })
    }
}

/// A number of a card, taken apart.
pub struct Card {
    template: CardTemplate,
    written: Zeroizing<String>,
    digits: Zeroizing<String>,
    free: Zeroizing<String>,
}

impl Card {
    /// The digits that are tokenized: without the last free one if the check digit is kept.
    pub fn free_digits(&self) -> &str {
        &self.free
    }

    /// The tweak under which they are: a given beginning, and the digits that stay.
    pub fn tweak(&self, before: &[u8]) -> Vec<u8> {
        let digits = self.digits.as_bytes();
        let CardTemplate { first, last, .. } = self.template;
        [before, &digits[..first], &digits[digits.len() - last..]].concat()
    }

    /// The number with other free digits, as many.
    pub fn with(&self, free: &str) -> Result<Zeroizing<String>> {
        let first = self.template.first;
        if free.len() != self.free.len() || !free.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(Error::Misuse(format!("{} other digits are due", self.free.len())));
        }
        let mut digits = Zeroizing::new(self.digits.as_bytes().to_vec());
        digits[first..first + free.len()].copy_from_slice(free.as_bytes());
        if self.template.keeps_check {
            let at = first + free.len();
            digits[at] = b'0';
            let missing = (10 - luhn(&digits)) % 10;
            digits[at] = b'0' + if is_doubled(at, digits.len()) { halved(missing) } else { missing };
        }
        let mut digits = digits.iter().map(|digit| char::from(*digit));
        let mut written = Zeroizing::new(String::with_capacity(self.written.len()));
        for character in self.written.chars() {
            let other = if character.is_ascii_digit() { digits.next() } else { None };
            written.push(other.unwrap_or(character));
        }
        Ok(written)
    }
}

/// The sum of the Luhn test modulo ten: 0 if a number passes it.
fn luhn(digits: &[u8]) -> u8 {
    let amounts = digits.iter().enumerate().map(|(at, digit)| {
        let digit = digit - b'0';
        if is_doubled(at, digits.len()) { doubled(digit) } else { digit }
    });
    amounts.fold(0, |sum, amount| (sum + amount) % 10)
}

/// Whether the digit at this place is doubled: every second one, counted from the last, which is not.
fn is_doubled(at: usize, count: usize) -> bool {
    (count - 1 - at) % 2 == 1
}

/// What a digit adds that is doubled: the sum of the digits of its double.
fn doubled(digit: u8) -> u8 {
    2 * digit / 10 + 2 * digit % 10
}

/// The digit that, doubled, adds an amount.
fn halved(amount: u8) -> u8 {
    if amount.is_multiple_of(2) { amount / 2 } else { (amount + 9) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX_AND_FOUR: CardTemplate = CardTemplate { first: 6, last: 4, keeps_check: false };

    #[test]
    fn digits_that_stay_and_the_way_a_number_is_written_stay() {
        let card = SIX_AND_FOUR.take_apart("4111 1111-1111 1111").expect("a card");
        assert_eq!((card.free_digits(), &card.tweak(b"shop")[..]), ("111111", &b"shop4111111111"[..]));
        assert_eq!(*card.with("987654").expect("digits"), "4111 1198-7654 1111");
        for wrong in ["98765", "9876543", "98765a"] {
            assert!(card.with(wrong).is_err(), "{wrong}");
        }
    }

    /// Numbers that card schemes publish for tests.
    #[test]
    fn published_numbers_pass_the_test_of_luhn_and_one_other_digit_does_not() {
        for number in
            ["4111111111111111", "5500005555555559", "378282246310005", "6011000990139424", "79927398713"]
        {
            assert_eq!(luhn(number.as_bytes()), 0, "{number}");
            for at in 0..number.len() {
                let mut changed = number.as_bytes().to_vec();
                changed[at] = b'0' + (changed[at] - b'0' + 1) % 10;
                assert_ne!(luhn(&changed), 0, "{number} at {at}");
            }
        }
        assert!((0..10).all(|digit| halved(doubled(digit)) == digit));
    }

    /// Every string of free digits gives one number that passes the test, which gives that string again.
    #[test]
    fn with_the_check_digit_kept_numbers_and_free_digits_belong_to_each_other() {
        for (first, last, number) in
            [(0, 4, "4111111111111111"), (6, 2, "4111111111111111"), (4, 0, "378282246310005")]
        {
            let template = CardTemplate { first, last, keeps_check: true };
            let card = template.take_apart(number).expect("a card");
            let len = card.free_digits().len();
            assert_eq!(len, number.len() - first - last - 1);
            assert_eq!(*card.with(card.free_digits()).expect("its digits"), number);
            for i in 0..10_000_u64 {
                let free = format!("{:0len$}", i * 7_919 % 10_u64.pow(len as u32));
                let other = card.with(&free).expect("digits");
                assert_eq!(luhn(other.as_bytes()), 0, "{}", *other);
                let again = template.take_apart(&other).expect("a card");
                assert_eq!((again.free_digits(), again.tweak(b"")), (&free[..], card.tweak(b"")));
            }
        }
    }

    #[test]
    fn numbers_with_too_few_free_digits_and_what_is_no_number_are_refused() {
        let told = |template: CardTemplate, number: &str| {
            template.take_apart(number).err().expect("refused").to_string()
        };
        assert!(told(SIX_AND_FOUR, "378282246310005").contains("of 15 digits 5 would be free"));
        let kept = CardTemplate { keeps_check: true, ..SIX_AND_FOUR };
        assert!(told(kept, "4111111111111111").contains("5 would be free"));
        assert!(CardTemplate { first: 5, ..kept }.take_apart("4111111111111111").is_ok());
        assert!(told(CardTemplate { first: 5, ..kept }, "4111111111111112").contains("check digit is wrong"));
        assert!(
            told(CardTemplate { first: usize::MAX, ..kept }, "4111111111111111").contains("0 would be free")
        );
        assert!(told(SIX_AND_FOUR, "4111x11111111111").contains("digits, spaces and hyphens"));
        assert!(told(SIX_AND_FOUR, "41111111111").contains("12 to 19 digits, not 11"));
        assert!(told(SIX_AND_FOUR, &"1".repeat(20)).contains("not 20"));
    }
}
