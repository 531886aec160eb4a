//! Gates in messages: as many as fit share one, in order, so that both parties know every length. The garbler
//! sends a message as soon as it is full and keeps none. The evaluator uses up one message before it receives
//! the next.

use polyclave_cipher::Slot;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::wires::{Place, Registers, Row, RowMut, Wires};
use super::{Projected, Side};
use crate::garbled::{EVALUATOR, GARBLER};
use polyclave_protocol::Result;
use polyclave_protocol::net::Net;

/// Bytes of a message at most.
const MESSAGE_BYTES: usize = 1 << 17;
/// Lanes of a gate that are garbled at a time at most; fewer of wide ones.
pub(super) const LANES: usize = 1024;
/// Labels that are hashed at a time at most: they stay near.
pub(super) const HASHED_AT_ONCE: usize = 2048;

/// Some lanes of a gate.
pub(super) struct Gate {
    projection: usize,
    from: Place,
    /// Where its output goes.
    to: Place,
    /// Whether the result is added to what is there.
    adds: bool,
    start: usize,
    lanes: usize,
}

impl From<Slot> for Place {
    fn from(slot: Slot) -> Place {
        Place::Registers(slot)
    }
}

/// Notes a gate of this many lanes.
pub(super) fn push(
    gates: &mut Vec<Gate>,
    projection: usize,
    from: Place,
    to: impl Into<Place>,
    adds: bool,
    lanes: usize,
) {
    let to = to.into();
    gates.push(Gate { projection, from, to, adds, start: 0, lanes });
}

/// The same gates, none with more lanes than are garbled at a time.
fn cut(gates: &[Gate], registers: &Registers) -> Vec<Gate> {
    let mut pieces = Vec::with_capacity(gates.len());
    for gate in gates {
        let at_once = (HASHED_AT_ONCE / registers.projections[gate.projection].values()).clamp(1, LANES);
        for start in (0..gate.lanes).step_by(at_once) {
            let lanes = at_once.min(gate.lanes - start);
            pieces.push(Gate { start, lanes, ..*gate });
        }
    }
    pieces
}

/// Gates that share a message, and its length; one message after another.
fn messages<'a>(
    mut gates: &'a [Gate],
    bytes_of: &impl Fn(&Gate) -> usize,
) -> impl Iterator<Item = (&'a [Gate], usize)> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |gate: &&Gate| {
            bytes += bytes_of(gate);
            bytes <= MESSAGE_BYTES
        };
        let count = gates.iter().take_while(fits).count().max(1).min(gates.len());
        let (here, after) = gates.split_at(count);
        gates = after;
        (count > 0).then(|| (here, here.iter().map(bytes_of).sum()))
    })
}

impl Projected {
    /// Garbles and sends, or receives and evaluates, gates in order. `given` are the inputs that are being
    /// put in.
    pub(super) fn run(
        &mut self,
        gates: &[Gate],
        given: &mut [Wires],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let gates = cut(gates, registers);
        let labels = self.labels;
        let lengths: Vec<usize> = registers
            .projections
            .iter()
            .map(|projection| projection.ciphertexts() * labels.bytes())
            .collect();
        let bytes_of = |gate: &Gate| lengths[gate.projection] * gate.lanes;
        let is_garbler = matches!(self.side, Side::Garbler(_));
        let mut message = std::mem::take(&mut self.message);
        for (gates, bytes) in messages(&gates, &bytes_of) {
            let len = bytes.max(message.len());
            message.resize(len, 0);
            if !is_garbler {
                net.recv(GARBLER, &mut message[..bytes])?;
            }
            let mut at = 0;
            for gate in gates {
                let here = at..at + bytes_of(gate);
                at = here.end;
                self.run_one(gate, given, registers, &mut message[here]);
            }
            if is_garbler {
                net.send(EVALUATOR, &message[..bytes])?;
            }
        }
        self.message = message;
        Ok(())
    }

    fn run_one(
        &mut self,
        gate: &Gate,
        given: &mut [Wires],
        registers: &mut Registers,
        ciphertexts: &mut [u8],
    ) {
        let lanes = gate.start..gate.start + gate.lanes;
        // Everything is overwritten.
        let mut out = std::mem::take(&mut self.made);
        out.blocks.resize(gate.lanes, [0; 16]);
        out.colours.resize(gate.lanes, 0);
        let mut output = RowMut { blocks: &mut out.blocks, colours: &mut out.colours };
        let row = match gate.from {
            Place::Registers(slot) => registers.row(slot),
            Place::Given { input, slot } => given[input].row(slot),
        };
        let input = Row { blocks: &row.blocks[lanes.clone()], colours: &row.colours[lanes.clone()] };
        let projection = &registers.projections[gate.projection];
        let hash = self.hash.take(gate.lanes);
        let calls = match &self.side {
            Side::Garbler(offsets) => {
                self.scratch.garble(projection, self.labels, offsets, hash, &input, &mut output, ciphertexts);
                projection.values()
            }
            Side::Evaluator => {
                self.scratch.evaluate(projection, self.labels, hash, &input, &mut output, ciphertexts);
                1
            }
        };
        let counts = self.tally.of(self.phase);
        counts.multiplications += gate.lanes as u64;
        counts.hash_calls += (calls * gate.lanes) as u64;
        counts.ciphertexts += (projection.ciphertexts() * gate.lanes) as u64;
        let to = match gate.to {
            Place::Registers(slot) => registers.row_mut(slot),
            Place::Given { input, slot } => given[input].row_mut(slot),
        };
        let (blocks, colours) = (&mut to.blocks[lanes.clone()], &mut to.colours[lanes]);
        if gate.adds {
            out.add_to(blocks, colours);
        } else {
            blocks.copy_from_slice(&out.blocks);
            colours.copy_from_slice(&out.colours);
        }
        self.made = out;
    }
}

/// Labels that a gate has put out.
#[derive(Default)]
pub(super) struct MadeLabels {
    blocks: Zeroizing<Vec<Label>>,
    colours: Zeroizing<Vec<u8>>,
}

impl MadeLabels {
    fn add_to(&self, blocks: &mut [Label], colours: &mut [u8]) {
        for (block, term) in blocks.iter_mut().zip(self.blocks.iter()) {
            *block = (u128::from_le_bytes(*block) ^ u128::from_le_bytes(*term)).to_le_bytes();
        }
        colours.iter_mut().zip(self.colours.iter()).for_each(|(colour, term)| *colour ^= term);
    }
}
