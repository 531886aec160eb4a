//! Labels of inputs.
//!
//! * If the garbler knows the input, because it is public or its own, both parties take the active label from
//!   a generator that both have, and the garbler changes its label for zero by `x Delta`. Nothing is sent,
//!   and the evaluator sees uniform labels.
//! * If the evaluator gives the input, it chooses by oblivious transfer ([`polyclave_protocol::ot`]). The
//!   sender's block q and the receiver's t satisfy `q = t + x Delta`, so q is the label for zero and t the
//!   active label. All inputs of a circuit together take four rounds.
//! * If the input is shared, its labels exist already.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::label_hash::Label;
use polyclave_kernels::secret::mask;

use super::source::{ROUNDS, Source, choose};
use super::{Garbled, Registers, Shared, Side};
use polyclave_protocol::garbling::LABEL;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::{Error, Result};

impl Garbled {
    pub(super) fn put_in(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let is_garbler = matches!(self.side, Side::Garbler { .. });
        let mut sources = Vec::with_capacity(ports.len());
        for (port, input) in ports.iter().zip(inputs) {
            let lanes = registers.labels.lanes_of(port);
            let source = Source::of(port, input, lanes, is_garbler)?;
            if let Source::Shared(shared) = source {
                shared.refuse_other(&self.setup)?;
                if (shared.count, shared.lanes) != (port.cells.len(), lanes) {
                    return Err(Error::Misuse(format!("input {} takes another shape", port.name)));
                }
            }
            sources.push(source);
        }
        let chosen =
            choose(&mut self.transfers, ports, &sources, |port| registers.labels.lanes_of(port), net)?;
        self.counts().rounds += chosen.as_ref().map_or(0, |_| ROUNDS);
        let chosen = chosen.unwrap_or_default();
        let mut chosen = chosen.iter();
        for (port, source) in ports.iter().zip(&sources) {
            let lanes = registers.labels.lanes_of(port);
            let mut labels = self.pool.take(port.cells.len() * lanes * LABEL);
            match source {
                Source::Known(cells) => self.known_labels(*cells, labels.as_chunks_mut().0),
                Source::Chosen(_) => {
                    let labels = labels.as_chunks_mut().0.iter_mut();
                    labels.zip(&mut chosen).for_each(|(label, block)| *label = block.to_le_bytes());
                }
                Source::Shared(shared) => labels.copy_from_slice(&shared.labels),
            }
            for (views, row) in port.cells.iter().zip(labels.as_chunks().0.chunks(lanes)) {
                views.iter().for_each(|(_, slot)| registers.labels.row_mut(*slot).copy_from_slice(row));
            }
        }
        Ok(())
    }

    /// Active labels from the common generator; at the garbler those for zero.
    fn known_labels(&mut self, cells: Option<&Cells>, labels: &mut [Label]) {
        self.known.fill(labels.as_flattened_mut());
        if let (Side::Garbler { delta, .. }, Some(cells)) = (&self.side, cells) {
            let delta = u128::from_le_bytes(**delta);
            for (label, x) in labels.iter_mut().zip(cells.rows()) {
                let moved = u128::from_le_bytes(*label) ^ delta & mask(u128::from(*x));
                *label = moved.to_le_bytes();
            }
        }
    }
}
