//! Inputs and outputs.
//!
//! An input of one party needs no message: the other party's share is pseudorandom under a key that both
//! have, and the giver's share is the input plus that. The giver knows the other share then, as it would if
//! it had drawn it. An output is opened by the share that its owner lacks, which follows from the output and
//! from the share that the owner has.

use polyclave_cipher::{Cells, CompiledPort};
use zeroize::Zeroizing;

use super::ahead::mask_of;
use super::wire::{pack, packed_bytes, unpack};
use super::{Lut, Registers, Shared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, SharedValue, check_cells};
use polyclave_protocol::{Error, Party, Result};

impl Lut {
    pub(super) fn put_in(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared>,
        registers: &mut Registers,
    ) -> Result<()> {
        let lanes = registers.lanes();
        match input {
            Input::Public(cells) | Input::Mine(cells) => check_cells(port, cells, lanes)?,
            Input::Shared(shared) => shared.check_port(port, lanes)?,
            Input::From(owner) if *owner == self.peer => {}
            Input::From(owner) => {
                return Err(Error::Misuse(format!("{owner} gives no inputs to this party")));
            }
        }
        let width = if port.uniform { 1 } else { lanes };
        let mut row = Zeroizing::new(vec![0; width]);
        for (i, views) in port.cells.iter().enumerate() {
            match input {
                Input::Shared(shared) => row.copy_from_slice(shared.row(i, 0)),
                Input::Public(cells) if self.is_first => row.copy_from_slice(cells.row(i)),
                Input::Public(_) => row.fill(0),
                Input::From(_) => self.known_cells(port.bits, &mut row),
                Input::Mine(cells) => {
                    self.known_cells(port.bits, &mut row);
                    row.iter_mut().zip(cells.row(i)).for_each(|(share, cell)| *share ^= cell);
                }
            }
            views.iter().for_each(|(_, slot)| registers.row_mut(*slot).copy_from_slice(&row));
        }
        Ok(())
    }

    /// The next cells that both parties know.
    fn known_cells(&mut self, bits: u8, cells: &mut [u8]) {
        self.known.fill(cells);
        cells.iter_mut().for_each(|cell| *cell &= mask_of(bits));
    }

    /// Opens a shared value to its owner. One round.
    pub(super) fn reveal(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Cells>> {
        let learns = |party: Party| to == Owner::All || to == Owner::Party(party);
        let (me, peer) = (learns(net.me()), learns(self.peer));
        if !me && !peer {
            return Err(Error::misuse("an output goes to one of the two parties, or to both"));
        }
        let own = shared.reveal_own_shares();
        let mut out = Vec::new();
        if peer {
            pack(own, shared.bits, &mut out);
        }
        let mut into = vec![0; if me { packed_bytes(own.len(), shared.bits) } else { 0 }];
        self.swap(&out, &mut into, net)?;
        self.counts().rounds += 1;
        self.counts().openings += own.len() as u64;
        if !me {
            return Ok(None);
        }
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        unpack(&into, shared.bits, cells.rows_mut());
        cells.rows_mut().iter_mut().zip(own).for_each(|(cell, share)| *cell ^= share);
        Ok(Some(cells))
    }
}
