//! Values of any number of bits in hexadecimal, the most significant bit first, with zeros before it: in
//! whole bytes, or in no more digits than they need, as `1` for a bit.

use anyhow::{Result, ensure};
use polyclave_cipher::Cells;

use crate::options::hexadecimal;

/// Parses a value of this many bits into cells of one bit.
pub fn from_hex(what: &str, text: &str, bits: usize) -> Result<Cells> {
    let (bytes, given) = (bits.div_ceil(8), text.strip_prefix("0x").unwrap_or(text).chars().count());
    let plural = if bits == 1 { "" } else { "s" };
    let (whole, least) = (2 * bytes, bits.div_ceil(4));
    let due = if least < whole { format!("{least} or {whole}") } else { whole.to_string() };
    ensure!(given == whole || given == least, "{what} has {bits} bit{plural}: {due} hex digits, not {given}");
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let value = match given < whole {
        true => hexadecimal(what, &format!("0{digits}"))?,
        false => hexadecimal(what, digits)?,
    };
    let zeros = 8 * bytes - bits;
    let bit = |i: usize| value[i / 8] >> (7 - i % 8) & 1;
    ensure!(
        (0..zeros).all(|i| bit(i) == 0),
        "{what} has {bits} bit{plural}; the first {zeros} of {text} must be 0"
    );
    let mut cells = Cells::zero(bits, 1, 1);
    cells.rows_mut().iter_mut().enumerate().for_each(|(i, cell)| *cell = bit(zeros + i));
    Ok(cells)
}

/// Formats the value in cells of one bit, in one lane.
pub fn to_hex(cells: &Cells) -> String {
    let bits = cells.rows();
    let mut value = vec![0u8; bits.len().div_ceil(8)];
    let zeros = 8 * value.len() - bits.len();
    bits.iter().enumerate().for_each(|(i, bit)| value[(zeros + i) / 8] |= bit << (7 - (zeros + i) % 8));
    hex::encode(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_start_with_zeros() {
        for (bits, text) in [(1, "01"), (3, "05"), (8, "a7"), (9, "01ff"), (13, "1234"), (16, "8001")] {
            let cells = from_hex("x", text, bits).expect("it fits");
            assert_eq!((cells.count(), to_hex(&cells).as_str()), (bits, text));
            assert_eq!(
                cells.row(bits - 1),
                [u8::from_str_radix(&text[text.len() - 1..], 16).expect("hex") & 1]
            );
        }
        assert_eq!(from_hex("x", "0x05", 3).expect("it fits").rows(), [1, 0, 1]);
        for (bits, text) in [(1, "1"), (1, "0x1"), (3, "5"), (9, "1ff")] {
            let whole = format!("0{}", text.trim_start_matches("0x"));
            let given =
                [text, &whole].map(|text| from_hex("x", text, bits).expect("it fits").rows().to_vec());
            assert_eq!(given[0], given[1], "{text}");
        }
    }

    #[test]
    fn wide_and_short_values_are_refused() {
        let refused =
            |text: &str, bits: usize| from_hex("x", text, bits).expect_err("it does not fit").to_string();
        assert_eq!(refused("08", 3), "x has 3 bits; the first 5 of 08 must be 0");
        assert_eq!(refused("2", 1), "x has 1 bit; the first 7 of 2 must be 0");
        assert_eq!(refused("005", 3), "x has 3 bits: 1 or 2 hex digits, not 3");
        assert_eq!(refused("5", 8), "x has 8 bits: 2 hex digits, not 1");
        assert_eq!(refused("", 1), "x has 1 bit: 1 or 2 hex digits, not 0");
        assert!(refused("0g", 3).contains("'g' at position 2"));
    }
}
