//! What both protocols make first: the transfers of all lookups of a circuit, one for each cell, with random
//! choices.

use std::sync::Arc;

use polyclave_cipher::{Compiled, Table};
use zeroize::Zeroizing;

use super::Lut;
use super::one_of_many::{self, Transfers};
use super::plan::{Plan, RECEIVER, SENDER};
use super::wire::{packed_bytes, unpack};
use polyclave_protocol::Result;
use polyclave_protocol::net::Net;

/// Transfers for the cells of one table: out of as many messages as the table has entries.
pub(super) struct OfTable {
    /// Those that this party sends.
    pub(super) sender: Transfers,
    /// Those that it receives.
    pub(super) receiver: Transfers,
    /// Cells for which it is the sender, and the receiver.
    pub(super) cells: [usize; 2],
    /// What it has chosen as the receiver.
    pub(super) choices: Zeroizing<Vec<u8>>,
}

impl Lut {
    /// Transfers for all cells, by table. Messages have so many blocks of 128 bits.
    pub(super) fn transfers(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        blocks: impl Fn(usize) -> usize,
        net: &mut dyn Net,
    ) -> Result<Vec<OfTable>> {
        let count = plan.transfers(compiled);
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut packed = Zeroizing::new(vec![0; count / 8]);
        self.random.fill(&mut packed);
        let extended = self.many.extend(&packed, count, net)?;
        self.tally.preprocessing.rounds += one_of_many::ROUNDS;
        let mut at = [0; 2];
        let tables = plan.of_roles(self.is_first).zip(compiled.tables());
        let of_table = |(cells, table): ([usize; 2], &Arc<Table>)| {
            let (bits, length) = (table.in_bits(), blocks(table.entries().len()));
            let width = usize::from(bits);
            let mut choices = Zeroizing::new(vec![0; cells[RECEIVER]]);
            unpack(&packed[at[RECEIVER]..][..packed_bytes(choices.len(), bits)], bits, &mut choices);
            let [sent, received] = [(SENDER, &extended.sent), (RECEIVER, &extended.received)]
                .map(|(role, blocks)| &blocks[8 * at[role]..][..width * cells[role]]);
            let sender = self.many.sender(sent, width, length);
            let receiver = self.many.receiver(received, width, length);
            at = [SENDER, RECEIVER].map(|role| at[role] + packed_bytes(cells[role], bits));
            OfTable { sender, receiver, cells, choices }
        };
        Ok(tables.map(of_table).collect())
    }

    /// Random cells of so many bits, which nobody else knows.
    pub(super) fn random_cells(&mut self, bits: u8, cells: &mut [u8]) {
        self.random.fill(cells);
        cells.iter_mut().for_each(|cell| *cell &= mask_of(bits));
    }
}

/// All bits of a cell.
pub(super) fn mask_of(bits: u8) -> u8 {
    0xff >> (8 - bits)
}
