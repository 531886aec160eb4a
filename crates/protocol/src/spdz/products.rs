//! Lookups by products: the polynomials of Keller et al. 2017, section 3, on all cells of a layer at once.
//!
//! Squares are linear over GF(2) but not over the field, so with MACs they are not free. Instead a cell is
//! decomposed by random bits (one opening of a cell), and every linear image of it follows. `arithmetic.rs`
//! states the adversary, and what openings reveal.

use std::ops::Range;

use polyclave_cipher::{Affine, Compiled, Lookup, Matrix, Table, univariate};
use polyclave_field::{MacField, Word};

use super::arithmetic::{Arithmetic, Decomposed, Decomposing, Step, Stepped};
use super::lookup_method::LookupMethod;
use super::material::Batch;
use super::registers::Registers;
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::{Error, Result};

/// The lookups of one layer that go by products.
pub(super) struct Products<'a, F: MacField> {
    pub(super) compiled: &'a Compiled,
    pub(super) lookups: &'a [&'a Lookup],
    /// Where the cells of each lookup are.
    ranges: Vec<Range<usize>>,
    arithmetic: &'a mut Arithmetic<F>,
    batch: &'a mut Batch<F>,
    net: &'a mut dyn Net,
}

impl<'a, F: MacField> Products<'a, F> {
    pub(super) fn new(
        compiled: &'a Compiled,
        lookups: &'a [&'a Lookup],
        registers: &Registers<F>,
        arithmetic: &'a mut Arithmetic<F>,
        batch: &'a mut Batch<F>,
        net: &'a mut dyn Net,
    ) -> Self {
        let mut end = 0;
        let range = |lookup: &&Lookup| {
            let from = end;
            end += registers.row(lookup.xs[0]).cells.len();
            from..end
        };
        let ranges = lookups.iter().map(range).collect();
        Products { compiled, lookups, ranges, arithmetic, batch, net }
    }

    pub(super) fn run(mut self, method: LookupMethod, registers: &mut Registers<F>) -> Result<()> {
        match method {
            LookupMethod::MaskedTables | LookupMethod::Tower => {
                Err(Error::misuse("this method takes no triples"))
            }
            LookupMethod::BitDecomposition => self.bit_decomposition(registers),
            LookupMethod::RivainProuff => self.rivain_prouff(registers),
            LookupMethod::PulkusVivek => self.pulkus_vivek(registers),
            LookupMethod::Univariate => self.univariate(registers),
        }
    }

    /// X^254 = ((X^2 X^4) (X^8 X^16)) ((X^32 X^64) X^128): six products, five rounds.
    fn bit_decomposition(&mut self, registers: &mut Registers<F>) -> Result<()> {
        let x = self.decompose(&self.inputs(registers, 0))?;
        let power = |i: u32| self.images(&x, |table| power_of_input(table, i));
        let [x2, x4, x8, x16] = [power(1), power(2), power(3), power(4)];
        let [x32, x64, x128] = [power(5), power(6), power(7)];
        let [a, b, c] = self.multiply([(&x2, &x4), (&x8, &x16), (&x32, &x64)])?;
        let [ab, c] = self.multiply([(&a, &b), (&c, &x128)])?;
        let [inverse] = self.multiply([(&ab, &c)])?;
        let inverse = self.decompose(&inverse)?;
        self.put(registers, &inverse, |table| inversion_of(table).after);
        Ok(())
    }

    /// {X, X^2} -> {X^3, X^12} -> {X^14}, {X^15, X^240} -> X^254: four products, seven rounds.
    fn rivain_prouff(&mut self, registers: &mut Registers<F>) -> Result<()> {
        let x = self.decompose(&self.inputs(registers, 0))?;
        let power = |i: u32| self.images(&x, |table| power_of_input(table, i));
        let (x1, x2) = (power(0), power(1));
        let [x3] = self.multiply([(&x1, &x2)])?;
        let x3_bits = self.decompose(&x3)?;
        let x12 = self.images(&x3_bits, |_| linear(Matrix::frobenius(2)));
        let [x14, x15] = self.multiply([(&x12, &x2), (&x3, &x12)])?;
        let x15 = self.decompose(&x15)?;
        let x240 = self.images(&x15, |_| linear(Matrix::frobenius(4)));
        let [inverse] = self.multiply([(&x240, &x14)])?;
        let inverse = self.decompose(&inverse)?;
        self.put(registers, &inverse, |table| inversion_of(table).after);
        Ok(())
    }

    /// p1(X) q1(X) + p2(X) from X, X^3 and X^7: three products, five rounds. X^7 does not wait for the bits
    /// of X^3.
    fn pulkus_vivek(&mut self, registers: &mut Registers<F>) -> Result<()> {
        let [x, x2, x4] = [0, 1, 2].map(|k| self.inputs(registers, k));
        let [mut p1, mut p2] = [3, 4].map(|k| self.inputs(registers, k));
        let [x3] = self.multiply([(&x, &x2)])?;
        let stepped = self.step(&[(&x3, &x4)], Some(&x3))?;
        let (Some(x7), Some(x3)) = (stepped.products.first(), &stepped.decomposed) else {
            return Err(Error::misuse("a step lost what it was asked for"));
        };
        let x7 = self.decompose(x7)?;
        p1.add(&self.images(x3, |table| linear(polynomials(table).p1.maps[1])));
        p1.add(&self.images(&x7, |table| {
            let p1 = &polynomials(table).p1;
            Affine { matrix: p1.maps[2], constant: p1.constant }
        }));
        p2.add(&self.images(x3, |table| linear(polynomials(table).p2.maps[1])));
        p2.add(&self.images(&x7, |table| {
            let p2 = &polynomials(table).p2;
            Affine { matrix: p2.maps[2], constant: p2.constant }
        }));
        let q1 = self.images(&x7, |table| linear(polynomials(table).q1.maps[2]));
        let [mut y] = self.multiply([(&p1, &q1)])?;
        y.add(&p2);
        let y = self.decompose(&y)?;
        // The upper bits of P are discarded.
        self.put(registers, &y, |table| {
            linear(Matrix::of(8, table.out_bits(), |y| y & ((1 << table.out_bits()) - 1)))
        });
        Ok(())
    }

    /// The sum of c_i X^i, i = 0 .. 63, all powers one after another: 62 products, 63 rounds.
    fn univariate(&mut self, registers: &mut Registers<F>) -> Result<()> {
        let tables = self.lookups.iter().map(|lookup| &self.compiled.tables()[lookup.table]);
        let coefficients: Vec<_> = tables.map(|table| univariate::interpolate(table)).collect();
        let coefficients: Vec<_> = coefficients
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(|| Error::misuse("tables of 6 bits"))?;
        let x = self.inputs(registers, 0);
        let mut y = Authenticated::zero(x.len());
        let mut power = Authenticated::public(&vec![F::Word::ONE; x.len()], &self.arithmetic.key);
        for i in 0..univariate::ELEMENTS {
            match i {
                0 => {}
                1 => power = x.clone(),
                _ => [power] = self.multiply([(&power, &x)])?,
            }
            let mut factors = vec![F::Word::ZERO; x.len()];
            for (range, coefficients) in self.ranges.iter().zip(&coefficients) {
                factors[range.clone()].fill(F::embed(coefficients[i]));
            }
            y.add(&power.times_public(&factors));
        }
        let y = self.decompose(&y)?;
        self.put(registers, &y, |table| {
            linear(Matrix::of(6, table.out_bits(), |y| y & ((1 << table.out_bits()) - 1)))
        });
        Ok(())
    }

    /// Wanted image number k of every input.
    fn inputs(&self, registers: &Registers<F>, k: usize) -> Authenticated<F> {
        let mut inputs = Authenticated::zero(self.len());
        for (lookup, range) in self.lookups.iter().zip(&self.ranges) {
            let row = registers.row(lookup.xs[k]);
            F::embed_row(&mut inputs.values[range.clone()], &row.cells);
            inputs.macs[range.clone()].copy_from_slice(&row.macs);
        }
        inputs
    }

    fn len(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// A linear image of every cell, by its table. Local.
    fn images(&self, cells: &Decomposed<F>, map: impl Fn(&Table) -> Affine) -> Authenticated<F> {
        let image = |(lookup, range): (&&Lookup, &Range<usize>)| {
            let Affine { matrix, constant } = map(&self.compiled.tables()[lookup.table]);
            cells.image(range.clone(), &matrix, constant, &self.arithmetic.key)
        };
        let images: Vec<_> = self.lookups.iter().zip(&self.ranges).map(image).collect();
        Authenticated::join(&images.iter().collect::<Vec<_>>())
    }

    /// Puts the wanted images of the outputs into their slots; `after` takes a cell to the output. Local.
    fn put(&self, registers: &mut Registers<F>, cells: &Decomposed<F>, after: impl Fn(&Table) -> Affine) {
        for (lookup, range) in self.lookups.iter().zip(&self.ranges) {
            let after = after(&self.compiled.tables()[lookup.table]);
            for (m, slot) in &lookup.views {
                let matrix = m.after(&after.matrix);
                let constant = m.apply(after.constant);
                let image = cells.image(range.clone(), &matrix, constant, &self.arithmetic.key);
                let row = registers.row_mut(*slot);
                F::project_row(&mut row.cells, &image.values);
                row.macs.copy_from_slice(&image.macs);
            }
        }
    }

    fn multiply<const N: usize>(
        &mut self,
        products: [(&Authenticated<F>, &Authenticated<F>); N],
    ) -> Result<[Authenticated<F>; N]> {
        let products = self.step(&products, None)?.products;
        products.try_into().map_err(|_| Error::misuse("a step lost what it was asked for"))
    }

    fn decompose(&mut self, cells: &Authenticated<F>) -> Result<Decomposed<F>> {
        let decomposed = self.step(&[], Some(cells))?.decomposed;
        decomposed.ok_or_else(|| Error::misuse("a step lost what it was asked for"))
    }

    /// Products and a decomposition, in one round; the material is spent before anything is sent.
    fn step(
        &mut self,
        products: &[(&Authenticated<F>, &Authenticated<F>)],
        decompose: Option<&Authenticated<F>>,
    ) -> Result<Stepped<F>> {
        let triples = self.batch.take_triples(products.iter().map(|(x, _)| x.len()).sum())?;
        let decompose = match decompose {
            Some(of) => {
                let bits = self.batch.take_bits(of.len() * usize::from(F::CELL_BITS))?;
                Some(Decomposing { of, bits })
            }
            None => None,
        };
        self.arithmetic.step(Step { products, triples, decompose }, self.net)
    }
}

fn inversion_of(table: &Table) -> &polyclave_cipher::Inversion {
    table.inversion().expect("only tables built on inversion go this way")
}

fn polynomials(table: &Table) -> &polyclave_cipher::Polynomials {
    table.pulkus_vivek().expect("only tables that have such polynomials go this way")
}

fn linear(matrix: Matrix) -> Affine {
    Affine { matrix, constant: 0 }
}

/// The power 2^i of what is inverted.
fn power_of_input(table: &Table, i: u32) -> Affine {
    let before = inversion_of(table).before;
    let power = Matrix::frobenius(i);
    Affine { matrix: power.after(&before.matrix), constant: power.apply(before.constant) }
}
