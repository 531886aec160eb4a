//! Numbers of cards, of which some digits stay: for example the first six, which name the bank, and the last
//! four, which people compare.
//!
//! The digits between them are the free ones. They are tokenized under a tweak that has the digits that stay,
//! so that the free digits of two banks have nothing to do with each other.
//!
//! With the check digit kept, a token passes the Luhn test as the number does (ISO/IEC 7812-1, annex B). Then
//! the last free digit is no choice: whatever the other digits are, exactly one digit in its place makes the
//! sum a multiple of ten, because each digit adds another amount modulo ten, doubled or not. So numbers that
//! pass the test and strings of the other free digits belong to each other one to one. Those strings are
//! tokenized, and the last free digit is computed. That is a permutation of the numbers that pass the test.
//! It has ten times fewer numbers than without the check digit.
//!
//! Where the digits of a number are, and whether its check digit is right, a token or an error shows. What
//! the digits are is secret, and nothing here branches on them.
//!
//! FF1 needs a million strings. So there are at least six free digits, and one more if the check digit is
//! kept: of sixteen digits, six and four can stay without it, and nine with it.

use polyclave_kernels::secret::public;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// The fewest digits that are tokenized: a million strings.
const MIN: usize = 6;
/// Lengths of numbers of cards (ISO/IEC 7812-1).
const DIGITS: std::ops::RangeInclusive<usize> = 12..=19;
/// In the place of a digit.
const DIGIT: u8 = b'0';

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
        let refused = |message: String| Err(Error::Misuse(message));
        let mut digits = Zeroizing::new(Vec::with_capacity(number.len()));
        let mut layout = Vec::with_capacity(number.len());
        for byte in number.bytes() {
            // What else than digits there is stays in place.
            if public(byte.is_ascii_digit()) {
                digits.push(byte & 0x0f);
                layout.push(DIGIT);
                continue;
            }
            match public(byte) {
                other @ (b' ' | b'-') => layout.push(other),
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
        if free < MIN {
            return refused(format!(
                "of {count} digits {free} would be free to be tokenized, and fewer than {MIN} can be found by trying: let fewer digits \
                 stay{}",
                if self.keeps_check { ", or do not keep the check digit, which takes one" } else { "" }
            ));
        }
        // An error says whether it is right.
        if self.keeps_check && public(luhn(&digits) != 0) {
            return refused("its check digit is wrong, so a token of it cannot have a right one".into());
        }
        let free = text(&digits[self.first..self.first + free]);
        Ok(Card { template: *self, layout, digits, free })
    }
}

/// A number of a card, taken apart.
pub struct Card {
    template: CardTemplate,
    /// The number as it is written, with [`DIGIT`] for each digit.
    layout: Vec<u8>,
    digits: Zeroizing<Vec<u8>>,
    free: Zeroizing<String>,
}

impl Card {
    /// The digits that are tokenized: without the last free one if the check digit is kept.
    pub fn free_digits(&self) -> &str {
        &self.free
    }

    /// The tweak under which they are: a given beginning, and the digits that stay.
    pub fn tweak(&self, before: &[u8]) -> Vec<u8> {
        let CardTemplate { first, last, .. } = self.template;
        let [begin, end] = [&self.digits[..first], &self.digits[self.digits.len() - last..]].map(text);
        [before, begin.as_bytes(), end.as_bytes()].concat()
    }

    /// The number with other free digits, as many.
    pub fn with(&self, free: &str) -> Result<Zeroizing<String>> {
        let first = self.template.first;
        let are_digits = free.bytes().fold(true, |so_far, byte| so_far & byte.is_ascii_digit());
        // An error says so.
        if free.len() != self.free.len() || !public(are_digits) {
            return Err(Error::Misuse(format!("{} other digits are due", self.free.len())));
        }
        let mut digits = self.digits.clone();
        digits[first..].iter_mut().zip(free.bytes()).for_each(|(digit, byte)| *digit = byte & 0x0f);
        if self.template.keeps_check {
            let at = first + free.len();
            digits[at] = 0;
            let missing = (10 - luhn(&digits)) % 10;
            digits[at] = if is_doubled(at, digits.len()) { halved(missing) } else { missing };
        }
        Ok(written(&self.layout, &digits))
    }
}

/// A number in a layout. The upper bits of a character are those of all digits, so nothing looks at more of
/// it to see that it is one.
fn written(layout: &[u8], digits: &[u8]) -> Zeroizing<String> {
    let mut digits = digits.iter().map(|digit| b'0' | digit & 0x0f);
    let mut text = Zeroizing::new(Vec::with_capacity(layout.len()));
    for place in layout {
        let digit = if *place == DIGIT { digits.next() } else { None };
        text.push(digit.unwrap_or(*place));
    }
    Zeroizing::new(str::from_utf8(&text).expect("digits, spaces and hyphens").to_owned())
}

/// Digits alone.
fn text(digits: &[u8]) -> Zeroizing<String> {
    written(&vec![DIGIT; digits.len()], digits)
}

/// The sum of the Luhn test modulo ten: 0 if a number passes it.
fn luhn(digits: &[u8]) -> u8 {
    let amounts = digits
        .iter()
        .enumerate()
        .map(|(at, digit)| if is_doubled(at, digits.len()) { doubled(*digit) } else { *digit });
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
    amount / 2 + 5 * (amount & 1)
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
            let digits: Vec<u8> = number.bytes().map(|byte| byte - b'0').collect();
            assert_eq!(luhn(&digits), 0, "{number}");
            for at in 0..digits.len() {
                let mut changed = digits.clone();
                changed[at] = (changed[at] + 1) % 10;
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
                let digits: Vec<u8> = other.bytes().map(|byte| byte - b'0').collect();
                assert_eq!(luhn(&digits), 0, "{}", *other);
                let again = template.take_apart(&other).expect("a card");
                assert_eq!((again.free_digits(), again.tweak(b"")), (&free[..], card.tweak(b"")));
            }
        }
    }

    #[test]
    fn numbers_with_too_few_free_digits_and_what_is_no_number_are_refused() {
        let message = |template: CardTemplate, number: &str| {
            template.take_apart(number).err().expect("refused").to_string()
        };
        assert!(message(SIX_AND_FOUR, "378282246310005").contains("of 15 digits 5 would be free"));
        let kept = CardTemplate { keeps_check: true, ..SIX_AND_FOUR };
        assert!(message(kept, "4111111111111111").contains("5 would be free"));
        assert!(CardTemplate { first: 5, ..kept }.take_apart("4111111111111111").is_ok());
        assert!(
            message(CardTemplate { first: 5, ..kept }, "4111111111111112").contains("check digit is wrong")
        );
        assert!(
            message(CardTemplate { first: usize::MAX, ..kept }, "4111111111111111")
                .contains("0 would be free")
        );
        assert!(message(SIX_AND_FOUR, "4111x11111111111").contains("digits, spaces and hyphens"));
        assert!(message(SIX_AND_FOUR, "41111111111").contains("12 to 19 digits, not 11"));
        assert!(message(SIX_AND_FOUR, &"1".repeat(20)).contains("not 20"));
    }
}
