//! A table as a program with few ANDs. Each product is one of sums of the input bits and of earlier products.
//!
//! XOR and NOT are free. So a program is a list of products, each of two sums, and one sum for every output
//! bit. It is written as ordinary code on bits, and [`crate::Table::with_gates`] checks it against the
//! table's entries.

use std::ops::{BitXor, BitXorAssign, Not};

/// The bit of a [`Form`] that stands for the constant.
const ONE: u64 = 1 << 63;

/// A sum of input bits, products and perhaps 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form(u64);

impl Form {
    /// Which input bits (bit 0 first), then products are in the sum.
    pub(crate) fn terms(self) -> u64 {
        self.0 & !ONE
    }

    /// Whether 1 is added.
    pub(crate) fn is_negated(self) -> bool {
        self.0 & ONE != 0
    }

    /// Its value, if bit i of `bits` is the value of term i.
    fn value(self, bits: u64) -> bool {
        ((self.terms() & bits).count_ones() & 1 == 1) != self.is_negated()
    }
}

impl BitXor for Form {
    type Output = Form;

    fn bitxor(self, other: Form) -> Form {
        Form(self.0 ^ other.0)
    }
}

impl BitXorAssign for Form {
    fn bitxor_assign(&mut self, other: Form) {
        self.0 ^= other.0;
    }
}

impl Not for Form {
    type Output = Form;

    fn not(self) -> Form {
        Form(self.0 ^ ONE)
    }
}

/// A function of at most 8 bits by products of sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gates {
    ins: u8,
    products: Vec<[Form; 2]>,
    outputs: Vec<Form>,
}

impl Gates {
    /// What `write` does with the input bits, bit 0 first; it returns the output bits, bit 0 first.
    pub(crate) fn of<const INS: usize, const OUTS: usize>(
        write: impl FnOnce(&mut Gates, [Form; INS]) -> [Form; OUTS],
    ) -> Gates {
        let mut gates = Gates { ins: INS as u8, products: Vec::new(), outputs: Vec::new() };
        gates.outputs = write(&mut gates, std::array::from_fn(|i| Form(1 << i))).into();
        gates
    }

    /// a b.
    ///
    /// # Panics
    /// If there are too many products for a [`Form`].
    pub fn and(&mut self, a: Form, b: Form) -> Form {
        let at = usize::from(self.ins) + self.products.len();
        assert!(at < 63, "a table has at most {} products", 63 - self.ins);
        self.products.push([a, b]);
        Form(1 << at)
    }

    /// 1 where both are 0.
    pub fn nor(&mut self, a: Form, b: Form) -> Form {
        self.and(!a, !b)
    }

    /// The factors of each product.
    pub(crate) fn products(&self) -> &[[Form; 2]] {
        &self.products
    }

    /// The output bits, bit 0 first.
    pub(crate) fn outputs(&self) -> &[Form] {
        &self.outputs
    }

    /// The image of a cell.
    pub(crate) fn apply(&self, x: u8) -> u8 {
        let mut bits = u64::from(x);
        for (at, [a, b]) in (self.ins..).zip(&self.products) {
            bits |= u64::from(a.value(bits) && b.value(bits)) << at;
        }
        (0..).zip(&self.outputs).fold(0, |y, (i, form)| y | u8::from(form.value(bits)) << i)
    }
}
