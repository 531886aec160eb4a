//! What a lookup in a table of two bits is to a garbled circuit: an AND, or a sum.
//!
//! A table with an odd number of ones is an AND up to negations. A negation changes the label for zero by
//! Delta at a garbler, and costs nothing. Any other table is a sum of labels. Tables are public.

use polyclave_cipher::Table;
use polyclave_kernels::label_hash::Negated;

/// What a table of two bits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An AND.
    And(Negated),
    /// A sum of some of both operands and of a constant.
    Sum([bool; 2], bool),
}

impl Kind {
    /// The kind of a table of two bits; the first operand is the lower one.
    pub fn of(table: &Table) -> Kind {
        let at = |x: usize| table.entries().get(x).is_some_and(|entry| entry & 1 == 1);
        let ones = (0..4).filter(|x| at(*x)).count();
        if ones % 2 == 0 {
            return Kind::Sum([at(0) != at(1), at(0) != at(2)], at(0));
        }
        // The one entry that differs from the three others.
        let c = ones == 3;
        let odd = (0..4).find(|x| at(*x) != c).unwrap_or_default();
        Kind::And(Negated { a: odd & 1 == 0, b: odd & 2 == 0, c })
    }

    /// Whether it takes ciphertexts.
    pub fn is_garbled(self) -> bool {
        matches!(self, Kind::And(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_two_bits_are_what_they_are_taken_for() {
        for entries in 0..16_u8 {
            let bit = |x: usize| entries >> x & 1;
            let table = Table::new("a table", 2, 1, (0..4).map(bit).collect());
            for x in 0..4 {
                let operands = [x & 1 == 1, x & 2 == 2];
                let right = match Kind::of(&table) {
                    Kind::And(n) => ((operands[0] ^ n.a) && (operands[1] ^ n.b)) ^ n.c,
                    Kind::Sum(of, one) => (of[0] && operands[0]) ^ (of[1] && operands[1]) ^ one,
                };
                assert_eq!(right, bit(x) == 1, "{entries:04b} at {x}");
            }
        }
    }
}
