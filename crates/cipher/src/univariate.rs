//! Tables of 6 bits as one polynomial over GF(2^6) (Carlet et al. 2012; Keller et al. 2017, sections 3.2 and
//! 5, 3DES-Raw).
//!
//! The field is GF(2)\[x\]/(x^6 + x^4 + x^3 + x + 1), bit i of a cell the coefficient of x^i, and outputs are
//! padded with zeros above. Since (X + a)^63 is 0 at a and 1 elsewhere, f(X) is the sum over all a of f(a)
//! (1 + (X + a)^63), and as every binomial coefficient of 63 is odd, the coefficient of X^i is the sum of
//! f(a) a^(63-i) for i > 0, and f(0) for i = 0. The coefficient of X^63 is the sum of all outputs, which is 0
//! for tables that put out every value equally often, as the S-boxes of DES do: their polynomials have degree
//! 62 at most.
//!
//! Not constant time in the coefficients and points: tables are public.

use crate::Table;

/// Elements of the field.
pub const ELEMENTS: usize = 64;

/// The product of two elements of GF(2^6).
pub fn multiply(a: u8, b: u8) -> u8 {
    let doubled = |a: u8| (a << 1) ^ if a & 0x20 == 0 { 0 } else { 0x5b };
    let powers = std::iter::successors(Some(a), |a| Some(doubled(*a)));
    powers.take(6).enumerate().fold(0, |sum, (i, a)| sum ^ if b >> i & 1 == 0 { 0 } else { a })
}

/// The coefficients of the polynomial that takes every cell to the table's output, that of X^i at position i.
/// None for tables of another number of input bits than 6, or of more than 6 output bits.
pub fn interpolate(table: &Table) -> Option<[u8; ELEMENTS]> {
    if table.in_bits() != 6 || table.out_bits() > 6 {
        return None;
    }
    let mut coefficients = [0; ELEMENTS];
    coefficients[0] = table.entries()[0];
    for (a, entry) in table.entries().iter().enumerate() {
        // From X^63 down, each power of a is a times the last; 0^0 is 1.
        let mut term = *entry;
        for coefficient in coefficients[1..].iter_mut().rev() {
            *coefficient ^= term;
            term = multiply(term, a as u8);
        }
    }
    Some(coefficients)
}

/// The value of a polynomial at a cell (Horner).
pub fn evaluate(coefficients: &[u8; ELEMENTS], x: u8) -> u8 {
    coefficients.iter().rev().fold(0, |value, c| multiply(value, x) ^ c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::des::s_box;

    #[test]
    fn all_inputs_of_all_des_s_boxes_come_out_of_a_polynomial_of_degree_62_at_most() {
        for table in (0..8).map(s_box) {
            let coefficients = interpolate(&table).expect("it takes 6 bits");
            assert_eq!(coefficients[63], 0, "{}", table.name());
            for (x, entry) in table.entries().iter().enumerate() {
                assert_eq!(evaluate(&coefficients, x as u8), *entry, "{} at {x}", table.name());
            }
        }
    }

    /// A table that is 1 at one place only has degree 63, at 0 too.
    #[test]
    fn tables_of_degree_63_come_out_as_well() {
        for at in [0, 1, 63] {
            let table = Table::new("unit", 6, 6, (0..64).map(|x| u8::from(x == at)).collect());
            let coefficients = interpolate(&table).expect("it takes 6 bits");
            assert_eq!(coefficients[63], 1);
            assert!((0..64).all(|x| evaluate(&coefficients, x) == u8::from(x == at)));
        }
    }

    #[test]
    fn tables_of_other_widths_have_no_polynomial() {
        assert_eq!(interpolate(&crate::aes::s_box()), None);
        assert_eq!(interpolate(&Table::new("wide", 6, 8, (0..64).collect())), None);
    }

    #[test]
    fn elements_but_zero_are_powers_of_x_and_products_are_those_of_polynomials() {
        let powers: Vec<u8> =
            std::iter::successors(Some(1), |p| Some(multiply(*p, 2))).take(ELEMENTS).collect();
        assert_eq!(powers[63], 1);
        assert!((1..64).all(|x| powers.contains(&x)));
        // By exponents.
        for (i, j) in (0..63).flat_map(|i| (0..63).map(move |j| (i, j))) {
            assert_eq!(multiply(powers[i], powers[j]), powers[(i + j) % 63]);
        }
        assert!((0..64).all(|x| multiply(x, 0) == 0 && multiply(0, x) == 0));
    }
}
