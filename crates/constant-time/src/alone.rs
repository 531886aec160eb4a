//! What a client computes alone, of values that it gives and learns.

use polyclave_cipher::ff1::{Ff1, ROUNDS};
use polyclave_client::{Alphabet, CardTemplate, Feistel, one_time_password, pad, unpadded};
use polyclave_kernels::secret::{is_secret, mark_public, mark_secret};

use crate::{Subject, secrets};

pub const SUBJECTS: &[Subject] = &[
    ("alone: values and tokens", || tokens(|_| ())),
    ("alone: numbers of cards", || cards(|_| ())),
    ("alone: padding", paddings),
    ("alone: one-time passwords", || passwords(|_| ())),
];

/// Radix, digits and layout of values: halves of one length and of two, the shortest and the longest, and
/// characters that stay.
const VALUES: [(u32, &str); 6] = [
    (10, "4929 1234-5678 9012"),
    (10, "0071942"),
    (36, "a9tv40mll9kdu509eum"),
    (2, "01101110010111010011"),
    (10, "98765432109876543210987654321098765432109876543210987654"),
    (36, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"),
];

/// Values become tokens, and these become the values again. Goes on with the digits of each.
pub fn tokens(then: fn(&[u8])) {
    for (radix, value) in VALUES {
        let alphabet = Alphabet::of_radix(radix).expect("an alphabet");
        let tweak_of_rounds = secrets::bytes(16);
        let exchanged = |text: &str, inverse: bool| {
            let digits = alphabet.digits(text, true).expect("others stay");
            assert!(is_secret(&digits), "digits are secret to memcheck");
            let ff1 = Ff1::new(radix, digits.len() as u32).expect("it fits");
            let mut feistel = Feistel::new(ff1, inverse, [&digits[..], &digits[..]].into_iter());
            for _ in 0..ROUNDS {
                let numbers = feistel.numbers();
                let sums = numbers.chunks(ff1.number_bytes()).map(|number| sum(number, &tweak_of_rounds));
                let sums: Vec<u8> = sums.flat_map(|sum| sum[..ff1.sum_bytes()].to_vec()).collect();
                feistel.advance(&sums);
            }
            let digits = feistel.digits().remove(1);
            then(&digits);
            alphabet.text(text, &digits)
        };
        let text = secret_text(value);
        let token = exchanged(&text, false);
        let back = exchanged(&token, true);
        // Only for the comparison, after all that is watched.
        [&token, &back].into_iter().for_each(|text| mark_public(text.as_bytes()));
        assert!(*back == value && *token != value, "{value}, {}, {}", *token, *back);
    }
}

/// What takes the place of a round of the nodes: any function will do.
fn sum(number: &[u8], key: &[u8]) -> Vec<u8> {
    let mixed = number.iter().fold(0x1f_u8, |mixed, byte| mixed.wrapping_mul(37) ^ byte);
    let byte = |(i, key): (usize, &u8)| number[i % number.len()].wrapping_mul(29) ^ mixed ^ key;
    key.iter().enumerate().map(byte).collect()
}

/// A text whose characters are secret, except that each has one byte.
fn secret_text(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    mark_secret(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte &= 0x7f);
    String::from_utf8(bytes).expect("ASCII")
}

/// Numbers of cards are taken apart and put together. Goes on with each other number.
pub fn cards(then: fn(&[u8])) {
    for (number, keeps_check) in
        [("4111 1111-1111 1111", false), ("4111 1111-1111 1111", true), ("378282246310005", true)]
    {
        let template = CardTemplate { first: 4, last: 2, keeps_check };
        let card = template.take_apart(&secret_text(number)).expect("a card");
        assert!(is_secret(card.free_digits().as_bytes()), "digits are secret to memcheck");
        let mut free = secrets::bytes(card.free_digits().len());
        free.iter_mut().for_each(|byte| *byte = b'0' | *byte & 7);
        let free = String::from_utf8(free).expect("digits");
        let other = card.with(&free).expect("digits");
        then(other.as_bytes());
        // It passes the Luhn test if that is kept.
        let again = template.take_apart(&other).expect("a card");
        let free_again = again.free_digits();
        [free_again, &free].into_iter().for_each(|free| mark_public(free.as_bytes()));
        assert!(free_again == free, "{free_again}");
        // The nodes see it.
        let tweak = card.tweak(b"shop");
        mark_public(&tweak);
        assert!(tweak.starts_with(b"shop"), "what was given comes first");
    }
}

/// Codes of HMAC become passwords. Goes on with the digits of each.
pub fn passwords(then: fn(&[u8])) {
    for (bytes, digits) in [(32, 6), (32, 8), (64, 7)] {
        let password = one_time_password(&secrets::bytes(bytes), digits);
        assert!(is_secret(password.as_bytes()), "digits are secret to memcheck");
        then(password.as_bytes());
        // Only for the check, after all that is watched.
        mark_public(password.as_bytes());
        assert!(password.len() == usize::from(digits) && password.parse::<u32>().is_ok());
    }
}

/// Paddings of all lengths, right, and wrong in each byte.
fn paddings() {
    for block in [8, 16] {
        let message = |len: usize| (0..len).map(|i| i as u8 | 0x40).collect::<Vec<u8>>();
        for len in 0..block {
            let mut last = secrets::bytes(len);
            pad(&mut last, block);
            mark_secret(&mut last);
            assert!(unpadded(&last).is_ok_and(|kept| kept == len), "{len}");
            let mut known = message(len);
            pad(&mut known, block);
            for wrong in len..block {
                let mut last = known.clone();
                last[wrong] ^= 0x80;
                mark_secret(&mut last);
                assert!(unpadded(&last).is_err(), "{len}, {wrong}");
            }
        }
        for count in [0, block as u8 + 1, 0xff] {
            let mut last = vec![count; block];
            mark_secret(&mut last);
            assert!(unpadded(&last).is_err(), "{count}");
        }
    }
}
