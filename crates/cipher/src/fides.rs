//! The S-boxes of FIDES (Bilgin et al., "Fides: lightweight authenticated cipher with side-channel resistance for constrained
//! hardware", CHES 2013, ePrint 2015/424), of 5 bits (FIDES-80) and 6 bits (FIDES-96).
//!
//! The cipher itself is not shipped. Its round constants, where it absorbs, and how it packs and pads bits could not be read
//! from a source, and there are no test vectors: whatever were built from the rest would run, and nobody could say whether it
//! is FIDES. The S-boxes stand on their own: the properties their designers claim break with any slip of a digit.

use crate::Table;

/// The S-box of FIDES-80: almost bent, quadratic.
pub fn s_box_5() -> Table {
    Table::new("FIDES S5", 5, 5, S5.into())
}

/// The S-box of FIDES-96: almost perfect nonlinear, of degree 4.
pub fn s_box_6() -> Table {
    Table::new("FIDES S6", 6, 6, S6.into())
}

const S5: [u8; 32] = [
    1, 0, 25, 26, 17, 29, 21, 27, 20, 5, 4, 23, 14, 18, 2, 28, 15, 8, 6, 3, 13, 7, 24, 16, 30, 9, 31, 10, 22,
    12, 11, 19,
];

const S6: [u8; 64] = [
    54, 0, 48, 13, 15, 18, 35, 53, 63, 25, 45, 52, 3, 20, 33, 41, 8, 10, 57, 37, 59, 36, 34, 2, 26, 50, 58,
    24, 60, 19, 14, 42, 46, 61, 5, 49, 31, 11, 28, 4, 12, 30, 55, 22, 9, 6, 32, 23, 27, 39, 21, 17, 16, 29,
    62, 1, 40, 47, 51, 56, 7, 43, 38, 44,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(table: &Table, x: u8) -> u8 {
        table.entries()[usize::from(x)]
    }

    /// The most often that a difference of inputs leads to one of outputs.
    fn uniformity(table: &Table) -> usize {
        let size = table.entries().len() as u8;
        let count = |a: u8, b: u8| (0..size).filter(|x| at(table, *x) ^ at(table, x ^ a) == b).count();
        (1..size).flat_map(|a| (0..size).map(move |b| (a, b))).map(|(a, b)| count(a, b)).max().unwrap_or(0)
    }

    /// The largest correlation of a sum of inputs with one of outputs, times their number.
    fn largest_walsh(table: &Table) -> i32 {
        let size = table.entries().len() as u8;
        let sign =
            |x: u8, a: u8, b: u8| 1 - 2 * ((x & a).count_ones() + (at(table, x) & b).count_ones() & 1) as i32;
        let walsh = |a: u8, b: u8| (0..size).map(|x| sign(x, a, b)).sum::<i32>().abs();
        (0..size).flat_map(|a| (1..size).map(move |b| (a, b))).map(|(a, b)| walsh(a, b)).max().unwrap_or(0)
    }

    #[test]
    fn s_boxes_are_as_nonlinear_as_permutations_get() {
        for (table, walsh) in [(s_box_5(), 8), (s_box_6(), 16)] {
            table.inverse("it is a permutation");
            assert_eq!((uniformity(&table), largest_walsh(&table)), (2, walsh), "{}", table.name());
        }
    }
}
