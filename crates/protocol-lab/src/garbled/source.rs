//! What an input is at each of the two parties, and the transfers for inputs that the evaluator gives.

use polyclave_cipher::{Cells, CompiledPort};
use zeroize::Zeroizing;

use super::{EVALUATOR, GARBLER};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Blocks, Correlated, Pairs};
use polyclave_protocol::protocol::{Input, check_cells};
use polyclave_protocol::{Error, Result};

/// Rounds of the transfers of all inputs together.
pub(super) const ROUNDS: u64 = 4;

/// An input as one of the parties has it.
pub(super) enum Source<'a, S> {
    /// The garbler knows it; at the evaluator without the value.
    Known(Option<&'a Cells>),
    /// The evaluator knows it; at the garbler without the value.
    Chosen(Option<&'a Cells>),
    /// It is shared: the labels exist already.
    Shared(&'a S),
}

impl<'a, S> Source<'a, S> {
    /// The source of a port's input in this number of lanes. The caller has to check whether a shared value
    /// fits.
    pub(super) fn of(
        port: &CompiledPort,
        input: &'a Input<'_, S>,
        lanes: usize,
        is_garbler: bool,
    ) -> Result<Source<'a, S>> {
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
            Input::Shared(shared) => Ok(Source::Shared(shared)),
        }
    }
}

/// This party's blocks of the transfers of all inputs that the evaluator gives: cell by cell, the lowest bit
/// of a cell first, each in all lanes. `None` if there are no such inputs, and then nothing is sent.
/// Otherwise it takes [`ROUNDS`].
pub(super) fn choose<S>(
    transfers: &mut Pairs,
    ports: &[CompiledPort],
    sources: &[Source<'_, S>],
    lanes_of: impl Fn(&CompiledPort) -> usize,
    net: &mut dyn Net,
) -> Result<Option<Blocks>> {
    let chosen = || ports.iter().zip(sources).filter(|(_, source)| matches!(source, Source::Chosen(_)));
    let bits = |port: &CompiledPort| port.cells.len() * usize::from(port.bits) * lanes_of(port);
    let count: usize = chosen().map(|(port, _)| bits(port)).sum();
    if count == 0 {
        return Ok(None);
    }
    let mut choices = Zeroizing::new(vec![0_u8; count.div_ceil(8)]);
    let mut at = 0;
    // The garbler has nothing to choose: what it receives is not used.
    for (port, source) in chosen() {
        let Source::Chosen(Some(cells)) = source else { continue };
        for row in cells.rows().chunks(lanes_of(port)) {
            for bit in 0..port.bits {
                for x in row {
                    choices[at / 8] |= (x >> bit & 1) << (at % 8);
                    at += 1;
                }
            }
        }
    }
    let is_garbler = net.me() == GARBLER;
    let peer = if is_garbler { EVALUATOR } else { GARBLER }.index();
    let mut towards = [&[][..]; 2];
    towards[peer] = choices.as_slice();
    let Correlated { mut sent, mut received, .. } = transfers.extend(&towards, count, net)?;
    transfers.check(net)?;
    Ok(Some(std::mem::take(if is_garbler { &mut sent[peer] } else { &mut received[peer] })))
}
