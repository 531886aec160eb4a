//! The method of IBM 3624: validation data is encrypted, the decimalization table makes the leading digits of
//! it decimal (the natural PIN), and an offset is added digit by digit, modulo 10 (IBM z/OS ICSF, "IBM 3624
//! PIN verification algorithm").
//!
//! Digits are computed with as parity and rest modulo 5, because a sum modulo 10 takes 8 bits, and tables at
//! most 6. The public digits go in in this form.

use polyclave_cipher::Wire;

use crate::card::{Digits, Pan};
use crate::payment::Role;
use crate::pin_block::PinFormat;
use crate::purpose::DecimalizationTable;
use crate::tables::{residues, sum_modulo_5, table, to_residues};
use crate::wiring::{Key, Wiring};

use super::is_for_ibm3624;

pub(crate) fn role() -> Role {
    Role { name: "PIN verification key", takes: is_for_ibm3624 }
}

/// The fewest digits of a card number in validation data.
const LEAST_OF_PAN: usize = 10;

/// How many of them the PIN block is bound to at least. The first 12 digits of a number of 16 have so many.
const LEAST_BOUND: usize = 9;

/// Whether validation data is of a card: consecutive digits of its number, and then a fill of one character.
/// With data of another card, or with a few digits that many cards have, a client could verify PINs of one
/// card against the natural PIN of its own. So enough of the digits are among those that are part of the PIN
/// block: in format 4 all of the card number, and in the others the last 12 before the check digit. The rest
/// of the number is only what the client says.
pub(crate) fn check_data(data: &[u8; 8], pan: &Pan, format: PinFormat) -> Result<(), String> {
    let (text, digits) = (hex::encode(data), pan.digits().as_str());
    let bound = match format {
        PinFormat::Iso4 => 0..digits.len(),
        _ => digits.len().saturating_sub(13)..digits.len() - 1,
    };
    let bound_of = |at: usize, count: usize| (at..at + count).filter(|place| bound.contains(place)).count();
    let is_of_pan = (LEAST_OF_PAN..=text.len()).any(|count| {
        let (of_pan, fill) = text.split_at(count);
        let is_fill = fill.bytes().all(|c| fill.as_bytes().first() == Some(&c));
        let mut places = (0..digits.len()).filter(|at| digits[*at..].starts_with(of_pan));
        is_fill && places.any(|at| bound_of(at, count) >= LEAST_BOUND)
    });
    match is_of_pan {
        true => Ok(()),
        false => Err(format!(
            "validation data is {LEAST_OF_PAN} or more consecutive digits of the card number, and then one character as a fill; \
             {LEAST_BOUND} or more of the digits are of those that the PIN block is bound to, which are the last 12 before the \
             check digit (iso4: all)"
        )),
    }
}

/// Digits as residues, two a byte.
pub(crate) fn public_digits(digits: &Digits) -> Vec<u8> {
    let values: Vec<u8> = digits.values().map(residues).collect();
    values.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

/// Which digit of the natural PIN is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Itself.
    Plus,
    /// What it takes to get to 0 modulo 10.
    Minus,
}

/// The first digits of the natural PIN, as residues. The validation data is public.
pub(crate) fn natural(
    w: &mut Wiring,
    key: &Key,
    decimalization: &DecimalizationTable,
    count: usize,
    sign: Sign,
) -> Vec<Vec<Wire>> {
    let name = if sign == Sign::Plus { "natural" } else { "minus natural" };
    let table = table(&format!("{name} {decimalization}"), 4, 4, |x| {
        let digit = decimalization.digits()[usize::from(x)];
        residues(if sign == Sign::Plus { digit } else { (10 - digit) % 10 })
    });
    let data = w.public(8);
    let encrypted = w.encrypt(key, &data);
    let bits = w.bits(&encrypted);
    bits.chunks(4).take(count).map(|nibble| w.lookup(&table, nibble)).collect()
}

/// Public digits in the form in which they are computed with.
pub(crate) fn public_residues(w: &mut Wiring, count: usize) -> Vec<Vec<Wire>> {
    let public = w.public(count.div_ceil(2));
    let bits = w.bits(&public);
    bits.chunks(4).take(count).map(<[Wire]>::to_vec).collect()
}

/// Nibbles that are digits as residues.
pub(crate) fn residues_of(w: &mut Wiring, digits: &[Vec<Wire>]) -> Vec<Vec<Wire>> {
    let table = to_residues();
    digits.iter().map(|digit| w.lookup(&table, digit)).collect()
}

/// Sums modulo 10, digit by digit.
pub(crate) fn sums(w: &mut Wiring, x: &[Vec<Wire>], y: &[Vec<Wire>]) -> Vec<Vec<Wire>> {
    let table = sum_modulo_5();
    let sum = |(x, y): (&Vec<Wire>, &Vec<Wire>)| {
        let mut sum = w.xor_bits(&[&x[..1], &y[..1]]);
        sum.extend(w.lookup(&table, &[&x[1..], &y[1..]].concat()));
        sum
    };
    x.iter().zip(y).map(sum).collect()
}

/// The condition that a PIN is the natural one plus the public offset.
pub(crate) fn require_pin(w: &mut Wiring, key: &Key, table: &DecimalizationTable, pin: &[Vec<Wire>]) {
    let natural = natural(w, key, table, pin.len(), Sign::Plus);
    let offset = public_residues(w, pin.len());
    let expected = sums(w, &natural, &offset);
    let entered = residues_of(w, pin);
    for (expected, entered) in expected.iter().zip(&entered) {
        let difference = w.xor_bits(&[expected, entered]);
        w.require_zero(&difference);
    }
}

#[cfg(test)]
mod tests {
    use super::PinFormat;

    fn check(text: &str, pan: &str, format: PinFormat) -> Result<(), String> {
        let data: [u8; 8] = hex::decode(text).expect("digits").try_into().expect("8 bytes");
        super::check_data(&data, &pan.parse().expect("a card"), format)
    }

    #[test]
    fn validation_data_is_of_the_card() {
        for format in [PinFormat::Iso0, PinFormat::Iso1, PinFormat::Iso3, PinFormat::Iso4] {
            let check = |text: &str| check(text, "1122334455667788", format);
            // With ten digits of those that blocks of all formats have, and with nine.
            for right in [
                "1122334455667788",
                "2334455667788fff",
                "2334455667ffffff",
                "112233445566ffff",
                "4455667788000000",
            ] {
                assert_eq!(check(right), Ok(()), "{right} {format}");
            }
            // With eight.
            let of_others = "11223344556fffff";
            assert_eq!(check(of_others).is_ok(), format == PinFormat::Iso4, "{of_others} {format}");
            for wrong in ["1122334455667798", "112233445fffffff", "1122334455fffffe", "ffffffffffffffff"] {
                assert!(check(wrong).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn validation_data_is_of_the_digits_that_the_block_is_bound_to() {
        // Two cards of 19 digits whose blocks have the same 12: a client names its own in place of another.
        let (own, same) = ("5551112223344556677", "6666662223344556677");
        for (format, is_right) in [
            (PinFormat::Iso0, false),
            (PinFormat::Iso1, false),
            (PinFormat::Iso3, false),
            (PinFormat::Iso4, true),
        ] {
            assert_eq!(check("5551112223ffffff", own, format).is_ok(), is_right, "{format}");
            assert_eq!(check("6666662223ffffff", same, format).is_ok(), is_right, "{format}");
            assert_eq!(check("2223344556ffffff", own, format), Ok(()), "{format}");
            assert_eq!(check("5551112223344556", own, format), Ok(()), "{format}");
        }
        // A short number has 11 before the check digit.
        assert_eq!(check("123456789012ffff", "123456789012", PinFormat::Iso0), Ok(()));
    }
}
