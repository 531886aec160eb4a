//! Writes any table as XORs and ANDs. Two input bits split it into four tables, whose bits are sums of
//! products.
//!
//! In a basis of the input space, let u and v be the last two coordinates and w the others. An output bit is
//! f0(w) + u f1(w) + v f2(w) + uv f3(w). All products of coordinates of w are made once for all outputs, and
//! a bit takes as many ANDs more as f1, f2 and f3 span dimensions (constants apart). Of all sums of output
//! bits, the ones with the fewest ANDs are computed. The output bits follow from them linearly. For 6 bits at
//! most 11 + 1 + 3 per output.
//!
//! How many it is depends on the basis. Those for the S-boxes of DES come from a search through all 651
//! choices of u and v and all 256 ways to choose the other coordinates for each.

use super::{Bit, BooleanBuilder};
use crate::{Matrix, Table, des};

/// The bases of the search for S1 to S8: the vectors for the coordinates w, then those for u and v.
const DES_BASES: [[u8; 6]; 8] = [
    [1, 4, 24, 32, 62, 52],
    [1, 4, 8, 16, 26, 32],
    [2, 4, 8, 16, 1, 32],
    [5, 8, 17, 32, 47, 1],
    [2, 4, 8, 16, 23, 48],
    [2, 4, 8, 16, 1, 36],
    [2, 4, 8, 16, 1, 32],
    [2, 4, 8, 16, 1, 32],
];

/// The four functions of w for one output bit: bit m of a mask says whether the product of the coordinates in
/// m is in the sum.
type Functions = [u64; 4];

/// How a table is computed.
pub(super) struct Decomposition {
    /// From the input to its coordinates.
    coordinates: Matrix,
    sums: Vec<SumOfOutputs>,
    /// From these sums to the output.
    outputs: Matrix,
}

/// f0 + k1 u + k2 v + k3 uv + sum of g_j (c_j1 u + c_j2 v + c_j3 uv), constants of f1, f2, f3 in k.
struct SumOfOutputs {
    f0: u64,
    constants: u8,
    products: Vec<(u64, u8)>,
}

impl Decomposition {
    pub(super) fn of(table: &Table) -> Decomposition {
        let bits = table.in_bits();
        let plain: Vec<u8> = (0..bits).map(|i| 1 << i).collect();
        let known = (0..8).find(|i| des::s_box(*i).entries() == table.entries());
        let basis = known.map_or(plain, |i| DES_BASES[i].to_vec());
        let from_coordinates = Matrix::from_columns(&basis, bits);
        let coordinates = from_coordinates.inverse().expect("a basis");
        let functions: Vec<Functions> =
            (0..table.out_bits()).map(|o| functions(table, &from_coordinates, o)).collect();

        let sum_of = |mask: u8| {
            let chosen = functions.iter().enumerate().filter(|(o, _)| mask >> o & 1 == 1);
            SumOfOutputs::of(chosen.fold([0; 4], |sum, (_, f)| std::array::from_fn(|k| sum[k] ^ f[k])))
        };
        let mut candidates: Vec<(u8, SumOfOutputs)> =
            (1..=u8::MAX >> (8 - table.out_bits())).map(|mask| (mask, sum_of(mask))).collect();
        candidates.sort_by_key(|(_, sum)| sum.products.len());
        let (mut masks, mut sums, mut spanned) = (Vec::new(), Vec::new(), vec![0u8]);
        for (mask, sum) in candidates {
            if !spanned.contains(&mask) {
                spanned.extend(spanned.clone().iter().map(|s| s ^ mask));
                masks.push(mask);
                sums.push(sum);
            }
        }
        // Row j of the map from outputs to sums is mask j.
        let to_sums = Matrix::of(table.out_bits(), table.out_bits(), |y| {
            (0..).zip(&masks).fold(0, |bits, (j, mask)| bits | ((mask & y).count_ones() as u8 & 1) << j)
        });
        Decomposition { coordinates, sums, outputs: to_sums.inverse().expect("the masks are independent") }
    }

    /// The gates for one cell, bit 0 first.
    pub(super) fn write(&self, b: &mut BooleanBuilder, x: &[Bit]) -> Vec<Bit> {
        let coordinates = map(b, &self.coordinates, x);
        let split = coordinates.len().saturating_sub(2);
        let products = all_products(b, &coordinates[..split]);
        let last = all_products(b, &coordinates[split..]);
        let sums: Vec<Bit> = self.sums.iter().map(|sum| sum.write(b, &products, &last)).collect();
        map(b, &self.outputs, &sums)
    }
}

impl SumOfOutputs {
    fn of(functions: Functions) -> SumOfOutputs {
        let mut sum = SumOfOutputs { f0: functions[0], constants: 0, products: Vec::new() };
        for (k, f) in functions.into_iter().enumerate().skip(1) {
            sum.constants |= (f as u8 & 1) << k;
            let mut rest = f & !1;
            // What the functions before it span is taken off; what is left is a dimension of its own.
            for (g, factors) in &mut sum.products {
                if rest >> leading(*g) & 1 == 1 {
                    rest ^= *g;
                    *factors |= 1 << k;
                }
            }
            if rest != 0 {
                sum.products.push((rest, 1 << k));
            }
        }
        sum
    }

    fn write(&self, b: &mut BooleanBuilder, products: &[Bit], last: &[Bit]) -> Bit {
        let mut sum = select(b, self.f0, products);
        let constants = select(b, self.constants.into(), last);
        sum = b.xor(sum, constants);
        for (g, factors) in &self.products {
            let (g, factor) = (select(b, *g, products), select(b, u64::from(*factors), last));
            let product = b.and(g, factor);
            sum = b.xor(sum, product);
        }
        sum
    }
}

fn leading(f: u64) -> u32 {
    f.ilog2()
}

/// The functions of output bit `o`: sums of products from values by the Moebius transform.
fn functions(table: &Table, from_coordinates: &Matrix, o: u8) -> Functions {
    let size = table.entries().len();
    let entry = |c: usize| table.entries()[usize::from(from_coordinates.apply(c as u8))] >> o & 1;
    let mut values: Vec<u8> = (0..size).map(entry).collect();
    for i in 0..table.in_bits() {
        (0..size).filter(|c| c >> i & 1 == 1).for_each(|c| values[c] ^= values[c ^ 1 << i]);
    }
    let split = table.in_bits().saturating_sub(2);
    let mut functions = [0; 4];
    for (c, value) in values.into_iter().enumerate() {
        functions[c >> split] |= u64::from(value) << (c & ((1 << split) - 1));
    }
    functions
}

/// The products of all sets of bits, by mask: each of two about half as large, so that they are not deep.
fn all_products(b: &mut BooleanBuilder, bits: &[Bit]) -> Vec<Bit> {
    let mut products = vec![Bit::ONE];
    for mask in 1..1usize << bits.len() {
        let members: Vec<usize> = (0..bits.len()).filter(|i| mask >> i & 1 == 1).collect();
        let half = members.iter().take(members.len() / 2).fold(0, |half, i| half | 1 << i);
        let product = match members[..] {
            [i] => bits[i],
            _ => b.and(products[half], products[mask ^ half]),
        };
        products.push(product);
    }
    products
}

fn select(b: &mut BooleanBuilder, mask: u64, bits: &[Bit]) -> Bit {
    let chosen: Vec<Bit> = (0..).zip(bits).filter(|(i, _)| mask >> i & 1 == 1).map(|(_, bit)| *bit).collect();
    b.xor_all(&chosen)
}

fn map(b: &mut BooleanBuilder, matrix: &Matrix, x: &[Bit]) -> Vec<Bit> {
    let rows =
        (0..matrix.outs()).map(|r| (0..).zip(x).filter(move |(i, _)| matrix.columns()[*i] >> r & 1 == 1));
    rows.map(|row| row.map(|(_, bit)| *bit).collect::<Vec<Bit>>()).map(|row| b.xor_all(&row)).collect()
}
