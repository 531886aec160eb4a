//! Circuits of HMAC, compiled for a node's protocol, and what is computed with them for messages and keys.
//!
//! The large ones, of compressions, are made on first use and kept: two for SHA-256, and two for SHA-384 and
//! SHA-512 together. Those without an AND are made anew for each use, which takes less time than a round.

use std::sync::Arc;

use polyclave_cipher::boolean::BooleanBuilder;
use polyclave_cipher::hmac::{self, Additions, Last, Sha2};
use polyclave_cipher::{Cells, Circuit, Compiled, compile, modes};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::key_circuits::Cached;
use super::pieces::{evaluate_within, run};
use super::progress::Progress;
use crate::Result;
use crate::error::system;

/// What an evaluation for keys takes in memory at once, about. The same at all nodes.
const BYTES_AT_ONCE: usize = 32 << 20;

/// A compression. The state is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Compression {
    /// `block` and `state` to `state`.
    Block,
    /// `schedule` and `state` to `state`.
    KnownBlock,
}

/// Those of one protocol.
#[derive(Default)]
pub(crate) struct HmacCircuits {
    made: Cached<(Sha2, Compression, Additions), Compiled>,
}

/// A hash, with the circuits of its protocol.
#[derive(Clone)]
pub(crate) struct Hashing {
    pub(crate) hash: Sha2,
    circuits: Arc<HmacCircuits>,
}

/// The session, and what an evaluation takes: bytes of memory, and progress.
pub(crate) struct Within<'a> {
    pub(crate) protocol: &'a mut AnyServiceSession,
    pub(crate) net: &'a mut dyn Net,
    pub(crate) memory: (usize, &'a Progress),
}

impl Hashing {
    pub(crate) fn new(hash: Sha2, circuits: &Arc<HmacCircuits>) -> Hashing {
        Hashing { hash, circuits: circuits.clone() }
    }

    /// A key as it is stored, and its check value, which is not opened.
    pub(crate) fn expand(
        &self,
        key: &AnyShared,
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<(AnyShared, AnyShared)> {
        let expanded = self.round_keys(key, protocol, net).and_then(|round_keys| {
            let check = self.check_values((&round_keys, 1), protocol, net)?;
            Ok((round_keys, check))
        });
        let what = format!("To make a key of {}", hmac::name(self.hash));
        self.told_of_all(expanded, (3, 1), &what, protocol)
    }

    /// Each compression asks for material of its own, so an error tells of what one lacks. Adds what so many
    /// blocks and blocks that everybody knows take together.
    pub(super) fn told_of_all<T>(
        &self,
        outcome: Result<T>,
        (blocks, known_blocks): (usize, usize),
        what: &str,
        maps: &AnyServiceSession,
    ) -> Result<T> {
        let Err(Error::OutOfMaterial { detail }) = outcome else { return outcome };
        let [block, known_block] = [Compression::Block, Compression::KnownBlock]
            .map(|which| Ok::<_, Error>(self.compression(which, maps)?.lookups().count()));
        let ands = blocks * block? + known_blocks * known_block?;
        Err(Error::OutOfMaterial {
            detail: format!("{detail}. {what} takes material for {ands} ANDs in all"),
        })
    }

    /// The states of both hashes behind the block of a key: two lanes of one compression.
    fn round_keys(
        &self,
        key: &AnyShared,
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let padded = linear(&hmac::padded(self.hash), 1, &[Input::Shared(key)], protocol, net)?;
        let blocks = protocol.join_lanes(&padded.iter().collect::<Vec<_>>());
        let circuit = self.compression(Compression::Block, protocol)?;
        let initial = bits(&hmac::initial_state(self.hash), 2)?;
        let inputs = [Input::Shared(&blocks), Input::Public(&initial)];
        let states = run(protocol, net, &circuit, 2, &inputs)?.remove(0);
        let [inner, outer] = [0, 1].map(|lane| protocol.lanes(&states, lane..lane + 1));
        let inputs = [Input::Shared(&inner), Input::Shared(&outer)];
        Ok(linear(&hmac::round_keys(self.hash), 1, &inputs, protocol, net)?.remove(0))
    }

    /// The check values of keys, one a lane: the first bytes of the code of zeros, as many as a code has.
    pub(crate) fn check_values(
        &self,
        (round_keys, lanes): (&AnyShared, usize),
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let [inner, outer] = self.states((round_keys, lanes), protocol, net)?;
        let progress = Progress::new(Arc::default());
        let mut within = Within::for_a_key(protocol, net, &progress);
        // The block of a message of zeros has what it is filled up with, and zeros else.
        let block = hmac::filling(self.hash, self.hash.hash_bytes() as u64, 0);
        let state = self.known_block(&block, (&inner, lanes), &mut within)?;
        let bytes = modes::check_value_bytes(&hmac::cipher(self.hash));
        self.code(bytes, (&state, &outer, lanes), &mut within)
    }

    /// Round keys, one a lane, to the states of the inner and the outer hash.
    pub(crate) fn states(
        &self,
        (round_keys, lanes): (&AnyShared, usize),
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<[AnyShared; 2]> {
        let inputs = [Input::Shared(round_keys)];
        let mut states = linear(&hmac::states(self.hash), lanes, &inputs, protocol, net)?;
        let outer = states.remove(1);
        Ok([states.remove(0), outer])
    }

    /// The circuit of a [`block`](Hashing::block).
    pub(crate) fn block_circuit(&self, protocol: &AnyServiceSession) -> Result<Arc<Compiled>> {
        self.compression(Compression::Block, protocol)
    }

    /// The state behind a block of each message.
    pub(crate) fn block(
        &self,
        block: &AnyShared,
        (state, lanes): (&AnyShared, usize),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let circuit = self.block_circuit(within.protocol)?;
        within.one(&circuit, lanes, &[Input::Shared(block), Input::Shared(state)])
    }

    /// The state behind a block that everybody knows, the same of each message.
    pub(crate) fn known_block(
        &self,
        block: &[u8],
        (state, lanes): (&AnyShared, usize),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        self.scheduled(&bits(&hmac::schedule(self.hash, block), lanes)?, state, within)
    }

    /// The same with a block of its own for each message.
    pub(super) fn known_blocks(
        &self,
        blocks: &[Vec<u8>],
        state: &AnyShared,
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let schedules: Vec<u8> = blocks.iter().flat_map(|block| hmac::schedule(self.hash, block)).collect();
        self.scheduled(&bits_of_lanes(&schedules, blocks.len())?, state, within)
    }

    /// The state behind blocks whose schedules everybody knows, one a lane.
    fn scheduled(&self, schedules: &Cells, state: &AnyShared, within: &mut Within<'_>) -> Result<AnyShared> {
        let circuit = self.compression(Compression::KnownBlock, within.protocol)?;
        within.one(&circuit, schedules.lanes(), &[Input::Public(schedules), Input::Shared(state)])
    }

    /// The first bytes of the code of each message, from the states behind the last block of the message and
    /// behind the block of the key in the outer hash.
    pub(crate) fn code(
        &self,
        bytes: usize,
        (state, outer, lanes): (&AnyShared, &AnyShared, usize),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let filling = hmac::filling(self.hash, self.hash.hash_bytes() as u64, 0);
        let state = self.behind_hash((state, &filling), (outer, lanes), within)?;
        self.first_bytes(bytes, (&state, lanes), within)
    }

    /// The state behind a block that begins with a hash, given as a state, and goes on as `rest` does behind
    /// as many bytes.
    pub(super) fn behind_hash(
        &self,
        (hash, rest): (&AnyShared, &[u8]),
        (state, lanes): (&AnyShared, usize),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let rest = bits(rest, lanes)?;
        let (last, inputs) =
            (hmac::last_block(self.hash, Last::OfHash), [Input::Shared(hash), Input::Public(&rest)]);
        let block = linear(&last, lanes, &inputs, within.protocol, within.net)?.remove(0);
        self.block(&block, (state, lanes), within)
    }

    /// The first bytes of codes that are given as states.
    pub(super) fn first_bytes(
        &self,
        bytes: usize,
        (states, lanes): (&AnyShared, usize),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let (beginning, inputs) = (hmac::beginning(self.hash, bytes), [Input::Shared(states)]);
        Ok(linear(&beginning, lanes, &inputs, within.protocol, within.net)?.remove(0))
    }

    fn compression(&self, which: Compression, maps: &AnyServiceSession) -> Result<Arc<Compiled>> {
        let (hash, how) = (self.hash.compression(), additions(maps));
        self.circuits.made.get((hash, which, how), || {
            let circuit = match which {
                Compression::Block => hmac::block(hash, how),
                Compression::KnownBlock => hmac::known_block(hash, how),
            };
            Ok(compile(&circuit, maps))
        })
    }
}

impl<'a> Within<'a> {
    /// For what is computed once, when a key is made.
    pub(crate) fn for_a_key(
        protocol: &'a mut AnyServiceSession,
        net: &'a mut dyn Net,
        progress: &'a Progress,
    ) -> Within<'a> {
        Within { protocol, net, memory: (BYTES_AT_ONCE, progress) }
    }

    /// Evaluates a circuit with one output.
    fn one(
        &mut self,
        circuit: &Compiled,
        lanes: usize,
        inputs: &[Input<'_, AnyShared>],
    ) -> Result<AnyShared> {
        Ok(evaluate_within(self.protocol, self.net, circuit, lanes, inputs, self.memory)?.remove(0))
    }
}

/// Evaluates a circuit without an AND.
fn linear(
    circuit: &Circuit,
    lanes: usize,
    inputs: &[Input<'_, AnyShared>],
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<AnyShared>> {
    let circuit = compile(circuit, protocol);
    run(protocol, net, &circuit, lanes, inputs)
}

/// Public bits, the same in each lane.
pub(crate) fn bits(bytes: &[u8], lanes: usize) -> Result<Cells> {
    bits_of_lanes(&bytes.repeat(lanes), lanes)
}

/// Public bits, as many bytes of each lane.
fn bits_of_lanes(bytes: &[u8], lanes: usize) -> Result<Cells> {
    Cells::from_blocks(8 * bytes.len() / lanes.max(1), 1, bytes).map_err(system)
}

/// How to add. Where ANDs take material that is made ahead, few of them are better. Else few levels are: also
/// with as many lanes as one request has, rounds take longer than the ANDs that save them.
fn additions(maps: &AnyServiceSession) -> Additions {
    match maps.cost(&compile(&an_and(), maps)).material_bytes_per_lane > 0 {
        true => Additions::FewAnds,
        false => Additions::FewLevels,
    }
}

fn an_and() -> Circuit {
    let mut b = BooleanBuilder::new("an AND");
    let x = b.input("x", 2, false);
    let and = b.and(x[0], x[1]);
    b.output_words("y", &[vec![and]]);
    b.finish()
}
