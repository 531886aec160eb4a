//! Decoding of output labels.
//!
//! * To the evaluator the garbler sends, for each cell, hashes of the labels of all values in order, 9 bytes
//!   of each. The evaluator compares them with the hash of the active label, which gives the value. If the
//!   label is none of them (some ciphertext was damaged on its way), the run ends in an error. Hashes of
//!   other labels reveal nothing of them, because a cell takes a number of its own (`../hash.rs`).
//! * To the garbler the evaluator sends the active label itself. It does not know another label, whatever it
//!   does.
//!
//! One round, to both parties at once. Constant time: what is compared is secret until all of it has been
//! compared.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::label_hash::{Label, Tweak};
use polyclave_kernels::secret::{mask, public};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::gates::colour;
use super::offsets::Offsets;
use super::wires::{Registers, Row, RowMut, Wires};
use super::{Projected, Shared, Side};
use crate::garbled::{EVALUATOR, GARBLER};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Owner;
use polyclave_protocol::{Error, Party, Result};

/// Bytes of a hash that are compared: with one of up to 256, so that a wrong label is taken for some value
/// with 2^-64 at most.
const HASH: usize = 9;
/// Bytes of an active label on its way: the block, and the colour.
const ACTIVE: usize = 17;

impl Projected {
    /// The labels of an output port, with their images.
    pub(super) fn take_out(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        let (count, lanes) = (port.cells.len(), registers.lanes_of(port));
        let views = port.cells[0].iter().map(|(m, _)| *m).collect::<Vec<_>>();
        let mut wires = Wires::new(views.len() * count, lanes, &self.pool);
        for (cell, slots) in port.cells.iter().enumerate() {
            for (view, (_, slot)) in slots.iter().enumerate() {
                let (from, to) = (registers.row(*slot), wires.row_mut(view * count + cell));
                spread(&from, to);
            }
        }
        Shared { setup: self.setup, bits: port.bits, count, lanes, views, wires }
    }

    /// The value, to those who learn it. One round.
    pub(super) fn reveal(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Cells>> {
        shared.refuse_other(&self.setup)?;
        let learns = |party: Party| to == Owner::All || to == Owner::Party(party);
        if !learns(GARBLER) && !learns(EVALUATOR) {
            return Err(Error::misuse("an output goes to one of the two parties, or to both"));
        }
        let len = shared.count * shared.lanes;
        let of_cell = HASH << shared.bits;
        let to_evaluator = if learns(EVALUATOR) { of_cell * len } else { 0 };
        let to_garbler = if learns(GARBLER) { ACTIVE * len } else { 0 };
        let counts = self.counts();
        counts.rounds += 1;
        counts.openings += len as u64;
        // The labels of the identity, which is the first view.
        let rows: Vec<Row<'_>> = (0..shared.count).map(|cell| shared.wires.row(cell)).collect();
        let labels = || rows.iter().flat_map(|row| row.blocks.iter().zip(row.colours));
        let (peer, values) = match &self.side {
            Side::Garbler(offsets) => {
                let offsets = offsets.clone();
                let mut decoding = Zeroizing::new(Vec::with_capacity(to_evaluator));
                if learns(EVALUATOR) {
                    for (block, _) in labels() {
                        self.decoding(&offsets, shared.bits, block, &mut decoding);
                    }
                }
                let mut active = Zeroizing::new(vec![0; to_garbler]);
                let (out, into): (&[&[u8]], &mut [&mut [u8]]) =
                    (&[&[], &decoding], &mut [&mut [], &mut active]);
                net.exchange(out, into)?;
                let active = active.as_chunks::<ACTIVE>().0.iter();
                let decode = |(active, (zero, beside)): (&[u8; ACTIVE], (&Label, &u8))| {
                    self.decoded_by_garbler(&offsets, shared.bits, active, zero, *beside)
                };
                (EVALUATOR, all_of(active.zip(labels()).map(decode)))
            }
            Side::Evaluator => {
                let mut decoding = Zeroizing::new(vec![0; to_evaluator]);
                let mut active = Zeroizing::new(Vec::with_capacity(to_garbler));
                if learns(GARBLER) {
                    for (block, beside) in labels() {
                        active.extend_from_slice(block);
                        active.push(colour(self.labels, shared.bits, block, *beside));
                    }
                }
                let (out, into): (&[&[u8]], &mut [&mut [u8]]) =
                    (&[&active, &[]], &mut [&mut decoding, &mut []]);
                net.exchange(out, into)?;
                let mut values = Vec::new();
                if learns(EVALUATOR) {
                    for ((block, _), hashes) in labels().zip(decoding.chunks_exact(of_cell)) {
                        let mut own = [*block];
                        let (hash, first) = self.hash.take(1);
                        hash.hash(first, &mut own);
                        self.tally.of(self.phase).hash_calls += 1;
                        values.push(found(&own[0][..HASH], hashes.as_chunks::<HASH>().0));
                    }
                }
                (GARBLER, all_of(values.into_iter()))
            }
        };
        let values = values.ok_or_else(|| {
            let detail = "labels of an output that are none of its wires'".into();
            Error::Peer { peer, detail }
        })?;
        if !learns(net.me()) {
            return Ok(None);
        }
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        cells.rows_mut().copy_from_slice(&values);
        Ok(Some(cells))
    }

    /// Hashes of the labels of all values.
    fn decoding(&mut self, offsets: &Offsets, bits: u8, block: &Label, to: &mut Vec<u8>) {
        let all = (0..1_u16 << bits).map(|x| offsets.moved(block, x as u8)).collect::<Vec<Label>>();
        let mut hashes = Zeroizing::new(all);
        let (hash, first) = self.hash.take(1);
        hash.hash_gates(first, Tweak::First, 1 << bits, &mut hashes);
        self.tally.of(self.phase).hash_calls += 1 << bits;
        hashes.iter().for_each(|hash| to.extend_from_slice(&hash[..HASH]));
    }

    /// What an active label stands for, and whether it is one of the wire's.
    fn decoded_by_garbler(
        &self,
        offsets: &Offsets,
        bits: u8,
        active: &[u8; ACTIVE],
        zero: &Label,
        beside: u8,
    ) -> (u8, Choice) {
        let mask = 0xff >> (8 - bits);
        let x = (active[ACTIVE - 1] ^ colour(self.labels, bits, zero, beside)) & mask;
        let due = (u128::from_le_bytes(*zero) ^ offsets.of_secret(x)).to_le_bytes();
        (x, due[..].ct_eq(&active[..ACTIVE - 1]))
    }
}

/// A row into another; one label for all lanes into each.
fn spread(from: &Row<'_>, to: RowMut<'_>) {
    if from.blocks.len() == to.blocks.len() {
        to.blocks.copy_from_slice(from.blocks);
        to.colours.copy_from_slice(from.colours);
    } else {
        to.blocks.fill(from.blocks[0]);
        to.colours.fill(from.colours[0]);
    }
}

/// Which of some hashes one is, and whether it is just one of them.
fn found(own: &[u8], hashes: &[[u8; HASH]]) -> (u8, Choice) {
    let (mut value, mut fits) = (0, Choice::from(0));
    for (x, hash) in hashes.iter().enumerate() {
        let equal = own.ct_eq(&hash[..]);
        value |= x as u8 & mask(equal.unwrap_u8());
        fits ^= equal;
    }
    (value, fits)
}

/// All values, if all of them fit.
fn all_of(values: impl Iterator<Item = (u8, Choice)>) -> Option<Vec<u8>> {
    let mut fits = Choice::from(1);
    let values = values.map(|(x, fit)| {
        fits &= fit;
        x
    });
    let values: Vec<u8> = values.collect();
    // The party that learns the output learns whether there is one.
    public(bool::from(fits)).then_some(values)
}
