//! Combines the lookups of a layer to one vector, in runs that are computed in the same way.

use crate::byte_registers::Registers;
use std::ops::Range;

use polyclave_cipher::{Compiled, Lookup, Matrix, Table};

/// Neighbouring lookups of one table with the same views.
pub(super) struct Run<'a> {
    pub(super) table: &'a Table,
    pub(super) lookups: Vec<&'a Lookup>,
    /// Where in the vector its values are, lookup by lookup.
    pub(super) range: Range<usize>,
    width: usize,
}

impl<'a> Run<'a> {
    /// All lookups, in runs that follow each other in the vector; and how long it is.
    pub(super) fn group(
        compiled: &'a Compiled,
        lookups: &[&'a Lookup],
        registers: &Registers,
    ) -> (Vec<Run<'a>>, usize) {
        let mut runs: Vec<Run<'a>> = Vec::new();
        let mut len = 0;
        for lookup in lookups {
            let width = registers.len(lookup.xs[0]);
            let views = |l: &Lookup| l.views.iter().map(|(m, _)| *m).collect::<Vec<Matrix>>();
            let start = len;
            len += width;
            let same = |run: &&mut Run<'a>| {
                let first = run.lookups[0];
                first.table == lookup.table && views(first) == views(lookup) && run.width == width
            };
            match runs.last_mut().filter(same) {
                Some(run) => {
                    run.lookups.push(lookup);
                    run.range.end += width;
                }
                None => {
                    let table = &*compiled.tables()[lookup.table];
                    runs.push(Run { table, lookups: vec![lookup], range: start..start + width, width });
                }
            }
        }
        (runs, len)
    }

    /// Where in the vector each lookup has its values.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Range<usize>, &'a Lookup)> {
        let starts = self.range.clone().step_by(self.width);
        starts.zip(&self.lookups).map(|(start, lookup)| (start..start + self.width, *lookup))
    }

    /// Calls `fill(view's number, range within the run, slot's row)` for every view of every lookup.
    pub(super) fn write(&self, registers: &mut Registers, fill: impl Fn(usize, Range<usize>, &mut [u8])) {
        for (start, lookup) in (0..self.range.len()).step_by(self.width).zip(&self.lookups) {
            for (k, (_, slot)) in lookup.views.iter().enumerate() {
                fill(k, start..start + self.width, registers.row_mut(*slot));
            }
        }
    }
}
