//! Public lookup tables: their entries, and their algebraic structure if they have one.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use polyclave_field::Gf256;

use crate::gates::{Form, Gates};
use crate::{Matrix, Polynomials};

/// x -> matrix x + constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The linear part.
    pub matrix: Matrix,
    /// What is added afterwards.
    pub constant: u8,
}

impl Affine {
    /// The map that changes nothing.
    pub fn identity(bits: u8) -> Affine {
        Affine { matrix: Matrix::identity(bits), constant: 0 }
    }

    /// The image of a cell.
    pub fn apply(&self, x: u8) -> u8 {
        self.matrix.apply(x) ^ self.constant
    }
}

/// `after(inverse(before(x)))` over GF(2^8), with the inverse of 0 taken as 0: the S-box of AES and its
/// inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inversion {
    /// Applied to the input.
    pub before: Affine,
    /// Applied to the inverse.
    pub after: Affine,
}

/// A public table on a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    name: String,
    in_bits: u8,
    out_bits: u8,
    entries: Vec<u8>,
    inversion: Option<Inversion>,
    gates: Option<Gates>,
    polynomials: Found,
}

/// A result that was computed for a table's entries when it was first needed. It follows from the entries, so
/// it does not count in comparisons: all are equal.
#[derive(Clone, Debug, Default)]
struct Found(OnceLock<Option<Box<Polynomials>>>);

impl PartialEq for Found {
    fn eq(&self, _: &Found) -> bool {
        true
    }
}

impl Eq for Found {}

impl Hash for Found {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Table {
    /// A table with 2^in_bits entries of `out_bits` bits.
    ///
    /// # Panics
    /// If the number or the size of the entries is another.
    pub fn new(name: &str, in_bits: u8, out_bits: u8, entries: Vec<u8>) -> Table {
        assert!((1..=8).contains(&in_bits) && (1..=8).contains(&out_bits), "a cell has 1 to 8 bits");
        assert_eq!(entries.len(), 1 << in_bits, "table {name} has another number of entries");
        assert!(
            entries.iter().all(|e| u16::from(*e) < 1 << out_bits),
            "an entry of table {name} is too large"
        );
        let polynomials = Found::default();
        Table { name: name.into(), in_bits, out_bits, entries, inversion: None, gates: None, polynomials }
    }

    /// The table of 8 bits that `algebra` describes.
    pub fn from_inversion(name: &str, algebra: Inversion) -> Table {
        let entry = |x| algebra.after.apply(Gf256(algebra.before.apply(x)).inverse_or_zero().0);
        let entries = (0..=255).map(entry).collect();
        Table { inversion: Some(algebra), ..Table::new(name, 8, 8, entries) }
    }

    /// The table of a function written with few ANDs: `write` takes the input bits and returns the output
    /// bits, bit 0 first.
    pub fn from_gates<const INS: usize, const OUTS: usize>(
        name: &str,
        write: impl FnOnce(&mut Gates, [Form; INS]) -> [Form; OUTS],
    ) -> Table {
        let gates = Gates::of(write);
        let entries = (0..=u8::MAX >> (8 - INS)).map(|x| gates.apply(x)).collect();
        Table { gates: Some(gates), ..Table::new(name, INS as u8, OUTS as u8, entries) }
    }

    /// This table with a way to compute it by few ANDs, as [`Table::from_gates`] takes it.
    ///
    /// # Panics
    /// If that gives another entry.
    pub fn with_gates<const INS: usize, const OUTS: usize>(
        self,
        write: impl FnOnce(&mut Gates, [Form; INS]) -> [Form; OUTS],
    ) -> Table {
        let computed = Table::from_gates(&self.name, write);
        assert_eq!(self.entries, computed.entries, "the gates of table {} compute another", self.name);
        computed
    }

    /// The table that undoes this one.
    ///
    /// # Panics
    /// If there is none.
    pub fn inverse(&self, name: &str) -> Table {
        let preimage = |y: u8| self.entries.iter().position(|entry| *entry == y);
        let entries =
            (0..=u8::MAX >> (8 - self.out_bits)).map(|y| preimage(y).expect("it is a permutation") as u8);
        Table::new(name, self.out_bits, self.in_bits, entries.collect())
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bits of the input cell.
    pub fn in_bits(&self) -> u8 {
        self.in_bits
    }

    /// Bits of the output cell.
    pub fn out_bits(&self) -> u8 {
        self.out_bits
    }

    /// The outputs, by input.
    pub fn entries(&self) -> &[u8] {
        &self.entries
    }

    /// The inversion on which this table is built, if it is.
    pub fn inversion(&self) -> Option<&Inversion> {
        self.inversion.as_ref()
    }

    /// How to compute it by few ANDs, if it was given.
    pub(crate) fn gates(&self) -> Option<&Gates> {
        self.gates.as_ref()
    }

    /// The polynomials of Pulkus and Vivek for a table of at most 6 bits to at most 4 that is built on no
    /// inversion. The first call solves for them (about a millisecond).
    pub fn pulkus_vivek(&self) -> Option<&Polynomials> {
        if self.inversion.is_some() {
            return None;
        }
        self.polynomials.0.get_or_init(|| Polynomials::solve(self).map(Box::new)).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_table_whose_polynomials_are_known_is_still_the_same_table() {
        let [known, other] = [0, 0].map(crate::des::s_box);
        assert_eq!(known.pulkus_vivek(), Polynomials::solve(&other).as_ref());
        assert!(known.pulkus_vivek().is_some());
        assert_eq!(known, other);
        assert_eq!(known.clone().pulkus_vivek(), known.pulkus_vivek());
        assert_eq!(HashSet::from([known, other]).len(), 1);
    }

    #[test]
    #[should_panic(expected = "compute another")]
    fn gates_that_compute_another_table_are_refused() {
        Table::new("AND", 2, 1, vec![0, 0, 0, 1]).with_gates(|g, [a, b]| [g.nor(a, b)]);
    }

    #[test]
    fn tables_built_on_inversion_have_no_polynomials() {
        assert_eq!(crate::aes::s_box().pulkus_vivek(), None);
    }
}
