//! Small tables as polynomials of three products (Pulkus and Vivek, CHES 2016; Keller et al. 2017, section
//! 3.2).
//!
//! Over the field of AES a cell of at most 6 bits is an element with zeros above it, and a table of at most 4
//! output bits the low bits of P(X) = p1(X) q1(X) + p2(X). The monomials of p1, q1 and p2 belong to the
//! cyclotomic classes of X, X^3 and X^7: the powers X^(e 2^i), which are GF(2)-linear in X^e. So a protocol
//! with free linear maps multiplies three times: X^3 = X X^2, X^7 = X^3 X^4, p1 q1.
//!
//! q1 is drawn once and for all; then the 4 low bits at 64 inputs are 256 equations over GF(2) in the bits of
//! the coefficients of p1 and p2. With this q1 they are independent, so every table has a solution, not those
//! of DES alone.
//!
//! # Differences from the paper
//! * q1 has monomials of the class of X^7 only: that is enough, and saves two linear maps in the evaluation.
//! * p2 has a constant too: without one P(0) would be 0. In p1 and q1 a constant would add nothing that p2
//!   lacks.

use polyclave_field::Gf256;

use crate::{Matrix, Table};

/// The classes of monomials: of X, X^3 and X^7.
pub const CLASSES: [u32; 3] = [1, 3, 7];

/// Most bits of a table's inputs and outputs.
const MAX_BITS: (u8, u8) = (6, 4);

/// Monomials of the three classes.
const MONOMIALS: usize = 24;

/// constant + M_1(X) + M_3(X^3) + M_7(X^7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomial {
    /// What it is at 0.
    pub constant: u8,
    /// `coefficients[k][i]` is the coefficient of X^(e 2^i), e = `CLASSES[k]`.
    pub coefficients: [[Gf256; 8]; 3],
    /// The same as GF(2)-linear maps of X, X^3 and X^7, 8 bits to 8 bits.
    pub maps: [Matrix; 3],
}

impl Polynomial {
    /// From the monomials of X, X^3 and X^7, eight coefficients each, and the constant.
    fn new(coefficients: &[Gf256], constant: u8) -> Polynomial {
        let class = |k: usize| std::array::from_fn(|i| coefficients[8 * k + i]);
        let coefficients: [[Gf256; 8]; 3] = std::array::from_fn(class);
        let map = |class: [Gf256; 8]| Matrix::of(8, 8, |y| inner(&class, &conjugates(Gf256(y))).0);
        Polynomial { constant, coefficients, maps: coefficients.map(map) }
    }

    /// Its value.
    pub fn evaluate(&self, x: Gf256) -> Gf256 {
        let images = self.maps.iter().zip(CLASSES).map(|(map, e)| Gf256(map.apply(x.pow(e).0)));
        images.sum::<Gf256>() + Gf256(self.constant)
    }
}

/// A table as the low bits of p1 q1 + p2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomials {
    /// The factor that depends on the table; its constant is 0.
    pub p1: Polynomial,
    /// The factor that is the same for all tables: a linear map of X^7.
    pub q1: Polynomial,
    /// What is added.
    pub p2: Polynomial,
}

impl Polynomials {
    /// Finds them for a table of at most 6 bits to at most 4, and for no other.
    ///
    /// Always the same ones for the same entries: parties that compute on shares must agree on them.
    pub fn solve(table: &Table) -> Option<Polynomials> {
        if table.in_bits() > MAX_BITS.0 || table.out_bits() > MAX_BITS.1 {
            return None;
        }
        let mut drawn = [0; 8];
        blake3::Hasher::new_derive_key("polyclave 2026 pulkus-vivek q1").finalize_xof().fill(&mut drawn);
        let mut coefficients = [Gf256::ZERO; MONOMIALS];
        coefficients[MONOMIALS - 8..].copy_from_slice(&drawn.map(Gf256));
        let q1 = Polynomial::new(&coefficients, 0);
        let (p1, p2) = complete(table, &q1)?;
        Some(Polynomials { p1, q1, p2 })
    }

    /// P(X): the table's output in the low bits, and bits without a meaning above.
    pub fn evaluate(&self, x: Gf256) -> Gf256 {
        self.p1.evaluate(x) * self.q1.evaluate(x) + self.p2.evaluate(x)
    }
}

/// y, y^2, y^4 .. y^128.
fn conjugates(y: Gf256) -> [Gf256; 8] {
    std::array::from_fn(|i| y.pow(1 << i))
}

fn inner(a: &[Gf256], b: &[Gf256]) -> Gf256 {
    a.iter().zip(b).map(|(a, b)| *a * *b).sum()
}

/// Coefficients that are unknown: those of p1, those of p2 and the constant of p2.
const COEFFICIENTS: usize = 2 * MONOMIALS + 1;
/// The same in bits.
const UNKNOWNS: usize = 8 * COEFFICIENTS;
const WORDS: usize = (UNKNOWNS + 1).div_ceil(64);

/// An equation over GF(2): a bit for each unknown, then the right-hand side.
type Equation = [u64; WORDS];

fn bit(equation: &Equation, at: usize) -> bool {
    equation[at / 64] >> (at % 64) & 1 == 1
}

/// The p1 and p2 that make a table with a q1, if there are some.
fn complete(table: &Table, q1: &Polynomial) -> Option<(Polynomial, Polynomial)> {
    let mut equations = Vec::with_capacity(table.entries().len() * usize::from(table.out_bits()));
    for (x, entry) in table.entries().iter().enumerate() {
        let x = Gf256(x as u8);
        let q = q1.evaluate(x);
        let powers: Vec<Gf256> = CLASSES.iter().flat_map(|e| conjugates(x.pow(*e))).collect();
        // By unknown bit, what it adds to P(x).
        let factors = powers.iter().map(|m| *m * q).chain(powers.iter().copied()).chain([Gf256::ONE]);
        let added: Vec<Gf256> = factors.flat_map(|f| (0..8).map(move |b| Gf256(1 << b) * f)).collect();
        equations.extend((0..table.out_bits()).map(|out| {
            let mut equation = [0; WORDS];
            for (at, value) in added.iter().map(|v| v.0).chain([*entry]).enumerate() {
                equation[at / 64] |= u64::from(value >> out & 1) << (at % 64);
            }
            equation
        }));
    }
    let solution = eliminate(equations)?;
    let (p1, p2) = solution.split_at(MONOMIALS);
    Some((Polynomial::new(p1, 0), Polynomial::new(p2, p2[MONOMIALS].0)))
}

/// Gauss and Jordan; unknowns that stay free are 0. None if the equations contradict each other.
fn eliminate(mut equations: Vec<Equation>) -> Option<[Gf256; COEFFICIENTS]> {
    let mut pivots = Vec::new();
    for unknown in 0..UNKNOWNS {
        let rank = pivots.len();
        let Some(found) = equations[rank..].iter().position(|e| bit(e, unknown)) else { continue };
        equations.swap(rank, rank + found);
        let pivot = equations[rank];
        for (i, equation) in equations.iter_mut().enumerate() {
            if i != rank && bit(equation, unknown) {
                equation.iter_mut().zip(pivot).for_each(|(word, p)| *word ^= p);
            }
        }
        pivots.push(unknown);
    }
    // What is left says 0 = 0, or 0 = 1.
    if equations[pivots.len()..].iter().any(|e| bit(e, UNKNOWNS)) {
        return None;
    }
    let mut solution = [Gf256::ZERO; COEFFICIENTS];
    for (unknown, equation) in pivots.into_iter().zip(&equations) {
        solution[unknown / 8].0 |= u8::from(bit(equation, UNKNOWNS)) << (unknown % 8);
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::des::s_box;

    fn low(table: &Table, value: Gf256) -> u8 {
        value.0 & (0xff >> (8 - table.out_bits()))
    }

    /// As it is written: monomials, coefficients, sums.
    fn by_monomials(p: &Polynomial, x: Gf256) -> Gf256 {
        let class = |k: usize| (0..8).map(move |i| p.coefficients[k][i] * x.pow(CLASSES[k] << i));
        (0..3).flat_map(class).sum::<Gf256>() + Gf256(p.constant)
    }

    #[test]
    fn all_inputs_of_all_des_s_boxes_come_out_of_the_polynomials_and_of_the_maps() {
        for table in (0..8).map(s_box) {
            let found = Polynomials::solve(&table).expect("every S-box of DES has polynomials");
            for (x, entry) in table.entries().iter().enumerate() {
                let x = Gf256(x as u8);
                let [p1, q1, p2] = [&found.p1, &found.q1, &found.p2].map(|p| by_monomials(p, x));
                assert_eq!(low(&table, p1 * q1 + p2), *entry, "{} at {x:?}", table.name());
                assert_eq!(found.evaluate(x), p1 * q1 + p2, "{} at {x:?}", table.name());
            }
            assert_eq!((found.p1.constant, found.q1.constant), (0, 0));
            assert!(found.q1.maps[..2].iter().all(Matrix::is_zero));
        }
    }

    #[test]
    fn three_products_evaluate_a_table_when_linear_maps_are_free() {
        for table in (0..8).map(s_box) {
            let found = Polynomials::solve(&table).expect("every S-box of DES has polynomials");
            for (x, entry) in table.entries().iter().enumerate() {
                let image = |m: Matrix, y: Gf256| Gf256(m.apply(y.0));
                let x = Gf256(x as u8);
                let x3 = x * image(Matrix::frobenius(1), x);
                let x7 = x3 * image(Matrix::frobenius(2), x);
                let [p1, q1, p2] = [&found.p1, &found.q1, &found.p2].map(|p| {
                    let powers = [x, x3, x7];
                    p.maps.iter().zip(powers).map(|(m, y)| image(*m, y)).sum::<Gf256>() + Gf256(p.constant)
                });
                assert_eq!(low(&table, p1 * q1 + p2), *entry);
            }
        }
    }

    /// The tables that have polynomials with q1 are a linear space, and these span all of them.
    #[test]
    fn every_table_of_six_bits_to_four_has_polynomials() {
        for (at, bit) in (0..64).flat_map(|at| (0..4).map(move |bit| (at, bit))) {
            let entries = (0..64).map(|x| u8::from(x == at) << bit).collect();
            assert!(Polynomials::solve(&Table::new("unit", 6, 4, entries)).is_some(), "bit {bit} at {at}");
        }
    }

    #[test]
    fn smaller_tables_have_polynomials_and_larger_ones_none() {
        let table = |ins: u8, outs: u8| {
            let entries = (0..1u32 << ins).map(|x| (x.wrapping_mul(2_654_435_761) >> 9) as u8);
            Table::new("arbitrary", ins, outs, entries.map(|e| e & (0xff >> (8 - outs))).collect())
        };
        for (ins, outs) in (1..=6).flat_map(|ins| (1..=4).map(move |outs| (ins, outs))) {
            let table = table(ins, outs);
            let found = Polynomials::solve(&table).expect("it is small enough");
            for (x, entry) in table.entries().iter().enumerate() {
                assert_eq!(low(&table, found.evaluate(Gf256(x as u8))), *entry, "{ins} bits to {outs}");
            }
        }
        for (ins, outs) in [(7, 4), (6, 5), (8, 8)] {
            assert_eq!(Polynomials::solve(&table(ins, outs)), None);
        }
    }

    /// Parties with different polynomials would compute nonsense: who changes them changes what the protocols
    /// that use them call themselves.
    #[test]
    fn polynomials_of_des_stay_what_they_are() {
        let mut hasher = blake3::Hasher::new();
        for found in (0..8).map(|i| Polynomials::solve(&s_box(i)).expect("it has polynomials")) {
            for p in [found.p1, found.q1, found.p2] {
                hasher.update(&p.coefficients.as_flattened().iter().map(|c| c.0).collect::<Vec<_>>());
                hasher.update(&[p.constant]);
            }
        }
        assert_eq!(hex::encode(&hasher.finalize().as_bytes()[..8]), "9937b664cf9aa2a8");
    }
}
