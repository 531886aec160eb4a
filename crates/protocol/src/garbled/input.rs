//! Labels of inputs.
//!
//! * What the garbler knows, because it is public or its own: both take the active label from a generator that both have, and
//!   the garbler moves its label for zero by `x Delta`. Nothing is sent, and the evaluator sees uniform labels.
//! * What the evaluator gives: it chooses by oblivious transfer ([`crate::ot`]). The sender's block q and the receiver's t have
//!   `q = t + x Delta`, so q is the label for zero and t the active one. All inputs of a circuit together, in four rounds.
//! * What is shared: the labels that are there.

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::bank::{Bank, LABEL};
use super::{EVALUATOR, GARBLER, Garbled, Shared, Side};
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

impl Garbled {
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
        for (port, source) in ports.iter().zip(&sources) {
            let lanes = bank.lanes_of(port);
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
                views.iter().for_each(|(_, slot)| bank.row_mut(*slot).copy_from_slice(row));
            }
        }
        Ok(())
    }

    fn source<'a>(
        &self,
        port: &CompiledPort,
        input: &'a Input<'_, Shared>,
        bank: &Bank,
    ) -> Result<Source<'a>> {
        let is_garbler = matches!(self.side, Side::Garbler { .. });
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
                if (shared.count, shared.lanes) != (port.cells.len(), lanes) {
                    return Err(Error::Misuse(format!("input {} takes another shape", port.name)));
                }
                Ok(Source::Shared(shared))
            }
        }
    }

    /// Active labels from the common generator; at the garbler those for zero.
    fn known_labels(&mut self, cells: Option<&Cells>, labels: &mut [Label]) {
        self.known.fill(labels.as_flattened_mut());
        if let (Side::Garbler { delta, .. }, Some(cells)) = (&self.side, cells) {
            let delta = u128::from_le_bytes(**delta);
            for (label, x) in labels.iter_mut().zip(cells.rows()) {
                let moved = u128::from_le_bytes(*label) ^ delta & u128::from(*x).wrapping_neg();
                *label = moved.to_le_bytes();
            }
        }
    }

    /// This party's blocks of the transfers of all inputs that the evaluator gives.
    fn choose(
        &mut self,
        ports: &[CompiledPort],
        sources: &[Source<'_>],
        bank: &Bank,
        net: &mut dyn Net,
    ) -> Result<Blocks> {
        let chosen = || ports.iter().zip(sources).filter(|(_, source)| matches!(source, Source::Chosen(_)));
        let count: usize = chosen().map(|(port, _)| port.cells.len() * bank.lanes_of(port)).sum();
        if count == 0 {
            return Ok(Blocks::default());
        }
        let mut choices = Zeroizing::new(vec![0_u8; count.div_ceil(8)]);
        let cells = chosen().filter_map(|(_, source)| match source {
            Source::Chosen(Some(cells)) => Some(cells.rows()),
            _ => None,
        });
        // The garbler has nothing to choose: what it receives is not used.
        for (at, x) in cells.flatten().enumerate() {
            choices[at / 8] |= x << (at % 8);
        }
        let is_garbler = matches!(self.side, Side::Garbler { .. });
        let peer = if is_garbler { EVALUATOR } else { GARBLER }.index();
        let mut towards = [&[][..]; 2];
        towards[peer] = choices.as_slice();
        let Correlated { mut sent, mut received, .. } = self.transfers.extend(&towards, count, net)?;
        self.transfers.check(net)?;
        self.counts().rounds += 4;
        Ok(std::mem::take(if is_garbler { &mut sent[peer] } else { &mut received[peer] }))
    }
}
