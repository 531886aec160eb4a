//! Lookups of other tables, by their gates: one bit an AND, and a round for each level of ANDs.
//!
//! The gates of a table are a Boolean circuit ([`polyclave_cipher::boolean`]). The lookups of a layer are its
//! lanes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{AnyMap, Builder, Compiled, Lookup, Slot, Table, boolean, compile};
use polyclave_kernels::planes::Factors;
use zeroize::Zeroizing;

use super::lookup::{Gathered, Group, Round, ands};
use super::registers::{Registers, bytes_per_lane};
use crate::pool::Pool;

/// The gates of a table.
pub(super) struct Program {
    gates: Compiled,
    /// Where each bit of the input goes, bit 0 first.
    inputs: Vec<Vec<Slot>>,
    /// Where each bit of the output is, bit 0 first.
    outputs: Vec<Slot>,
}

/// The gates of all tables that a session has met.
#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<Table, Arc<Program>>>);

impl Programs {
    /// The gates of a table. They are found once.
    pub(super) fn of(&self, table: &Table) -> Arc<Program> {
        let mut known = self.0.lock();
        if let Some(program) = known.get(table) {
            return program.clone();
        }
        known.entry(table.clone()).or_insert(Arc::new(Program::of(table))).clone()
    }
}

impl Program {
    fn of(table: &Table) -> Program {
        let mut b = Builder::new(table.name());
        let id = b.table(&Arc::new(table.clone()));
        let x = b.input("x", 1, table.in_bits())[0];
        let y = b.lookup(id, x);
        b.output("y", &[y]);
        let gates = compile(&boolean::expand(&b.finish()), &AnyMap);
        // The cells of a port are the bits of its bytes, the most significant one first.
        let cells = |port: &polyclave_cipher::CompiledPort, bits: u8| -> Vec<Vec<Slot>> {
            let cells = port.cells.iter().rev().take(bits.into());
            cells.map(|views| views.iter().map(|(_, slot)| *slot).collect()).collect()
        };
        let inputs = cells(&gates.inputs()[0], table.in_bits());
        let outputs = cells(&gates.outputs()[0], table.out_bits()).iter().map(|slots| slots[0]).collect();
        Program { gates, inputs, outputs }
    }

    pub(super) fn rounds(&self) -> usize {
        self.gates.layers().iter().filter(|layer| !layer.lookups.is_empty()).count()
    }

    pub(super) fn bytes_per_lane<const C: usize>(&self) -> usize {
        bytes_per_lane::<C>(&self.gates)
    }

    pub(super) fn products(&self) -> usize {
        self.gates.lookups().count()
    }
}

/// Lookups of one table.
pub(super) struct Run<'a, const C: usize> {
    of: Gathered<'a>,
    program: Arc<Program>,
    wires: Registers<C>,
    layer: usize,
}

impl<'a, const C: usize> Run<'a, C> {
    /// Takes the inputs in.
    pub(super) fn new(
        program: Arc<Program>,
        lookups: Vec<&'a Lookup>,
        registers: &Registers<C>,
        share_zero: Option<usize>,
        pool: &Pool,
    ) -> Run<'a, C> {
        let of = Gathered::new(lookups, registers);
        let mut wires = Registers::new(&program.gates, 8 * of.len, pool);
        for (bit, slots) in program.inputs.iter().enumerate() {
            for slot in slots {
                for share in 0..C {
                    let (bank, at) = wires.bank_mut(*slot);
                    of.gather(registers, share, bit, bank.plane_mut(share, at, 0));
                }
            }
        }
        let mut run = Run { of, program, wires, layer: 0 };
        run.linear(share_zero);
        run
    }

    fn linear(&mut self, share_zero: Option<usize>) {
        self.wires.linear(&self.program.gates.layers()[self.layer].linear, share_zero);
    }

    fn ands(&self) -> &[Lookup] {
        &self.program.gates.layers()[self.layer].lookups
    }
}

impl<const C: usize> Group<C> for Run<'_, C> {
    fn round<'r>(&'r self, _: &'r Registers<C>) -> Option<Round<'r, C>> {
        let lookups = self.ands();
        let round = || Round::new(Factors::Bits, ands(lookups, &self.wires), lookups.len() * self.of.lanes);
        (!lookups.is_empty()).then(round)
    }

    fn take(&mut self, products: [&[u8]; C], _: &mut Registers<C>, share_zero: Option<usize>) {
        let program = self.program.clone();
        let ands = Gathered::new(program.gates.layers()[self.layer].lookups.iter().collect(), &self.wires);
        for (share, products) in products.into_iter().enumerate() {
            ands.scatter(&mut self.wires, share, 0, products);
        }
        self.layer += 1;
        self.linear(share_zero);
    }

    fn finish(&self, registers: &mut Registers<C>) {
        let mut row = Zeroizing::new(vec![0; self.of.len]);
        for (bit, slot) in self.program.outputs.iter().enumerate() {
            for share in 0..C {
                self.wires.copy_plane(share, *slot, 0, &mut row);
                self.of.scatter(registers, share, bit, &row);
            }
        }
    }
}
