//! Tables of more than 6 bits: the masked table itself is stored. Row h has the images of T(h + s) that are
//! needed, each as a byte of its share (`F::project`) and a MAC (Keller et al. 2017, Protocol 2; embedded
//! locally, section 4.3, "AES Evaluation").
//!
//! Row i is the sum over j of T(i + j) e_j: a product in the group algebra of the indices, GF(2)\[x_1 ..
//! x_l\] with x_i^2 = 1. In the variables y_i = x_i + 1 it is a product of polynomials modulo y_i^2, with 3^l
//! products of coefficients rather than 4^l. The change of variables, sums over supersets, is its own
//! inverse. All of it is local, because T is public.

use std::mem::take;

use polyclave_cipher::Matrix;
use polyclave_field::{MacField, Word};
use polyclave_kernels::affine::{self, Map, Term};
use polyclave_kernels::memory::{prefetch, wipe};

use super::Vectors;
use crate::pool::{Pool, Shares};

/// What a masked table has to hold.
#[derive(Clone)]
pub struct RowShape {
    /// Width of its index.
    pub in_bits: u8,
    /// The images wanted of the outputs.
    pub views: Vec<Matrix>,
    /// For each of them the image of every entry.
    pub images: Vec<Vec<u8>>,
}

/// Masked tables of random indices, one after another. The tables' memory goes back to a pool, the rest is
/// wiped on drop.
pub struct Rows<F: MacField> {
    /// What each holds.
    pub shape: RowShape,
    /// Shares of the indices.
    pub index: Vec<u8>,
    /// Their MACs.
    pub index_macs: Vec<F::Word>,
    /// By index, then by row, then by view: a byte of the share, and `F::BYTES` of its MAC.
    pub records: Shares,
    pub(crate) spent: usize,
}

impl<F: MacField> Drop for Rows<F> {
    fn drop(&mut self) {
        wipe(&mut self.index);
        wipe(&mut self.index_macs);
    }
}

impl RowShape {
    /// Bytes of a masked table, without its index.
    pub fn bytes<F: MacField>(&self) -> usize {
        ((1 + F::BYTES) * self.views.len()) << self.in_bits
    }

    /// Writes tables, one after another, from the entries of their unit vectors, which it changes.
    fn write_tables<F: MacField>(
        &self,
        cells: &mut [Vec<u8>],
        macs: &mut [Vec<F::Word>],
        scalars: &[Map],
        records: &mut [u8],
    ) {
        let (record, views, count) = (1 + F::BYTES, self.views.len(), cells[0].len());
        sums_over_supersets(cells, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b));
        sums_over_supersets(macs, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b));
        for (view, images) in self.images.iter().enumerate() {
            let mut table: Vec<Vec<u8>> = images.iter().map(|entry| vec![*entry]).collect();
            sums_over_supersets(&mut table, |a, b| a[0] ^= b[0]);
            let (mut view_cells, mut view_macs) = (Vec::new(), Vec::new());
            for at in 0..table.len() {
                let factor = |part: usize| table[at ^ part][0];
                let parts = || (0..=at).filter(|part| part & at == *part && factor(*part) != 0);
                let (mut row, mut mac_row) = (vec![0; count], vec![F::Word::ZERO; count]);
                let terms: Vec<_> = parts()
                    .map(|part| Term { src: &cells[part], map: &scalars[usize::from(factor(part))] })
                    .collect();
                affine::combine(&mut row, &terms, 0);
                let terms: Vec<_> =
                    parts().map(|part| (macs[part].as_slice(), F::embed(factor(part)))).collect();
                F::combine(&mut mac_row, &terms, F::Word::ZERO);
                view_cells.push(row);
                view_macs.push(mac_row);
            }
            sums_over_supersets(&mut view_cells, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b));
            sums_over_supersets(&mut view_macs, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b));
            for (i, table) in records.chunks_exact_mut(self.bytes::<F>()).enumerate() {
                let rows = table.chunks_exact_mut(views * record).zip(view_cells.iter().zip(&view_macs));
                for (row, (cells, macs)) in rows {
                    let record = &mut row[view * record..][..record];
                    record[0] = cells[i];
                    macs[i].write_to(&mut record[1..]);
                }
            }
            view_cells.iter_mut().for_each(wipe);
            view_macs.iter_mut().for_each(wipe);
        }
    }
}

impl<F: MacField> Rows<F> {
    /// Without any lookup spent.
    pub fn new(shape: RowShape, index: Vec<u8>, index_macs: Vec<F::Word>, records: Shares) -> Self {
        Rows { shape, index, index_macs, records, spent: 0 }
    }

    /// From unit vectors.
    pub(crate) fn of(shape: RowShape, mut vectors: Vectors<F>, scalars: &[Map], pool: &Pool) -> Self {
        let (count, table) = (vectors.index.len(), shape.bytes::<F>());
        let mut records = pool.take(count * table);
        for (piece, records) in records.chunks_mut(AT_ONCE * table).enumerate() {
            let start = piece * AT_ONCE;
            let (mut cells, mut macs) = vectors.by_entry(start..count.min(start + AT_ONCE));
            shape.write_tables::<F>(&mut cells, &mut macs, scalars, records);
            cells.iter_mut().for_each(wipe);
            macs.iter_mut().for_each(wipe);
        }
        let (index, index_macs) = (take(&mut *vectors.index), take(&mut *vectors.index_macs));
        Rows::new(shape, index, index_macs, records)
    }

    /// For one view: the rows at the opened indices `h`, which are public, of the tables that begin at
    /// `from`.
    pub(crate) fn look_up(&self, from: usize, h: &[u8], view: usize, cells: &mut [u8], macs: &mut [F::Word]) {
        let record = 1 + F::BYTES;
        let row = record * self.shape.views.len();
        let table = self.shape.bytes::<F>();
        let records = &self.records[from * table..][..h.len() * table];
        let place = |i: usize, h: u8| i * table + usize::from(h) * row + view * record;
        // A record may lie across two lines.
        let fetch = |i: usize, h: u8| {
            prefetch(records, place(i, h));
            prefetch(records, place(i, h) + record - 1);
        };
        h.iter().enumerate().take(AHEAD).for_each(|(i, h)| fetch(i, *h));
        for (i, ((at, cell), mac)) in h.iter().zip(cells).zip(macs).enumerate() {
            if let Some(ahead) = h.get(i + AHEAD) {
                fetch(i + AHEAD, *ahead);
            }
            let record = &records[place(i, *at)..][..record];
            *cell = record[0];
            *mac = F::Word::from_bytes(&record[1..]);
        }
    }
}

/// Lookups whose tables are made at once: their entries and tables lie in the second-level cache.
const AT_ONCE: usize = 128;
/// How many rows are being fetched from memory while one is read.
const AHEAD: usize = 24;

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
