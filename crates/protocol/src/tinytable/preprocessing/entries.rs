//! The entries of tables, T(M + s) + o for all M, as authenticated bits.

use std::sync::Arc;

use polyclave_cipher::{AnyMap, Builder, Compiled, Table, boolean, compile};

use super::PreprocessingMethod;
use super::masks::MaskRegisters;
use super::products::Products;
use crate::Result;
use crate::interface::net::Net;
use crate::interface::tally::Counts;
use crate::tinyot::Bits;

/// By entry, then by bit, all lanes.
pub(super) type EntryBits = Vec<Vec<Bits>>;

/// Makes entries in one way.
pub(super) struct Entries {
    method: PreprocessingMethod,
    /// Boolean circuits of tables.
    circuits: Vec<(Arc<Table>, Compiled)>,
}

impl Entries {
    pub(super) fn new(method: PreprocessingMethod) -> Self {
        Entries { method, circuits: Vec::new() }
    }

    /// Gets ready for the tables of a circuit.
    pub(super) fn prepare(&mut self, compiled: &Compiled) {
        for table in compiled
            .tables()
            .iter()
            .filter(|t| t.in_bits() > 2 && self.method == PreprocessingMethod::Circuit)
        {
            if self.circuit(table).is_none() {
                let mut b = Builder::new(table.name());
                let x = b.input("x", 1, table.in_bits())[0];
                let id = b.table(table);
                let y = b.lookup(id, x);
                b.output("y", &[y]);
                let circuit = compile(&boolean::expand(&b.finish()), &AnyMap);
                self.circuits.push((table.clone(), circuit));
            }
        }
    }

    fn circuit(&self, table: &Table) -> Option<&Compiled> {
        self.circuits.iter().find(|(of, _)| **of == *table).map(|(_, circuit)| circuit)
    }

    /// Products for each lookup of a table.
    pub(super) fn products(&self, table: &Table) -> usize {
        match self.circuit(table) {
            Some(circuit) => circuit.lookups().count() << table.in_bits(),
            None => (1 << table.in_bits()) - usize::from(table.in_bits()) - 1,
        }
    }

    /// Makes the entries of lookups whose masks of input and output have these bits.
    pub(super) fn make(
        &self,
        table: &Table,
        input: Vec<Bits>,
        output: &[Bits],
        products: &mut Products,
        counts: &mut Counts,
        net: &mut dyn Net,
    ) -> Result<EntryBits> {
        match self.circuit(table) {
            Some(circuit) => evaluate_all(circuit, &input, output, products, counts, net),
            None => Ok(sums(table, unit_vector(input, products, counts, net)?, output)),
        }
    }
}

/// The circuit of a table on M + s for all M, one after another as this many lanes (section 4, "Preprocessing
/// for AES"). A round for every layer.
fn evaluate_all(
    circuit: &Compiled,
    s: &[Bits],
    output: &[Bits],
    products: &mut Products,
    counts: &mut Counts,
    net: &mut dyn Net,
) -> Result<EntryBits> {
    let (lanes, entries) = (s[0].len(), 1 << s.len());
    let mut registers = MaskRegisters::new(circuit, lanes * entries);
    // Most significant first, in a byte if the width does not divide 8.
    let cells = &circuit.inputs()[0].cells;
    for (views, (i, bit)) in cells[cells.len() - s.len()..].iter().zip(s.iter().enumerate().rev()) {
        let mut x = Bits::join(&vec![bit; entries]);
        let public: Vec<u8> =
            (0..entries).flat_map(|m| std::iter::repeat_n((m >> i & 1) as u8, lanes)).collect();
        x.add_public(&public, products.key());
        for (matrix, slot) in views {
            registers.put(*slot, matrix, &[x.slices(0..x.len())]);
        }
    }
    for layer in circuit.layers() {
        registers.linear(&layer.linear, Some(products.key()));
        if layer.lookups.is_empty() {
            continue;
        }
        let operands: Vec<Vec<Bits>> =
            layer.lookups.iter().map(|lookup| registers.bits(lookup.xs[0], 2)).collect();
        let joined = |i: usize| Bits::join(&operands.iter().map(|pair| &pair[i]).collect::<Vec<_>>());
        let made = products.multiply(&joined(0), &joined(1), counts, net)?;
        for (i, lookup) in layer.lookups.iter().enumerate() {
            let product = made.slices(i * lanes * entries..(i + 1) * lanes * entries);
            for (matrix, slot) in &lookup.views {
                registers.put(*slot, matrix, &[product]);
            }
        }
    }
    let cells: Vec<Vec<Bits>> =
        circuit.outputs()[0].cells.iter().map(|views| registers.bits(views[0].1, 1)).collect();
    let entry = |m: usize| {
        let bits = cells.iter().rev().zip(output).map(|(cell, o)| {
            let mut bit = cell[0].part(m * lanes..(m + 1) * lanes);
            bit.add(o);
            bit
        });
        bits.collect()
    };
    Ok((0..entries).map(entry).collect())
}

/// The unit vector of s: entry j is the product of all s_i or 1 + s_i, by Keller et al. 2017, Protocol 3, on
/// single bits. For two bits it takes one product, as in figure 8. For l bits it takes 2^l - l - 1 and not
/// 2^l - 2, since at every step the entries add up to 1, and the last product is what the others leave of the
/// bit. One round for every bit but the first.
fn unit_vector(
    s: Vec<Bits>,
    products: &mut Products,
    counts: &mut Counts,
    net: &mut dyn Net,
) -> Result<Vec<Bits>> {
    let lanes = s[0].len();
    let ones = vec![1; lanes];
    let mut not = s[0].clone();
    not.add_public(&ones, products.key());
    let mut vector = vec![not, s[0].clone()];
    for bit in &s[1..] {
        // The last entry's product follows from the others: they add up to the bit.
        let factors: Vec<&Bits> = vector[..vector.len() - 1].iter().collect();
        let repeated = Bits::join(&vec![bit; factors.len()]);
        let made = products.multiply(&Bits::join(&factors), &repeated, counts, net)?;
        let mut upper: Vec<Bits> =
            (0..factors.len()).map(|j| made.part(j * lanes..(j + 1) * lanes)).collect();
        let mut last = bit.clone();
        upper.iter().for_each(|product| last.add(product));
        upper.push(last);
        vector.iter_mut().zip(&upper).for_each(|(lower, upper)| lower.add(upper));
        vector.extend(upper);
    }
    Ok(vector)
}

/// T(M + s) + o = sum over j of T(M + j) e_j + o: a product in the group algebra of (Z_2)^l over GF(2), which
/// is that of polynomials in y_i = 1 + x_i with y_i^2 = 0. To these coefficients and back it is l rounds of
/// sums, and the product is 3^l sums rather than 4^l, half of them of zeros.
fn sums(table: &Table, mut vector: Vec<Bits>, output: &[Bits]) -> EntryBits {
    sums_over_supersets(&mut vector, |low, high| low.add(high));
    let lanes = vector[0].len();
    let mut entries: EntryBits = (0..vector.len()).map(|_| Vec::with_capacity(output.len())).collect();
    for (bit, o) in output.iter().enumerate() {
        let mut coefficients: Vec<u8> = table.entries().iter().map(|entry| entry >> bit & 1).collect();
        sums_over_supersets(&mut coefficients, |low, high| *low ^= high);
        let mut row: Vec<Bits> = (0..vector.len())
            .map(|at| {
                let mut sum = Bits::zero(lanes);
                let parts = (0..=at).filter(|part| part & at == *part && coefficients[at ^ part] == 1);
                parts.for_each(|part| sum.add(&vector[part]));
                sum
            })
            .collect();
        sums_over_supersets(&mut row, |low, high| low.add(high));
        for (entry, mut bits) in entries.iter_mut().zip(row) {
            bits.add(o);
            entry.push(bits);
        }
    }
    entries
}

/// Replaces what stands at every index by the sum over all indices that contain its bits.
fn sums_over_supersets<T>(rows: &mut [T], add: impl Fn(&mut T, &T)) {
    let mut bit = 1;
    while bit < rows.len() {
        for at in (0..rows.len()).filter(|at| at & bit == 0) {
            let (low, high) = rows.split_at_mut(at + bit);
            add(&mut low[at], &high[0]);
        }
        bit *= 2;
    }
}
