//! Lookups by masked tables (Keller et al. 2017, Protocol 1).

use polyclave_cipher::{Compiled, Lookup};
use polyclave_field::MacField;

use crate::authenticated::{Authenticated, make_room};
use crate::interface::net::Net;
use crate::spdz::Spdz;
use crate::spdz::material::{Batch, spend};
use crate::spdz::registers::Registers;
use crate::{Error, Result};

impl<F: MacField> Spdz<F> {
    /// All lookups of a layer that go by masked tables (Protocol 1): one opening each, one round.
    pub(in crate::spdz) fn look_up_masked(
        &mut self,
        compiled: &Compiled,
        lookups: &[&Lookup],
        registers: &mut Registers<F>,
        batch: &mut Batch<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let missing = || Error::misuse("the batch was prepared without this table");
        let total = lookups.iter().map(|lookup| registers.row(lookup.xs[0]).cells.len()).sum();
        let (mut masked, mut macs) = std::mem::take(&mut self.masked);
        make_room(&mut masked, total);
        make_room(&mut macs, total);
        // Spent first: the positions are taken before anything is sent.
        let mut spent = Vec::with_capacity(lookups.len());
        let mut at = 0;
        for lookup in lookups {
            let row = registers.row(lookup.xs[0]);
            let (count, in_bits) = (row.cells.len(), compiled.tables()[lookup.table].in_bits());
            let (range, index, index_macs) = match &mut batch.rows[lookup.table] {
                Some(rows) => {
                    (spend(&mut rows.spent, count, rows.index.len())?, &rows.index, &rows.index_macs)
                }
                None => {
                    let units = batch.units.get_mut(&in_bits).ok_or_else(missing)?;
                    (spend(&mut units.spent, count, units.index.len())?, &units.index, &units.index_macs)
                }
            };
            let sums = masked[at..at + count].iter_mut().zip(row.cells.iter().zip(&index[range.clone()]));
            sums.for_each(|(sum, (x, s))| *sum = x ^ s);
            let sums = macs[at..at + count].iter_mut().zip(row.macs.iter().zip(&index_macs[range.clone()]));
            sums.for_each(|(sum, (x, s))| *sum = *x ^ *s);
            at += count;
            spent.push(range);
        }
        let (_, public) = self.arithmetic.open(&Authenticated::zero(0), &masked, &macs, net)?;
        self.masked = (masked, macs);

        let mut at = 0;
        for (lookup, range) in lookups.iter().zip(spent) {
            let h = &public[at..at + range.len()];
            at += range.len();
            let table_bits = compiled.tables()[lookup.table].in_bits();
            let units = batch.units.get(&table_bits).filter(|_| batch.rows[lookup.table].is_none());
            let in_bits = units.map_or(table_bits, |units| units.in_bits);
            if h.iter().any(|h| u16::from(*h) >= 1 << in_bits) {
                // A cheater's opening: the check would find it, and until then there is no such row.
                self.arithmetic.key.retire();
                return Err(Error::CheckFailed { what: "the range of an opened index" });
            }
            match &batch.rows[lookup.table] {
                Some(rows) => {
                    for (m, slot) in &lookup.views {
                        let view = rows.shape.views.iter().position(|v| v == m).ok_or_else(missing)?;
                        let row = registers.row_mut(*slot);
                        rows.look_up(range.start, h, view, &mut row.cells, &mut row.macs);
                    }
                }
                None => {
                    let units = units.ok_or_else(missing)?;
                    let entries = &units.entries[range.clone()];
                    let size = 1 << in_bits;
                    let macs = &units.macs[range.start * size * F::BYTES..range.end * size * F::BYTES];
                    let sums = batch.sums[lookup.table].as_ref().ok_or_else(missing)?;
                    sums.look_up(h, entries, macs, &lookup.views, registers);
                }
            }
        }
        Ok(())
    }
}
