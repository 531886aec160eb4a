//! Replicated sharing among four parties. One may cheat, or be gone: answers are right, and come.
//!
//! Dalskov, Escudero and Keller, "Fantastic Four: Honest-Majority Four-Party Secure Computation With
//! Malicious Security" (USENIX Security 2021), with lookups and levels of `replicated`. x = x_0 + x_1 + x_2 +
//! x_3, and P_i lacks component i and knows the other three. Every linear map is local. In a product each
//! party is told half a product by each other one, and each of these messages is known to two parties, so
//! that a tag of the second shows whether the first told the truth: no proof and no coins. Three parties that
//! are left go on as [`replicated-active`](super::active).
//!
//! | file | what |
//! |---|---|
//! | `config.rs`, `keys.rs` | the setup, components and their keys |
//! | `products.rs`, `tag.rs`, `transcript.rs` | joint messages, their tags, and what is kept of them |
//! | `verdict.rs`, `settling.rs` | whether an evaluation stands, and without whom it is repeated |
//! | `three.rs` | three go on without the fourth |
//! | `input.rs`, `opening.rs`, `client.rs` | values that go in and out |
//! | `elements.rs` | elements of GF(2^128) |
//! | `service.rs`, `storage.rs`, `refresh.rs` | nodes that serve clients from what they have stored |
//!
//! **Adversary**: active, static, one of the four, over a synchronous network: a message between two parties
//! that follow the protocol arrives within the network's time limit, privately and authentically. Secrecy is
//! computational (pseudorandom components), and the hash of the digests is collision resistant.
//!
//! * *What a party is told* in a product is masked by the key that it lacks, once. So its view until an
//!   opening is simulated by uniform bytes, whatever errors a cheater adds.
//! * *Errors*: a party compares what it is told with a tag of the second party before it computes anything
//!   from it ([`transcript`]; a wrong message passes with probability 2^-88 at most, [`tag`]). So what a party
//!   that follows the protocol sends is right, or zero after it has found something wrong. Before anything is
//!   opened or leaves the evaluation, all parties agree whether all messages were right ([`verdict`]). That
//!   depends on what a cheater sent and on what it knows that it should have sent: it tells nothing of a
//!   secret (no selective failure).
//! * *After a wrong verdict* the evaluation is repeated from its inputs without a party that may be at fault,
//!   under other keys. Nothing that was computed before is used again or has left the parties.
//! * *If a party is gone* from the beginning, three serve, as `replicated-active`: then a second party that
//!   cheats can end the evaluation, and still not make it wrong.
//!
//! # Differences from the paper
//! The paper's parties may compare hashes of many messages later; here each message is compared in its round,
//! by a polynomial, and `transcript.rs` says what would be told otherwise. The paper's robust form goes on
//! without the two parties of a dispute. Here one of them is left out, and the other can only expose itself
//! (`three.rs`). The roles in a message change by halves ([`products`]). Argued here and not in the paper:
//! `tag.rs`, `three.rs` and `verdict.rs`.
//!
//! **Cost** of a lookup of the S-box of AES: 27 bits sent by each party in four rounds, half as much again as
//! among three. Each message has 17 bytes more. At the end of an evaluation there is a broadcast of 10 bytes
//! a party: two rounds, and a third exchange for parties that lack a message.

mod client;
mod config;
mod elements;
mod input;
mod keys;
mod opening;
mod products;
mod refresh;
mod service;
mod settling;
mod storage;
mod tag;
mod three;
mod transcript;
mod verdict;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use zeroize::Zeroizing;

pub use config::{FOUR, ReplicatedFourConfig};

use super::gates::Programs;
use super::lookup::{self, Multiplier};
use super::registers::Registers;
use super::{Batch, Setup, Shared};
use crate::interface::net::Net;
use crate::interface::protocol::{Faults, Input, Owner, Session};
use crate::interface::release::Checked;
use crate::interface::session::Stream;
use crate::interface::tally::{Cost, Phase, Tally};
use crate::shamir::{Structure, Symbol};
use crate::{Error, Party, PartySet, Result};
use keys::{Components, Keys};
use products::{BEHIND, Joint};
use three::Three;
use transcript::Transcript;

/// The number of parties.
const PARTIES: usize = 4;
/// How many components a party has of each value.
const COMPONENTS: usize = PARTIES - 1;
/// More are not worth more: a message of a round is long enough.
const LANES_AT_ONCE: usize = 8192;
/// Four parties. One may be corrupt.
fn structure() -> Structure {
    Structure::new(PARTIES, 1).expect("one of four is a minority")
}

/// One party in one session.
pub struct ReplicatedFour {
    setup: Setup,
    stream: Stream,
    serving: PartySet,
    joint: Joint,
    programs: Programs,
    /// The three that go on, once they do.
    three: Option<Three>,
    /// Parties whose shares were wrong in openings, or that are known to have cheated.
    outvoted: PartySet,
    /// Two parties that contradicted each other.
    disputed: PartySet,
}

/// Shares of an evaluation under way.
pub enum FourRegisters {
    /// Among four.
    Four(Registers<COMPONENTS>),
    /// Among three.
    Three(Registers<2>),
    /// At the party without which the three go on, and the number of lanes.
    Aside(usize),
    /// Outputs that stand, by the names of their ports.
    Settled(Vec<(String, Shared<COMPONENTS>)>),
}

/// Every linear map is free.
impl Maps for ReplicatedFour {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl ReplicatedFour {
    fn new(setup: &Setup, stream: Stream, serving: PartySet) -> ReplicatedFour {
        let joint = Joint {
            keys: Keys::new(setup, &stream),
            transcript: Transcript::new(setup, &stream),
            lost: PartySet::default(),
            heard: Default::default(),
            phase: Phase::Preprocessing,
            tally: Tally::default(),
        };
        let (programs, outvoted) = (Programs::default(), PartySet::default());
        let absent = PartySet::all(PARTIES).without(serving).iter().next();
        let three = absent.map(|absent| Three::begin(setup, &stream, absent));
        let setup = setup.clone();
        let disputed = PartySet::default();
        ReplicatedFour { setup, stream, serving, joint, programs, three, outvoted, disputed }
    }

    fn me(&self) -> Party {
        self.joint.keys.me
    }

    /// Opens a value to its owners.
    fn open(
        &mut self,
        symbol: Symbol,
        components: Components<&[u8]>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.joint.open(symbol, components, to, (self.serving, &mut self.outvoted), net)
    }
}

impl Session for ReplicatedFour {
    type Shared = Shared<COMPONENTS>;
    type Registers = FourRegisters;
    type Batch = Batch;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        lookup::cost(compiled, &self.programs)
    }

    fn lanes_at_once(&self, _: &Compiled) -> usize {
        LANES_AT_ONCE
    }

    fn prepare(&mut self, _: &Compiled, _: usize, _: &mut dyn Net) -> Result<Batch> {
        Ok(Batch(()))
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch) -> Result<FourRegisters> {
        Ok(match &mut self.three {
            None => FourRegisters::Four(Registers::new(compiled, lanes, &self.joint.keys.pool)),
            Some(three) => match three.registers(compiled, lanes) {
                Some(registers) => FourRegisters::Three(registers),
                None => FourRegisters::Aside(lanes),
            },
        })
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<COMPONENTS>>],
        registers: &mut FourRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        let lanes = match registers {
            FourRegisters::Four(registers) => registers.count(),
            FourRegisters::Three(registers) => registers.count(),
            FourRegisters::Aside(lanes) => *lanes,
            FourRegisters::Settled(_) => return Err(Error::misuse("the evaluation has ended")),
        };
        let mut values = Vec::with_capacity(ports.len());
        for (port, input) in ports.iter().zip(inputs) {
            values.push(self.share(port, input, lanes, net)?);
        }
        match registers {
            FourRegisters::Four(registers) => {
                ports.iter().zip(&values).try_for_each(|(port, value)| value.fill_port(port, registers))
            }
            FourRegisters::Three(registers) => {
                let Some(three) = &mut self.three else {
                    return Err(Error::misuse("registers of three while four go on"));
                };
                let values: Vec<Shared<2>> = values.iter().map(|value| three.value(value)).collect();
                let inputs: Vec<Input<'_, Shared<2>>> = values.iter().map(Input::Shared).collect();
                let done = three.run(net, |session, net| session.inputs(ports, &inputs, registers, net));
                done.map(|_| ())
            }
            FourRegisters::Aside(_) | FourRegisters::Settled(_) => Ok(()),
        }
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut FourRegisters) {
        match registers {
            FourRegisters::Four(registers) => registers.linear(maps, self.joint.share_zero()),
            FourRegisters::Three(registers) => {
                if let Some(share_zero) = self.three.as_ref().and_then(Three::share_zero) {
                    registers.linear(maps, share_zero);
                }
            }
            FourRegisters::Aside(_) | FourRegisters::Settled(_) => {}
        }
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut FourRegisters,
        _: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        match (registers, &mut self.three) {
            (FourRegisters::Four(registers), _) => {
                lookup::lookup(compiled, lookups, registers, &self.programs, &mut self.joint, net)
            }
            (FourRegisters::Three(registers), Some(three)) => three.lookup(compiled, lookups, registers, net),
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut FourRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        self.settle_evaluation(compiled, registers, net)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut FourRegisters) -> Shared<COMPONENTS> {
        match registers {
            FourRegisters::Four(registers) => Shared::of_port(port, registers),
            FourRegisters::Settled(outputs) => {
                let at = outputs.iter().position(|(name, _)| *name == port.name);
                outputs.swap_remove(at.expect("each output is taken once")).1
            }
            FourRegisters::Three(_) | FourRegisters::Aside(_) => {
                unreachable!("outputs are taken from an evaluation that stands")
            }
        }
    }

    fn select_lanes(&self, shared: &Shared<COMPONENTS>, lanes: &[usize]) -> Shared<COMPONENTS> {
        shared.select(lanes)
    }

    /// Everything was judged when it was computed.
    fn check(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn release(
        &mut self,
        shared: &Shared<COMPONENTS>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Checked<Cells>>> {
        let components = std::array::from_fn(|at| shared.share(at));
        self.joint.tally.of(self.joint.phase).openings += components[0].len() as u64;
        let Some(opened) = self.open(Symbol::Byte, components, to, net)? else { return Ok(None) };
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        cells.rows_mut().copy_from_slice(&opened);
        Ok(Some(Checked::new(cells)))
    }

    fn faults(&self) -> Faults {
        Faults { outvoted: self.outvoted, silent: self.joint.lost, disputed: self.disputed }
    }

    crate::counted_session!(self => self.joint.phase, self.joint.tally);
}
