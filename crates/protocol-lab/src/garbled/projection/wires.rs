//! The labels of an evaluation, by slot, and sums of them. The garbler holds the labels for zero, the
//! evaluator the active labels.
//!
//! A slot has a block of 16 bytes for each lane, and its colour in a byte; slots that are the same for all
//! lanes have one. Short labels have their colour in the block, too, and the byte is not used.

use std::collections::HashMap;

use polyclave_cipher::{Compiled, CompiledPort, Linear, Matrix, Slot, Table};
use polyclave_kernels::label_hash::Label;
use polyclave_kernels::label_sums::sum_within;

use super::Side;
use super::gates::Projection;
use polyclave_protocol::pool::{Pool, Shares};

/// Bytes of a block.
const BLOCK: usize = 16;

/// Labels of one slot.
pub(super) struct Row<'a> {
    pub(super) blocks: &'a [Label],
    pub(super) colours: &'a [u8],
}

/// The same, to be written.
pub(super) struct RowMut<'a> {
    pub(super) blocks: &'a mut [Label],
    pub(super) colours: &'a mut [u8],
}

/// Slots of as many labels each.
pub(super) struct Wires {
    blocks: Shares,
    colours: Shares,
    lanes: usize,
}

impl Wires {
    pub(super) fn new(slots: usize, lanes: usize, pool: &Pool) -> Wires {
        Wires { blocks: pool.take(slots * lanes * BLOCK), colours: pool.take(slots * lanes), lanes }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    /// All of them.
    pub(super) fn all_blocks(&self) -> &[u8] {
        &self.blocks
    }

    pub(super) fn row(&self, slot: usize) -> Row<'_> {
        let range = slot * self.lanes..(slot + 1) * self.lanes;
        Row { blocks: &self.blocks.as_chunks().0[range.clone()], colours: &self.colours[range] }
    }

    pub(super) fn row_mut(&mut self, slot: usize) -> RowMut<'_> {
        let range = slot * self.lanes..(slot + 1) * self.lanes;
        RowMut {
            blocks: &mut self.blocks.as_chunks_mut().0[range.clone()],
            colours: &mut self.colours[range],
        }
    }

    /// Overwrites a slot by sums of others, of a block and of a colour.
    fn sum(&mut self, dst: usize, sources: &[usize], block: &Label, colour: u8) {
        let (row, lanes) = (self.lanes * BLOCK, self.lanes);
        let at: Vec<usize> = sources.iter().map(|slot| slot * row).collect();
        sum_within(&mut self.blocks, dst * row, row, &at, block);
        for lane in 0..lanes {
            let sum = sources.iter().fold(colour, |sum, slot| sum ^ self.colours[slot * lanes + lane]);
            self.colours[dst * lanes + lane] = sum;
        }
    }
}

/// Where a gate's input is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Registers(Slot),
    /// A slot among those of an input that is being put in.
    Given {
        input: usize,
        slot: usize,
    },
}

/// Labels by slot.
pub struct Registers {
    lanes: Wires,
    uniform: Wires,
    /// Whether any ciphertext has been on its way.
    pub(super) is_under_way: bool,
    /// What gates compute, each once.
    pub(super) projections: Vec<Projection>,
    numbers: HashMap<Projection, usize>,
    /// By table and view.
    known: HashMap<(usize, Matrix), usize>,
}

impl Registers {
    /// Without any label.
    pub(super) fn new(compiled: &Compiled, lanes: usize, pool: &Pool) -> Registers {
        Registers {
            lanes: Wires::new(compiled.lane_slots(), lanes, pool),
            uniform: Wires::new(compiled.uniform_slots(), 1, pool),
            is_under_way: false,
            projections: Vec::new(),
            numbers: HashMap::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes.lanes()
    }

    /// The lanes of a port.
    pub(super) fn lanes_of(&self, port: &CompiledPort) -> usize {
        if port.uniform { 1 } else { self.lanes() }
    }

    pub(super) fn row(&self, slot: Slot) -> Row<'_> {
        match slot {
            Slot::Lanes(at) => self.lanes.row(at as usize),
            Slot::Uniform(at) => self.uniform.row(at as usize),
        }
    }

    pub(super) fn row_mut(&mut self, slot: Slot) -> RowMut<'_> {
        match slot {
            Slot::Lanes(at) => self.lanes.row_mut(at as usize),
            Slot::Uniform(at) => self.uniform.row_mut(at as usize),
        }
    }

    /// The number of the gate for a view of a table.
    pub(super) fn projection(&mut self, table: usize, of: &Table, view: &Matrix) -> usize {
        if let Some(known) = self.known.get(&(table, *view)) {
            return *known;
        }
        let images = of.entries().iter().map(|entry| view.apply(*entry)).collect();
        let number = self.add(Projection::new(of.in_bits(), view.outs(), images));
        self.known.insert((table, *view), number);
        number
    }

    /// Takes a gate's function in.
    pub(super) fn add(&mut self, projection: Projection) -> usize {
        *self.numbers.entry(projection).or_insert_with_key(|projection| {
            self.projections.push(projection.clone());
            self.projections.len() - 1
        })
    }

    /// Local maps, in order: sums of whole cells. A constant moves the garbler's labels for zero.
    pub(super) fn linear(&mut self, maps: &[Linear], side: &Side) {
        for map in maps {
            let (mut block, mut colour) = match side {
                Side::Garbler(offsets) => (offsets.of(map.constant), map.constant),
                Side::Evaluator => (0, 0),
            };
            let mut sources = Vec::with_capacity(map.terms.len());
            for (slot, _) in &map.terms {
                match (slot, map.dst) {
                    (Slot::Lanes(at), _) | (Slot::Uniform(at), Slot::Uniform(_)) => {
                        sources.push(*at as usize)
                    }
                    (Slot::Uniform(at), Slot::Lanes(_)) => {
                        let row = self.uniform.row(*at as usize);
                        block ^= u128::from_le_bytes(row.blocks[0]);
                        colour ^= row.colours[0];
                    }
                }
            }
            let (wires, dst) = match map.dst {
                Slot::Lanes(dst) => (&mut self.lanes, dst),
                Slot::Uniform(dst) => (&mut self.uniform, dst),
            };
            wires.sum(dst as usize, &sources, &block.to_le_bytes(), colour);
        }
    }
}
