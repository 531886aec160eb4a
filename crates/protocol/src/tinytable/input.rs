//! Inputs and outputs.
//!
//! A value x goes in under the fresh mask r of its wire (figure 7, step 2), all values of a circuit in one
//! round:
//!
//! * If one party gives x, the giver sends x plus its share of r, and the other party its share of r with a
//!   tag. So the giver knows r and the other party does not, as in the paper, where the preprocessing tells r
//!   to the giver.
//! * If both parties know x, both send their shares of r.
//! * If x is shared, both send their shares of x + r.
//!
//! The next check verifies every share of a mask by its tag. What the giver sends is its own choice.
//!
//! # Differences from the paper
//! In the paper, preprocessing knows which party gives an input and tells that party the mask, and tells both
//! parties the masks of outputs. Here masks stay shared until they are needed. So a result can stay shared,
//! too, and be the input of the next circuit.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::secret::mark_public;
use zeroize::Zeroizing;

use super::batch::Masks;
use super::registers::Registers;
use super::shared::{Shared, Worth};
use super::{TinyTable, wire};
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, check_cells};
use crate::tinyot::peer_of;
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result};

/// What is opened of one port.
struct Opening {
    /// What both parties' messages are added to, if not zero.
    base: Option<Vec<u8>>,
    /// This party's message, with tags if it is a share.
    sent: Masks,
    /// Whether the peer verifies it, and whether this party verifies the peer's.
    verified: [bool; 2],
    bits: u8,
}

impl<R: Worth> TinyTable<R> {
    pub(super) fn put_in(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.key.refuse_retired()?;
        let mut openings = Vec::new();
        for (port, input) in ports.iter().zip(inputs) {
            let lanes = if port.uniform { 1 } else { registers.lanes() };
            let missing = || Error::misuse(format!("no mask is left for input {}", port.name));
            let at = registers.inputs.iter().position(|(name, _)| *name == port.name).ok_or_else(missing)?;
            let (_, mut sent) = registers.inputs.swap_remove(at);
            let (base, verified) = match input {
                Input::Public(cells) => {
                    check_cells(port, cells, lanes)?;
                    (Some(cells.rows().to_vec()), [true, true])
                }
                Input::Mine(cells) => {
                    check_cells(port, cells, lanes)?;
                    sent.values.iter_mut().zip(cells.rows()).for_each(|(share, x)| *share ^= x);
                    (None, [false, true])
                }
                Input::From(owner) if *owner == peer_of(net)? => (None, [true, false]),
                Input::From(owner) => return Err(Error::Misuse(format!("{owner} gives no inputs"))),
                Input::Shared(shared) => {
                    self.refuse_unfit(shared)?;
                    if (shared.bits, shared.count, shared.lanes) != (port.bits, port.cells.len(), lanes) {
                        return Err(Error::Misuse(format!("input {} takes another shape", port.name)));
                    }
                    sent.add(&shared.shares);
                    (None, [true, true])
                }
            };
            openings.push(Opening { base, sent, verified, bits: port.bits });
        }
        let opened = self.open(&openings, net)?;
        for (port, cells) in ports.iter().zip(opened) {
            let lanes = if port.uniform { 1 } else { registers.lanes() };
            for (views, row) in port.cells.iter().zip(cells.chunks(lanes)) {
                for (matrix, slot) in views {
                    match matrix.is_identity() {
                        true => registers.put(*slot, row),
                        false => {
                            registers.put(*slot, &row.iter().map(|x| matrix.apply(*x)).collect::<Vec<_>>())
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a shared value that another session has not checked, or that has no tags where they are
    /// needed.
    pub(super) fn refuse_unfit(&self, shared: &Shared) -> Result<()> {
        self.checks.refuse_foreign(&shared.unchecked)?;
        match shared.has_tags_of(self.macs) {
            true => Ok(()),
            false => Err(Error::misuse("the shared value comes of a protocol with another verification")),
        }
    }

    /// Shares of an output port: masked values and shares of their masks, added up.
    pub(super) fn take_out(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        let lanes = if port.uniform { 1 } else { registers.lanes() };
        let mut cells = vec![0; port.cells.len() * lanes];
        for (views, row) in port.cells.iter().zip(cells.chunks_mut(lanes)) {
            registers.copy_to(views[0].1, row);
        }
        let at = registers.outputs.iter().position(|(name, _)| *name == port.name);
        let mut shares = registers.outputs.swap_remove(at.expect("every output is taken once")).1;
        shares.add_public(&cells, &self.key);
        let unchecked = if R::VERIFIED { self.checks.next() } else { Unchecked::default() };
        Shared { bits: port.bits, count: port.cells.len(), lanes, shares, unchecked }
    }

    /// Opens a shared value to its owner. One round.
    pub(super) fn reveal(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Cells>> {
        let (me, peer) = (net.me(), peer_of(net)?);
        let learns = |party: Party| match to {
            Owner::All => true,
            Owner::Party(owner) => owner == party,
        };
        if !learns(me) && !learns(peer) {
            return Err(Error::misuse("an output goes to one of the two parties, or to both"));
        }
        let mut sent = shared.shares.clone();
        if !learns(peer) {
            // To a party that learns nothing goes nothing: the lengths stay as they are.
            sent.values.fill(0);
        }
        let opening = Opening { base: None, sent, verified: [learns(peer), learns(me)], bits: shared.bits };
        let opened = self.open(std::slice::from_ref(&opening), net)?.remove(0);
        if !learns(me) {
            return Ok(None);
        }
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        let mine = if learns(peer) { None } else { Some(&shared.shares.values) };
        cells.rows_mut().copy_from_slice(&opened);
        if let Some(mine) = mine {
            cells.rows_mut().iter_mut().zip(mine).for_each(|(x, share)| *x ^= share);
        }
        Ok(Some(cells))
    }

    /// The sums of what both parties send. One round.
    fn open(&mut self, openings: &[Opening], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
        let peer = peer_of(net)?;
        let mut outgoing = Vec::new();
        for opening in openings {
            wire::write_cells(&opening.sent.values, opening.bits, &mut outgoing);
        }
        let mut incoming = vec![0; outgoing.len()];
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
        out[peer.index()] = &outgoing;
        into[peer.index()] = &mut incoming;
        net.exchange(&out, &mut into)?;
        let counts = self.tally.of(self.phase);
        counts.rounds += 1;
        counts.openings += openings.iter().map(|opening| opening.sent.values.len() as u64).sum::<u64>();

        let mut at = 0;
        let mut opened = Vec::new();
        for Opening { base, sent, verified: [shows, verifies], bits } in openings {
            let bytes = wire::cells_bytes(sent.values.len(), *bits);
            let mut cells = vec![0; sent.values.len()];
            wire::read_cells(&incoming[at..at + bytes], *bits, &mut cells);
            at += bytes;
            let mut shown = Zeroizing::new(if *shows { sent.tags.clone() } else { Vec::new() });
            let mut expected = Zeroizing::new(if *verifies { sent.keys.clone() } else { Vec::new() });
            let expect = expected.iter_mut().zip(&cells);
            // What came is known to both: its product may be looked up; and so is what was sent.
            mark_public(&sent.values);
            expect.for_each(|(beta, cell)| *beta ^= self.products[usize::from(*cell)]);
            self.openings.add(&mut shown, &mut expected);
            cells.iter_mut().zip(&sent.values).for_each(|(x, mine)| *x ^= mine);
            if let Some(base) = base {
                cells.iter_mut().zip(base).for_each(|(x, base)| *x ^= base);
            }
            opened.push(cells);
        }
        Ok(opened)
    }
}
