//! Garbled circuits with wires of several bits and projection gates (Pohle, Abidin and Preneel 2022; the
//! arithmetic case is Ball, Malkin and Rosulek 2016). A table of n bits takes 2^n ciphertexts, and one call
//! of the hash for the evaluator.
//!
//! The label of x on a wire of n bits is `W^x = W^0 + x R`, with x R the sum of the offsets R_i of the bits
//! that are set. It has a block and a *colour* of n bits; the colour of R_i is the unit vector e_i, so
//! offsets are independent and the colours of a wire's labels are all different (point and permute). A gate
//! for f with input a puts the ciphertext `H(W_a^x) + W_c^f(x)` where the colour of `W_a^x` says. Row
//! reduction: `W_c^0` is chosen so that the ciphertext at colour 0 is zero, and 2^n - 1 are sent.
//!
//! | file | what | source |
//! |---|---|---|
//! | `config.rs` | the protocol and what is kept: offsets, transfers | Pohle et al. 2022, II.A.1 |
//! | `offsets.rs` | offsets and their sums | II.A.1, II.A.2 |
//! | `wires.rs` | labels by slot, and sums of them | II.A.3 |
//! | `gates.rs` | projection gates of many lanes | II.A.4 |
//! | `stream.rs` | gates in messages | |
//! | `input.rs`, `output.rs`, `shared.rs` | values going in, coming out and kept | |
//!
//! **Labels** ([`Labels`]). Long: a block of 128 bits and the colour beside it, 17 bytes; the hash takes the
//! block, and what covers the colour is a second call of AES. Short: 16 bytes with the colour in the lowest 8
//! bits, so kappa = 120, as in the poster for wires of up to 8 bits (it has kappa = 124 where no wire is
//! wider than 4).
//!
//! **Free maps** are sums, and putting zeros above a cell. Every other map is a projection
//! ([`Maps::pays_for_views`]) of the lookup before it, of a sum, or of an input. So AES takes S(x) and 2
//! S(x): 304 projections.
//!
//! **Adversary**: passive, one of the two. Labels are authentic: if the evaluator departs from the protocol,
//! or a stream was damaged, the run ends in an error and not in a wrong output, except with probability 2^-64
//! a cell at the evaluator and 2^-120 at the garbler. A garbler that departs from the protocol can learn the
//! evaluator's inputs.
//!
//! **Assumption.** H must look random at `W + x R` for every x other than 0 and all wires, although the
//! values that it masks contain offsets. This is circular correlation robustness generalized to sums of
//! offsets. The poster claims privacy and obliviousness from it (II.A.4, without a proof). The full paper is
//! Pohle, Abidin, Preneel: *Fast Evaluation of S-boxes with Garbled Circuits*, arXiv 2405.20713; only its
//! abstract and the beginning of its introduction could be read here. They call the scheme projective, with a
//! generalization of free XOR, and name neither the property of the hash nor a theorem. So no proof was
//! checked, neither for one projection of an input nor for several, and what follows is our own argument. It
//! follows that of Guo et al. 2020 for one offset, with AES as an ideal cipher
//! ([`polyclave_kernels::label_hash`]). Every sum of offsets other than the empty one is uniform given the
//! colours. So one label of a wire is known, and any other is as hard to guess as with one offset. A key
//! serves for 512 gates of at most 256 labels, so mu = 2^18 in their bound, which leaves about 2^108
//! evaluations of AES (short labels: 2^101). A gate's labels share a tweak, and no two gates or views do
//! (`../hash.rs`). So several projections of one input are functions that are independent of each other.
//!
//! **Offsets** live as long as the setup, as Delta does in `../mod.rs`, for the same reason.
//!
//! **Cost** of a projection from n bits: 2^n calls of the hash for the garbler, one for the evaluator, 2^n -
//! 1 ciphertexts. Of a cell of n bits that the evaluator gives: n transfers and n *conversions* of a bit to a
//! cell, projections with n = 1. Of an input that the garbler knows, nothing.
//!
//! # Differences from the poster
//! * One family of eight offsets serves wires of all widths, so a narrow wire is a wide one with zeros above
//!   without any gate; the poster draws a matrix for each width.
//! * Conversions of input bits are counted as the poster's estimates count them, though the lowest bit of a
//!   cell needs none here.

mod config;
mod gates;
mod input;
mod offsets;
mod output;
mod shared;
mod stream;
mod wires;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Slot};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

pub use config::{ProjectionConfig, Setup};
pub use shared::Shared;
pub use wires::Registers;

use super::hash::Hash;
use gates::Scratch;
use offsets::Offsets;
use polyclave_protocol::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::Pairs;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Input, Owner, Session};
use polyclave_protocol::release::Unverified;
use polyclave_protocol::tally::{Cost, Counts, Phase, Tally};
use stream::Gate;
use wires::Place;

/// How long labels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// 17 bytes: 128 bits and the colour.
    Long,
    /// 16 bytes: 120 bits and the colour.
    Short,
}

impl Labels {
    /// Bytes of a label, and of a ciphertext.
    pub fn bytes(self) -> usize {
        match self {
            Labels::Long => 17,
            Labels::Short => 16,
        }
    }
}

/// What a party does, and what only it knows.
enum Side {
    /// Holds labels for zero, and the offsets.
    Garbler(Offsets),
    /// Holds active labels.
    Evaluator,
}

/// One party in one session.
pub struct Projected {
    side: Side,
    labels: Labels,
    /// The identity of the setup. Labels of one setup fit each other.
    setup: [u8; 32],
    hash: Hash,
    /// Active labels that both parties may know.
    known: AesPrg,
    transfers: Pairs,
    gates: Vec<Gate>,
    message: Zeroizing<Vec<u8>>,
    scratch: Scratch,
    made: stream::MadeLabels,
    pool: Pool,
    phase: Phase,
    tally: Tally,
}

impl Projected {
    fn counts(&mut self) -> &mut Counts {
        self.tally.of(self.phase)
    }
}

/// Sums, and zeros above a cell.
impl Maps for Projected {
    fn is_local(&self, m: &Matrix) -> bool {
        m.columns().into_iter().take(m.ins().into()).enumerate().all(|(i, column)| column == 1 << i)
    }

    fn pays_for_views(&self) -> bool {
        true
    }
}

/// Nothing is made before the inputs are known.
pub struct Batch(());

impl Session for Projected {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch;
    type Released = Unverified<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let views = |lookup: &Lookup| lookup.views.len();
        let gates: usize = compiled.lookups().map(views).sum();
        let uniform: usize = compiled.lookups().filter(|lookup| lookup.is_uniform()).map(views).sum();
        Cost {
            rounds: if gates > 0 { 1.0 } else { 0.0 },
            operations_per_lane: (gates - uniform) as f64,
            operations_uniform: uniform as f64,
            ..Cost::default()
        }
    }

    fn lanes_at_once(&self, _: &Compiled) -> usize {
        stream::LANES
    }

    fn prepare(&mut self, _: &Compiled, _: usize, _: &mut dyn Net) -> Result<Batch> {
        Ok(Batch(()))
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch) -> Result<Registers> {
        Ok(Registers::new(compiled, lanes, &self.pool))
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.put_in(ports, inputs, registers, net)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        registers.linear(maps, &self.side);
    }

    /// Every view is a gate of its own, with tweaks of its own.
    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        _: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut gates = std::mem::take(&mut self.gates);
        gates.clear();
        for lookup in lookups {
            let table = &compiled.tables()[lookup.table];
            for (view, to) in &lookup.views {
                let from = lookup.xs[0];
                let lanes = if matches!(from, Slot::Uniform(_)) { 1 } else { registers.lanes() };
                let projection = registers.projection(lookup.table, table, view);
                stream::push(&mut gates, projection, Place::Registers(from), *to, false, lanes);
            }
        }
        let is_first = !gates.is_empty() && !registers.is_under_way;
        registers.is_under_way |= is_first;
        self.counts().rounds += u64::from(is_first);
        let outcome = self.run(&gates, &mut [], registers, net);
        self.gates = gates;
        outcome
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        self.take_out(port, registers)
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes, &self.pool)
    }

    /// Nothing to verify: labels are, when they are decoded.
    fn check(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn release(
        &mut self,
        shared: &Shared,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Unverified<Cells>>> {
        Ok(self.reveal(shared, to, net)?.map(Unverified::new))
    }

    polyclave_protocol::counted_session!(self => self.phase, self.tally);
}

#[cfg(test)]
mod tests;
