//! The shares of an evaluation: for each slot one row of cells and one row of MACs.
//!
//! A cell is kept as `F::project` of its share, a byte: what the field of cells can do to cells it can do to
//! these, and the rest of the share says nothing (`opening.rs`). MACs are whole elements.

use polyclave_cipher::{Linear, Matrix, Slot};
use polyclave_field::{MacField, Word};
use polyclave_kernels::affine::{self, Map, Term};
use polyclave_kernels::memory::wipe;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use crate::authenticated::MacKey;

/// Shares by slot; wiped on drop.
pub struct Registers<F: MacField> {
    lanes: usize,
    rows: Vec<Row<F>>,
    uniform: Vec<Row<F>>,
}

/// Shares of a cell in every lane, or of one for all lanes.
pub(super) struct Row<F: MacField> {
    pub(super) cells: Vec<u8>,
    pub(super) macs: Vec<F::Word>,
}

impl<F: MacField> Row<F> {
    pub(super) fn zero(len: usize) -> Self {
        Row { cells: vec![0; len], macs: vec![F::Word::ZERO; len] }
    }
}

impl<F: MacField> Drop for Row<F> {
    fn drop(&mut self) {
        wipe(&mut self.cells);
        wipe(&mut self.macs);
    }
}

/// Products of cells by each constant of their field.
pub(super) fn scalars<F: MacField>() -> Vec<Map> {
    let product = |c: u8, i: u8| match i < F::CELL_BITS {
        true => F::project(F::multiply(F::embed(c), F::embed(1 << i))),
        false => 0,
    };
    let cells = 0..=(0xff >> (8 - F::CELL_BITS));
    cells.map(|c| Map::new(std::array::from_fn(|i| product(c, i as u8)))).collect()
}

impl<F: MacField> Registers<F> {
    /// Every slot is written before it is read.
    pub(super) fn new(lane_slots: usize, uniform_slots: usize, lanes: usize) -> Self {
        let rows = |count: usize, len: usize| (0..count).map(|_| Row::zero(len)).collect();
        Registers { lanes, rows: rows(lane_slots, lanes), uniform: rows(uniform_slots, 1) }
    }

    /// Number of lanes.
    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(super) fn row(&self, slot: Slot) -> &Row<F> {
        match slot {
            Slot::Lanes(i) => &self.rows[i as usize],
            Slot::Uniform(i) => &self.uniform[i as usize],
        }
    }

    pub(super) fn row_mut(&mut self, slot: Slot) -> &mut Row<F> {
        match slot {
            Slot::Lanes(i) => &mut self.rows[i as usize],
            Slot::Uniform(i) => &mut self.uniform[i as usize],
        }
    }

    /// Takes a row out, to be put back.
    pub(super) fn take(&mut self, slot: Slot) -> Row<F> {
        std::mem::replace(self.row_mut(slot), Row::zero(0))
    }

    /// Sets a slot to an image of a cell, given the cell's bits, lowest first.
    pub(super) fn set_image(&mut self, slot: Slot, matrix: &Matrix, bits: &[Row<F>]) {
        let mut row = self.take(slot);
        let columns = || matrix.columns().into_iter().zip(bits).filter(|(column, _)| *column != 0);
        // A bit times a constant: its share is 0 or 1.
        row.cells.fill(0);
        let mut ones = Zeroizing::new(vec![0; row.cells.len()]);
        for (column, bit) in columns() {
            masks(&mut ones, |i| bit.cells[i]);
            row.cells.iter_mut().zip(ones.iter()).for_each(|(x, one)| *x ^= column & one);
        }
        let macs: Vec<_> = columns().map(|(column, bit)| (bit.macs.as_slice(), F::embed(column))).collect();
        F::combine(&mut row.macs, &macs, F::Word::ZERO);
        *self.row_mut(slot) = row;
    }

    /// Local maps: every matrix is a product by a constant, the image of 1.
    pub(super) fn linear(&mut self, maps: &[Linear], scalars: &[Map], key: &MacKey<F>) {
        let alpha = key.reveal_own_share();
        for linear in maps {
            let mut row = self.take(linear.dst);
            let mut cell = if key.is_first() { linear.constant } else { 0 };
            let mut mac = F::multiply(alpha, F::embed(linear.constant));
            let mut cells = Vec::with_capacity(linear.terms.len());
            let mut macs = Vec::with_capacity(linear.terms.len());
            for (slot, matrix) in &linear.terms {
                let factor = matrix.columns()[0];
                let (source, map) = (self.row(*slot), &scalars[usize::from(factor)]);
                if source.cells.len() == row.cells.len() {
                    cells.push(Term { src: &source.cells, map });
                    macs.push((source.macs.as_slice(), F::embed(factor)));
                } else {
                    // The same for all lanes.
                    cell ^= map.apply(source.cells[0]);
                    mac ^= F::multiply(F::embed(factor), source.macs[0]);
                }
            }
            affine::combine(&mut row.cells, &cells, cell);
            F::combine(&mut row.macs, &macs, mac);
            *self.row_mut(linear.dst) = row;
        }
    }
}
