//! Labels of inputs.
//!
//! * If the garbler knows the input, because it is public or its own, both parties take the active label from
//!   a generator that both have, and the garbler changes its label for zero to fit. Every image is a wire of
//!   its own. Nothing is sent.
//! * If the evaluator gives the input, it chooses labels of its bits by oblivious transfer, whose offset is
//!   R_0. A bit becomes part of a cell by a *conversion*, a projection from one bit. An image that loses
//!   nothing is a projection of the cell, if the cell is there: one call of the hash for the evaluator. Any
//!   other image is made from conversions of its bits.
//! * If the input is shared, its labels exist already. An image that does not exist is a projection of the
//!   cell.

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use polyclave_kernels::affine::Map;

use super::gates::Projection;
use super::stream::{self, Gate};
use super::wires::{Place, Registers, Row, RowMut, Wires};
use super::{Projected, Shared, Side};
use crate::garbled::source::{ROUNDS, Source, choose};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::{Error, Result};

impl Projected {
    pub(super) fn put_in(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let is_garbler = matches!(self.side, Side::Garbler(_));
        let mut sources = Vec::with_capacity(ports.len());
        for (port, input) in ports.iter().zip(inputs) {
            let lanes = registers.lanes_of(port);
            let source = Source::of(port, input, lanes, is_garbler)?;
            if let Source::Shared(shared) = source {
                shared.refuse_other(&self.setup)?;
                if (shared.bits, shared.count, shared.lanes) != (port.bits, port.cells.len(), lanes) {
                    return Err(Error::Misuse(format!("input {} takes another shape", port.name)));
                }
            }
            sources.push(source);
        }
        let chosen = choose(&mut self.transfers, ports, &sources, |port| registers.lanes_of(port), net)?;
        self.counts().rounds += chosen.as_ref().map_or(0, |_| ROUNDS);
        let chosen = chosen.unwrap_or_default();
        let mut chosen = chosen.iter();
        let (mut gates, mut given) = (Vec::new(), Vec::new());
        for (port, source) in ports.iter().zip(&sources) {
            match source {
                Source::Known(cells) => self.put_known(port, *cells, registers),
                Source::Chosen(_) => {
                    let (bits, lanes) = (usize::from(port.bits), registers.lanes_of(port));
                    // Bits of cells, then cells.
                    let mut wires = Wires::new((bits + 1) * port.cells.len(), lanes, &self.pool);
                    for slot in 0..bits * port.cells.len() {
                        let RowMut { blocks, colours } = wires.row_mut(slot);
                        for ((block, colour), label) in blocks.iter_mut().zip(colours).zip(&mut chosen) {
                            (*block, *colour) = (label.to_le_bytes(), (label & 1) as u8);
                        }
                    }
                    given.push(wires);
                    convert(port, given.len() - 1, &given, registers, &mut gates);
                }
                Source::Shared(shared) => {
                    let mut cells = Wires::new(shared.count, shared.lanes, &self.pool);
                    put_shared(port, shared, (given.len(), &mut cells), registers, &mut gates);
                    given.push(cells);
                }
            }
        }
        self.run(&gates, &mut given, registers, net)
    }

    /// Active labels from the common generator; at the garbler those for zero.
    fn put_known(&mut self, port: &CompiledPort, cells: Option<&Cells>, registers: &mut Registers) {
        let lanes = registers.lanes_of(port);
        for (cell, views) in port.cells.iter().enumerate() {
            for (view, slot) in views {
                let RowMut { blocks, colours } = registers.row_mut(*slot);
                self.known.fill(blocks.as_flattened_mut());
                self.known.fill(colours);
                let mask = 0xff >> (8 - view.outs());
                colours.iter_mut().for_each(|colour| *colour &= mask);
                let (Side::Garbler(offsets), Some(cells)) = (&self.side, cells) else { continue };
                let values = &cells.rows()[cell * lanes..(cell + 1) * lanes];
                // The garbler's own input is secret.
                let map = Map::new(view.columns());
                for ((block, colour), x) in blocks.iter_mut().zip(colours).zip(values) {
                    let image = map.apply(*x);
                    *block = (u128::from_le_bytes(*block) ^ offsets.of_secret(image)).to_le_bytes();
                    *colour ^= image;
                }
            }
        }
    }
}

/// Notes the gates that make cells, and images of them, out of bits.
fn convert(
    port: &CompiledPort,
    input: usize,
    given: &[Wires],
    registers: &mut Registers,
    gates: &mut Vec<Gate>,
) {
    let (bits, lanes) = (usize::from(port.bits), registers.lanes_of(port));
    let identity = Matrix::identity(port.bits);
    for (cell, views) in port.cells.iter().enumerate() {
        let bit = |i: usize| Place::Given { input, slot: cell * bits + i };
        let mut sum_of_bits = |m: &Matrix, to: Place, registers: &mut Registers| {
            let columns = m.columns().into_iter().take(bits).enumerate().filter(|(_, column)| *column != 0);
            for (nth, (i, column)) in columns.enumerate() {
                let conversion = registers.add(Projection::new(1, m.outs(), vec![0, column]));
                stream::push(gates, conversion, bit(i), to, nth > 0, lanes);
            }
        };
        if let ([(m, slot)], 1) = (&views[..], bits)
            && *m == identity
        {
            // A bit is there already.
            copy(&given[input].row(cell), registers.row_mut(*slot));
            continue;
        }
        // The cell itself, where it is wanted or several images are projections of it.
        let loses_nothing = |m: &Matrix| bits > 1 && *m != identity && m.inverse().is_some();
        let has_cell = views.iter().any(|(m, _)| *m == identity)
            || views.iter().filter(|(m, _)| loses_nothing(m)).count() > 1;
        let is_projected = |m: &Matrix| has_cell && loses_nothing(m);
        let wanted = views.iter().find(|(m, _)| *m == identity).map(|(_, slot)| Place::Registers(*slot));
        let whole = wanted.unwrap_or(Place::Given { input, slot: bits * port.cells.len() + cell });
        if wanted.is_some() || views.iter().any(|(m, _)| is_projected(m)) {
            sum_of_bits(&identity, whole, registers);
        }
        for (m, slot) in views.iter().filter(|(m, _)| !is_projected(m) && *m != identity) {
            sum_of_bits(m, Place::Registers(*slot), registers);
        }
        for (m, slot) in views.iter().filter(|(m, _)| is_projected(m)) {
            let images = (0..1_u16 << port.bits).map(|x| m.apply(x as u8)).collect();
            let projection = registers.add(Projection::new(port.bits, m.outs(), images));
            stream::push(gates, projection, whole, *slot, false, lanes);
        }
    }
}

/// Labels that exist, and projections of the cells to images that do not.
fn put_shared(
    port: &CompiledPort,
    shared: &Shared,
    (input, cells): (usize, &mut Wires),
    registers: &mut Registers,
    gates: &mut Vec<Gate>,
) {
    for (cell, views) in port.cells.iter().enumerate() {
        // The identity comes first.
        copy(&shared.wires.row(cell), cells.row_mut(cell));
        for (m, slot) in views {
            match shared.views.iter().position(|view| view == m) {
                Some(view) => copy(&shared.wires.row(view * shared.count + cell), registers.row_mut(*slot)),
                None => {
                    let images = (0..1_u16 << port.bits).map(|x| m.apply(x as u8)).collect();
                    let projection = registers.add(Projection::new(port.bits, m.outs(), images));
                    let from = Place::Given { input, slot: cell };
                    stream::push(gates, projection, from, *slot, false, shared.lanes);
                }
            }
        }
    }
}

fn copy(from: &Row<'_>, to: RowMut<'_>) {
    to.blocks.copy_from_slice(from.blocks);
    to.colours.copy_from_slice(from.colours);
}
