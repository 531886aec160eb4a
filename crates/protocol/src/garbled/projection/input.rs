//! Labels of inputs.
//!
//! * What the garbler knows, because it is public or its own: both take the active label from a generator that both have, and
//!   the garbler moves its label for zero. Every image is a wire of its own. Nothing is sent.
//! * What the evaluator gives: it chooses labels of its bits by oblivious transfer, whose offset is R_0. A bit becomes part of a cell
//!   by a *conversion*, a projection from one bit. An image that loses nothing is a projection of the cell, one call of the hash
//!   for the evaluator; one that takes some bits only is made of conversions of these.
//! * What is shared: the labels that are there.

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use zeroize::Zeroizing;

use super::gates::Projection;
use super::stream::{self, Gate};
use super::wires::{Bank, Place, RowMut, Wires};
use super::{Projected, Shared, Side};
use crate::garbled::{EVALUATOR, GARBLER};
use crate::net::Net;
use crate::ot::{Blocks, Correlated};
use crate::protocol::{Input, check_cells};
use crate::{Error, Result};

/// What an input comes to at both parties.
enum Source<'a> {
    /// The garbler knows it; at the evaluator without the value.
    Known(Option<&'a Cells>),
    /// The evaluator knows it; at the garbler without the value.
    Chosen(Option<&'a Cells>),
    Shared(&'a Shared),
}

impl Projected {
    pub(super) fn put_in(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        bank: &mut Bank,
        net: &mut dyn Net,
    ) -> Result<()> {
        let sources = ports.iter().zip(inputs).map(|(port, input)| self.source(port, input, bank));
        let sources: Vec<Source<'_>> = sources.collect::<Result<_>>()?;
        let chosen = self.choose(ports, &sources, bank, net)?;
        let mut chosen = chosen.iter();
        let (mut gates, mut given) = (Vec::new(), Vec::new());
        for (port, source) in ports.iter().zip(&sources) {
            match source {
                Source::Known(cells) => self.put_known(port, *cells, bank),
                Source::Chosen(_) => {
                    let (bits, lanes) = (usize::from(port.bits), bank.lanes_of(port));
                    // Bits of cells, then cells.
                    let mut wires = Wires::new((bits + 1) * port.cells.len(), lanes, &self.pool);
                    for slot in 0..bits * port.cells.len() {
                        let RowMut { blocks, colours } = wires.row_mut(slot);
                        for ((block, colour), label) in blocks.iter_mut().zip(colours).zip(&mut chosen) {
                            (*block, *colour) = (label.to_le_bytes(), (label & 1) as u8);
                        }
                    }
                    given.push(wires);
                    convert(port, given.len() - 1, &given, bank, &mut gates);
                }
                Source::Shared(shared) => put_shared(port, shared, bank)?,
            }
        }
        self.run(&gates, &mut given, bank, net)
    }

    fn source<'a>(
        &self,
        port: &CompiledPort,
        input: &'a Input<'_, Shared>,
        bank: &Bank,
    ) -> Result<Source<'a>> {
        let is_garbler = matches!(self.side, Side::Garbler(_));
        let lanes = bank.lanes_of(port);
        match input {
            Input::Public(cells) | Input::Mine(cells) => check_cells(port, cells, lanes)?,
            Input::From(_) | Input::Shared(_) => {}
        }
        match input {
            Input::Public(cells) => Ok(Source::Known(is_garbler.then_some(*cells))),
            Input::Mine(cells) if is_garbler => Ok(Source::Known(Some(*cells))),
            Input::Mine(cells) => Ok(Source::Chosen(Some(*cells))),
            Input::From(owner) if *owner == GARBLER && !is_garbler => Ok(Source::Known(None)),
            Input::From(owner) if *owner == EVALUATOR && is_garbler => Ok(Source::Chosen(None)),
            Input::From(owner) => Err(Error::Misuse(format!("{owner} gives no inputs to this party"))),
            Input::Shared(shared) => {
                shared.refuse_other(&self.setup)?;
                if (shared.bits, shared.count, shared.lanes) != (port.bits, port.cells.len(), lanes) {
                    return Err(Error::Misuse(format!("input {} takes another shape", port.name)));
                }
                Ok(Source::Shared(shared))
            }
        }
    }

    /// Active labels from the common generator; at the garbler those for zero.
    fn put_known(&mut self, port: &CompiledPort, cells: Option<&Cells>, bank: &mut Bank) {
        let lanes = bank.lanes_of(port);
        for (cell, views) in port.cells.iter().enumerate() {
            for (view, slot) in views {
                let RowMut { blocks, colours } = bank.row_mut(*slot);
                self.known.fill(blocks.as_flattened_mut());
                self.known.fill(colours);
                let mask = 0xff >> (8 - view.outs());
                colours.iter_mut().for_each(|colour| *colour &= mask);
                let (Side::Garbler(offsets), Some(cells)) = (&self.side, cells) else { continue };
                let values = &cells.rows()[cell * lanes..(cell + 1) * lanes];
                for ((block, colour), x) in blocks.iter_mut().zip(colours).zip(values) {
                    let image = view.apply(*x);
                    *block = (u128::from_le_bytes(*block) ^ offsets.of_secret(image)).to_le_bytes();
                    *colour ^= image;
                }
            }
        }
    }

    /// This party's blocks of the transfers of all inputs that the evaluator gives: bit by bit of cell by cell, in all lanes.
    fn choose(
        &mut self,
        ports: &[CompiledPort],
        sources: &[Source<'_>],
        bank: &Bank,
        net: &mut dyn Net,
    ) -> Result<Blocks> {
        let chosen = || ports.iter().zip(sources).filter(|(_, source)| matches!(source, Source::Chosen(_)));
        let bits = |port: &CompiledPort| port.cells.len() * usize::from(port.bits) * bank.lanes_of(port);
        let count: usize = chosen().map(|(port, _)| bits(port)).sum();
        if count == 0 {
            return Ok(Blocks::default());
        }
        let mut choices = Zeroizing::new(vec![0_u8; count.div_ceil(8)]);
        let mut at = 0;
        // The garbler has nothing to choose: what it receives is not used.
        for (port, source) in chosen() {
            let Source::Chosen(Some(cells)) = source else { continue };
            for row in cells.rows().chunks(bank.lanes_of(port)) {
                for bit in 0..port.bits {
                    for x in row {
                        choices[at / 8] |= (x >> bit & 1) << (at % 8);
                        at += 1;
                    }
                }
            }
        }
        let is_garbler = matches!(self.side, Side::Garbler(_));
        let peer = if is_garbler { EVALUATOR } else { GARBLER }.index();
        let mut towards = [&[][..]; 2];
        towards[peer] = choices.as_slice();
        let Correlated { mut sent, mut received, .. } = self.transfers.extend(&towards, count, net)?;
        self.transfers.check(net)?;
        self.counts().rounds += 4;
        Ok(std::mem::take(if is_garbler { &mut sent[peer] } else { &mut received[peer] }))
    }
}

/// Notes the gates that make cells, and images of them, out of bits.
fn convert(port: &CompiledPort, input: usize, given: &[Wires], bank: &mut Bank, gates: &mut Vec<Gate>) {
    let (bits, lanes) = (usize::from(port.bits), bank.lanes_of(port));
    let identity = Matrix::identity(port.bits);
    for (cell, views) in port.cells.iter().enumerate() {
        let bit = |i: usize| Place::Given { input, slot: cell * bits + i };
        let mut sum_of_bits = |m: &Matrix, to: Place, bank: &mut Bank| {
            let columns = m.columns().into_iter().take(bits).enumerate().filter(|(_, column)| *column != 0);
            for (nth, (i, column)) in columns.enumerate() {
                let conversion = bank.add(Projection::new(1, m.outs(), vec![0, column]));
                stream::push(gates, conversion, bit(i), to, nth > 0, lanes);
            }
        };
        if let ([(m, slot)], 1) = (&views[..], bits)
            && *m == identity
        {
            // A bit is there already.
            let (from, RowMut { blocks, colours }) = (given[input].row(cell), bank.row_mut(*slot));
            blocks.copy_from_slice(from.blocks);
            colours.copy_from_slice(from.colours);
            continue;
        }
        // The cell itself, where it is wanted or images are projections of it.
        let is_projected = |m: &Matrix| bits > 1 && *m != identity && m.inverse().is_some();
        let wanted = views.iter().find(|(m, _)| *m == identity).map(|(_, slot)| Place::Bank(*slot));
        let whole = wanted.unwrap_or(Place::Given { input, slot: bits * port.cells.len() + cell });
        if wanted.is_some() || views.iter().any(|(m, _)| is_projected(m)) {
            sum_of_bits(&identity, whole, bank);
        }
        for (m, slot) in views.iter().filter(|(m, _)| !is_projected(m) && *m != identity) {
            sum_of_bits(m, Place::Bank(*slot), bank);
        }
        for (m, slot) in views.iter().filter(|(m, _)| is_projected(m)) {
            let images = (0..1_u16 << port.bits).map(|x| m.apply(x as u8)).collect();
            let projection = bank.add(Projection::new(port.bits, m.outs(), images));
            stream::push(gates, projection, whole, *slot, false, lanes);
        }
    }
}

/// Labels that are there, of the images that the port wants.
fn put_shared(port: &CompiledPort, shared: &Shared, bank: &mut Bank) -> Result<()> {
    for (cell, views) in port.cells.iter().enumerate() {
        for (m, slot) in views {
            let missing = || {
                let name = &port.name;
                Error::Misuse(format!("the shared value lacks an image of it that input {name} needs"))
            };
            let view = shared.views.iter().position(|view| view == m).ok_or_else(missing)?;
            let from = shared.wires.row(view * shared.count + cell);
            let RowMut { blocks, colours } = bank.row_mut(*slot);
            blocks.copy_from_slice(from.blocks);
            colours.copy_from_slice(from.colours);
        }
    }
    Ok(())
}
