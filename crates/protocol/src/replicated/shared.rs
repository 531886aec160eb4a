//! Shares of one port outside of an evaluation: a byte for each cell and lane, of all shares that a party
//! has.

use std::array;

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::planes::{join, split};
use zeroize::Zeroizing;

use super::registers::Registers;
use super::ring::add;
use crate::interface::protocol::SharedValue;
use crate::unchecked::Unchecked;
use crate::{Error, Result, lanes};

/// A party's shares of the cells of one port, two among three parties; wiped on drop.
#[derive(Clone)]
pub struct Shared<const C: usize = 2> {
    pub(super) bits: u8,
    pub(super) count: usize,
    pub(super) lanes: usize,
    /// The first share cell by cell, then the next.
    pub(super) rows: Zeroizing<Vec<u8>>,
    /// The proofs that it needs.
    pub(super) unchecked: Unchecked,
}

impl<const C: usize> SharedValue for Shared<C> {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.rows
    }
}

impl<const C: usize> Shared<C> {
    /// From an output port.
    pub(super) fn of_port(port: &CompiledPort, registers: &Registers<C>) -> Shared<C> {
        let lanes = if port.uniform { 1 } else { registers.count() };
        let (count, bits, len) = (port.cells.len(), usize::from(port.bits), lanes.div_ceil(8));
        let mut rows = Zeroizing::new(vec![0; C * count * lanes]);
        let mut planes = Zeroizing::new(vec![0; bits * len]);
        for (share, rows) in rows.chunks_mut((count * lanes).max(1)).enumerate() {
            for (row, cell) in rows.chunks_mut(lanes).zip(&port.cells) {
                for (plane, to) in planes.chunks_mut(len).enumerate() {
                    registers.copy_plane(share, cell[0].1, plane, to);
                }
                join(&planes, len, bits, row);
            }
        }
        Shared { bits: port.bits, count, lanes, rows, unchecked: Unchecked::default() }
    }

    /// Into the slots of an input port.
    pub(super) fn fill_port(&self, port: &CompiledPort, registers: &mut Registers<C>) -> Result<()> {
        let lanes = if port.uniform { 1 } else { registers.count() };
        if (self.count, self.bits, self.lanes) != (port.cells.len(), port.bits, lanes) {
            return Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)));
        }
        let (bits, len) = (usize::from(port.bits), lanes.div_ceil(8));
        let mut planes = Zeroizing::new(vec![0; bits * len]);
        for share in 0..C {
            for (row, views) in self.share(share).chunks(lanes).zip(&port.cells) {
                split(row, bits, &mut planes, len);
                for (_, slot) in views {
                    let (bank, at) = registers.bank_mut(*slot);
                    for (plane, from) in planes.chunks(len).enumerate() {
                        bank.plane_mut(share, at, plane).copy_from_slice(from);
                    }
                }
            }
        }
        Ok(())
    }

    /// One of the shares, cell by cell.
    pub(super) fn share(&self, share: usize) -> &[u8] {
        &self.rows[share * self.count * self.lanes..][..self.count * self.lanes]
    }

    /// All shares, to change them.
    pub(super) fn shares_mut(&mut self) -> [&mut [u8]; C] {
        let len = self.count * self.lanes;
        let mut left = &mut self.rows[..];
        array::from_fn(|_| left.split_off_mut(..len).expect("there are as many shares as a party has"))
    }

    /// One of the shares in the blocks people write.
    pub(super) fn blocks(&self, share: usize) -> Zeroizing<Vec<u8>> {
        let mut cells = Cells::zero(self.count, self.bits, self.lanes);
        cells.rows_mut().copy_from_slice(self.share(share));
        Zeroizing::new(cells.to_blocks())
    }

    /// Bytes of the blocks people write, over all lanes.
    pub(super) fn block_bytes(&self) -> usize {
        Cells::block_bytes(self.count, self.bits) * self.lanes
    }

    /// The lanes of several values, in order.
    ///
    /// # Panics
    /// If `parts` is empty.
    pub(super) fn join(parts: &[&Shared<C>]) -> Shared<C> {
        let rows: Vec<_> = parts.iter().map(|part| (&part.rows[..], part.lanes)).collect();
        let rows = Zeroizing::new(lanes::join(&rows));
        let lanes = parts.iter().map(|part| part.lanes).sum();
        let unchecked = Unchecked::join(parts.iter().map(|part| &part.unchecked));
        Shared { lanes, rows, unchecked, ..*parts[0] }
    }

    /// The sum with a value of the same shape.
    pub(super) fn plus(&self, other: &Shared<C>) -> Result<Shared<C>> {
        let shape = |value: &Shared<C>| (value.bits, value.count, value.lanes);
        if shape(self) != shape(other) {
            return Err(Error::misuse("values of different shapes are to be added"));
        }
        let mut rows = self.rows.clone();
        add(&mut rows, &other.rows);
        let unchecked = Unchecked::join([&self.unchecked, &other.unchecked]);
        Ok(Shared { rows, unchecked, ..*self })
    }

    /// Some cells of a value that fits a port.
    pub(super) fn cells(&self, port: &CompiledPort, cells: &[usize]) -> Result<Shared<C>> {
        if (self.count, self.bits) != (port.cells.len(), port.bits) {
            return Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)));
        }
        let row = |share: usize, cell: usize| &self.share(share)[cell * self.lanes..][..self.lanes];
        let mut rows = Zeroizing::new(Vec::with_capacity(C * cells.len() * self.lanes));
        for share in 0..C {
            cells.iter().for_each(|cell| rows.extend_from_slice(row(share, *cell)));
        }
        Ok(Shared { count: cells.len(), rows, unchecked: self.unchecked.clone(), ..*self })
    }

    /// The lanes of these numbers.
    pub(super) fn select(&self, selected: &[usize]) -> Shared<C> {
        let rows = Zeroizing::new(lanes::select(&self.rows, self.lanes, selected));
        Shared { lanes: selected.len(), rows, unchecked: self.unchecked.clone(), ..*self }
    }
}
