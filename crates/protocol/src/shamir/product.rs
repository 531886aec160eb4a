//! Lookups of tables of two bits, such as the AND of Boolean circuits, as one product each, with nothing made
//! ahead.
//!
//! For bits x and y, every such table T is T(0) + (T(0) + T(1)) x + (T(0) + T(2)) y + (T(0) + T(1) + T(2) +
//! T(3)) x y. A bit is shared as the element 0 or 1 of GF(2^8). So x y is one product of shared values, and
//! all else, every image of T included, is a sum of multiples by constants. The two bits are what the lookup
//! [`wants`] of its cell. Boolean circuits put that cell together from single bits, so both come without
//! communication. 1 operation, 1 round: a masked table would take another product ahead.
//!
//! Adversary: that of the product ([`AdversaryModel::multiply`]). Nothing else is sent.

use polyclave_cipher::{Compiled, Lookup, Matrix};
use polyclave_kernels::affine::{Term, combine};

use super::arithmetic::Arithmetic;
use super::runs::Run;
use super::security::AdversaryModel;
use crate::Result;
use crate::byte_registers::Registers;
use crate::interface::net::Net;

/// Bits of the cell that such a table is looked up on.
pub(super) const IN_BITS: u8 = 2;

/// How they are looked up, for the terms that parties compare.
pub(super) const NAME: &[u8] = b"product";

/// Operations and rounds of a lookup.
pub(super) const COST: (usize, usize) = (1, 1);

/// The images of its input that a lookup starts from: both bits.
pub(super) fn wants() -> Vec<Matrix> {
    (0..IN_BITS).map(|bit| Matrix::of(IN_BITS, 1, |cell| cell >> bit & 1)).collect()
}

/// All lookups of a layer that take a product, together.
pub(super) fn lookup<S: AdversaryModel>(
    compiled: &Compiled,
    lookups: &[&Lookup],
    arithmetic: &mut Arithmetic<S>,
    registers: &mut Registers,
    net: &mut dyn Net,
) -> Result<()> {
    let (runs, len) = Run::group(compiled, lookups, registers);
    let [x, y] = [0, 1].map(|bit| {
        let mut row = arithmetic.pool.take(len);
        for (part, lookup) in runs.iter().flat_map(Run::parts) {
            row[part].copy_from_slice(registers.row(lookup.xs[bit]));
        }
        row
    });
    let products = arithmetic.multiply(&[(&x, &y)], net)?;
    for run in &runs {
        run.write(registers, |view, range, dst| {
            let image = &run.lookups[0].views[view].0;
            let entry = |cell: usize| image.apply(run.table.entries()[cell]);
            let factors =
                [entry(0) ^ entry(1), entry(0) ^ entry(2), entry(0) ^ entry(1) ^ entry(2) ^ entry(3)];
            let range = run.range.start + range.start..run.range.start + range.end;
            let rows = [&x, &y, &products[0]].into_iter().zip(factors).filter(|(_, factor)| *factor != 0);
            let terms: Vec<Term<'_>> = rows
                .map(|(row, factor)| Term {
                    src: &row[range.clone()],
                    map: &arithmetic.scalars[usize::from(factor)],
                })
                .collect();
            combine(dst, &terms, entry(0));
        });
    }
    Ok(())
}
