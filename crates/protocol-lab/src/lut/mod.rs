//! OP-LUT and SP-LUT: lookups between two parties that do not cheat, by oblivious transfer of one message out
//! of N (Dessouky, Koushanfar, Sadeghi, Schneider, Zeitouni, Zohner 2017, "Pushing the Communication Barrier
//! in Secure Computation using Lookup Tables", NDSS 2017, ePrint 2018/486).
//!
//! A cell is the sum of two shares over GF(2), so every linear map is local. The two protocols differ in how
//! they look up a table of N entries, N up to 256. OP-LUT makes whole tables ahead and opens a masked place:
//! little is sent online, and very much ahead. SP-LUT makes only random transfers ahead and sends each table
//! once online: less is sent in all.
//!
//! | file | what | source |
//! |---|---|---|
//! | `op.rs` | OP-LUT | Dessouky et al. 2017; Ishai et al. 2013 |
//! | `sp.rs` | SP-LUT | Dessouky et al. 2017 |
//! | `ahead.rs` | transfers for all lookups | Kolesnikov and Kumaresan 2013, `one_of_many.rs` |
//! | `plan.rs` | who is the sender for which lookup | |
//! | `input.rs` | values that go in and out | |
//! | `wire.rs` | cells in as few bits as hold them | |
//! | `config.rs` | the protocols; what is kept are transfers | |
//!
//! **Adversary**: passive, one of the two; the channels are private and authentic. `op.rs` and `sp.rs` have
//! the argument for their messages, `one_of_many.rs` that for transfers. A party that runs modified code is
//! outside of this model: it can make wrong outputs, and can extract the key.
//!
//! **Assumptions**: those of the transfers (`ot/`), and of [`polyclave_kernels::aes_hash`] under a key of its
//! own for each direction of each stream: after q hashes an attacker needs about 2^128 / q evaluations of
//! AES, or q about 2^64. A lookup takes N hashes by SP-LUT, and N ceil(N / 16) by OP-LUT.
//!
//! **Cost** of a lookup of a table with N = 2^d entries of b bits, in bits that the two send together, f
//! being the expansion of transfers:
//!
//! | | ahead | online | rounds of a layer |
//! |---|---|---|---|
//! | OP-LUT | 128 d / f + N^2 b | 2 d | 1 |
//! | SP-LUT | 128 d / f | d + N b | 2 |
//!
//! To that come what an extension costs once for each evaluation, and whole bytes for each message
//! (`docs/protocols/dessouky-2017.md`). Rounds ahead: three for transfers, and with OP-LUT one for tables.
//! Memory: N + 1 bytes a lookup with OP-LUT, half as many with SP-LUT.
//!
//! # Differences from the paper
//! * A transfer out of N takes log N transfers of bits, by a product in GF(2^128) in the place of a code:
//!   `one_of_many.rs`.
//! * Each party is the sender for half of the lookups: `plan.rs`.
//! * Transfers are actively secure, though the rest is not.
//! * The circuits are those of the catalogue. The paper also has a compiler to circuits of small tables,
//!   which is not built.

mod ahead;
mod config;
mod descriptor;
mod input;
mod one_of_many;
mod op;
mod plan;
mod sp;
mod wire;

use std::collections::HashMap;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::Map;
use zeroize::Zeroizing;

pub use config::{LutConfig, Method, Setup};
pub use descriptor::{OP, SP};
pub use polyclave_protocol::byte_registers::Registers;
pub use polyclave_protocol::byte_shares::ByteShares as Shared;

use one_of_many::OneOfMany;
use plan::{Group, Plan};
use polyclave_protocol::net::Net;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Input, Owner, Session};
use polyclave_protocol::release::Unverified;
use polyclave_protocol::tally::{Cost, Counts, Phase, Tally};
use polyclave_protocol::{Error, Party, Result};

/// One party in one session.
pub struct Lut {
    method: Method,
    /// Whether this is the first party, which adds what is public.
    is_first: bool,
    peer: Party,
    many: OneOfMany,
    /// What only this party knows.
    random: AesPrg,
    /// What both parties know: shares of inputs at the party that does not give them.
    known: AesPrg,
    stream: [u8; 40],
    maps: HashMap<Matrix, Map>,
    pool: Pool,
    phase: Phase,
    tally: Tally,
}

/// Material for one evaluation.
pub struct Batch {
    /// The stream it was made on.
    stream: [u8; 40],
    circuit: [u8; 32],
    lanes: usize,
    layers: std::vec::IntoIter<Vec<Group>>,
    material: Material,
}

/// By table.
enum Material {
    Op(Vec<op::Tables>),
    Sp(Vec<sp::Messages>),
}

impl Batch {
    /// Refuses another session, circuit or number of lanes than it was made for.
    fn refuse_other(&self, stream: &[u8; 40], compiled: &Compiled, lanes: usize) -> Result<()> {
        match (&self.stream, self.circuit, self.lanes) == (stream, compiled.digest(), lanes) {
            true => Ok(()),
            false => {
                Err(Error::misuse("the batch was prepared for another session, circuit or number of lanes"))
            }
        }
    }
}

impl Lut {
    fn counts(&mut self) -> &mut Counts {
        self.tally.of(self.phase)
    }

    /// Sends a message to the peer, and receives one.
    fn swap(&self, out: &[u8], into: &mut [u8], net: &mut dyn Net) -> Result<()> {
        let (mut all, mut due): ([&[u8]; 2], [&mut [u8]; 2]) = Default::default();
        all[self.peer.index()] = out;
        due[self.peer.index()] = into;
        net.exchange(&all, &mut due)
    }
}

/// Every linear map is free.
impl Maps for Lut {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl Session for Lut {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch;
    type Released = Unverified<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let layers = compiled.layers().iter().filter(|layer| !layer.lookups.is_empty()).count();
        let of_lanes = || compiled.lookups().filter(|lookup| !lookup.is_uniform());
        let entries = of_lanes().map(|lookup| compiled.tables()[lookup.table].entries().len());
        let (rounds, ahead, bytes) = match self.method {
            Method::Op => {
                (op::ROUNDS, one_of_many::ROUNDS + op::ROUNDS_AHEAD, entries.map(op::material_bytes).sum())
            }
            // Each party is the sender for one of two lookups.
            Method::Sp => {
                let of_two: usize = entries.map(sp::material_bytes_of_two).sum();
                (sp::ROUNDS, one_of_many::ROUNDS, of_two / 2)
            }
        };
        Cost {
            rounds: (rounds * layers as u64) as f64,
            operations_per_lane: of_lanes().count() as f64,
            operations_uniform: (compiled.lookups().count() - of_lanes().count()) as f64,
            preprocessing_rounds: if layers > 0 { ahead as f64 } else { 0.0 },
            material_bytes_per_lane: bytes,
            ..Cost::default()
        }
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch> {
        let plan = Plan::new(compiled, lanes);
        let material = match self.method {
            Method::Op => Material::Op(self.make_tables(compiled, &plan, net)?),
            Method::Sp => Material::Sp(self.make_messages(compiled, &plan, net)?),
        };
        let (stream, circuit, layers) = (self.stream, compiled.digest(), plan.layers.into_iter());
        Ok(Batch { stream, circuit, lanes, layers, material })
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, batch: &mut Batch) -> Result<Registers> {
        batch.refuse_other(&self.stream, compiled, lanes)?;
        let linear = compiled.layers().iter().flat_map(|layer| &layer.linear);
        for (_, matrix) in linear.flat_map(|linear| &linear.terms) {
            self.maps.entry(*matrix).or_insert_with(|| Map::new(matrix.columns()));
        }
        Ok(Registers::new(compiled.lane_slots(), compiled.uniform_slots(), lanes, &self.pool))
    }

    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared>,
        registers: &mut Registers,
        _: &mut dyn Net,
    ) -> Result<()> {
        self.put_in(port, input, registers)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        registers.linear(maps, |matrix| &self.maps[matrix], self.is_first);
    }

    /// The lookups of a layer: their inputs go out of the registers, table by table, and their outputs go
    /// back.
    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        batch.refuse_other(&self.stream, compiled, registers.lanes())?;
        let layer = batch.layers.next().unwrap_or_default();
        if layer.iter().map(|group| group.lookups.len()).sum::<usize>() != lookups.len() {
            return Err(Error::misuse("the batch was prepared for other layers"));
        }
        let gathered = |group: &Group| {
            let mut cells = Zeroizing::new(Vec::with_capacity(group.cells));
            group.lookups.iter().for_each(|at| cells.extend_from_slice(registers.row(lookups[*at].xs[0])));
            cells
        };
        let mut cells: Vec<_> = layer.iter().map(gathered).collect();
        self.counts().openings += layer.iter().map(|group| group.cells as u64).sum::<u64>();
        match &mut batch.material {
            Material::Op(tables) => self.look_up_tables(&layer, tables, compiled, &mut cells, net)?,
            Material::Sp(messages) => {
                self.look_up_by_messages(&layer, messages, compiled, &mut cells, net)?;
            }
        }
        for (group, cells) in layer.iter().zip(&cells) {
            let mut rest = &cells[..];
            for at in &group.lookups {
                let lookup = &lookups[*at];
                let (row, later) = rest.split_at(registers.len(lookup.xs[0]));
                rest = later;
                // All maps are local, so the only view is the output itself.
                lookup.views.iter().for_each(|(_, slot)| registers.row_mut(*slot).copy_from_slice(row));
            }
        }
        Ok(())
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        Shared::of_port(port, registers.lanes(), |slot| registers.row(slot))
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes)
    }

    /// Nothing to verify.
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
