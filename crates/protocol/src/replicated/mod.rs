//! Replicated sharing of bits among three parties. One may be corrupt. Araki et al. 2016, with products in
//! subfields of GF(2^8) so that a lookup of the S-box of AES sends 18 bits.
//!
//! A bit is x = x_0 + x_1 + x_2. Party P_i has x_i and x_(i+1), and each two parties together have all three
//! shares. Shares are in planes: a plane has the same bit of all lanes. Every map that is linear over GF(2)
//! is local. A product of elements of any field of characteristic two takes one round: P_i computes z_i = x_i
//! (y_i + y_(i+1)) + x_(i+1) y_i + F(k_i) + F(k_(i+1)) and sends it to P_(i-1). The z_i add up to x y. So P_i
//! has z_i and z_(i+1), again a replicated sharing.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the protocols; what is kept are the keys of Shamir sharing among three |
//! | `ring.rs` | keys of neighbours, shares of zero, messages to one neighbour |
//! | `registers.rs` | planes by slot, sums of them |
//! | `lookup.rs` | the lookups of a layer together; ANDs |
//! | `multiply.rs` | products of a round: a message to one neighbour |
//! | `tower.rs` | inverses in GF(2^8): four products, of 4, 2, 4 and 8 bits |
//! | `gates.rs` | other tables: one bit an AND |
//! | `input.rs`, `shared.rs`, `output.rs` | values that go in and out |
//! | `elements.rs` | elements of GF(2^128) |
//! | `service.rs`, `client.rs`, `storage.rs`, `refresh.rs` | nodes that serve clients from what they have stored |
//! | `conversion.rs` | to Shamir sharing, without a message |
//! | `four/` | four parties: one may cheat or be gone |
//! | `garbled/` | three parties in a constant number of rounds, on the same values |
//! | `security.rs` | what differs between `passive.rs` and `active/` |
//!
//! **Adversary**: one of the three, static; the channels are private and authentic.
//!
//! * [`ReplicatedConfig`]: passive. P_i sees its own shares and z_(i+1), which contains F(k_(i+2)) under a
//!   key that P_i lacks. So every z_(i+1) is pseudorandom to it (AES-128 in counter mode, of one key a
//!   session, stream and purpose), and its view follows from its own input and output. At an output P_i
//!   receives the one share that it lacks, which follows from the value and from the shares that it has. A
//!   party that runs modified code is outside this model: it can make wrong outputs, and can extract the key.
//! * [`ReplicatedActiveConfig`]: active, with abort (`active/`).
//!
//! **Cost** of a lookup: 18 bits sent to one neighbour and four rounds for a table built on inversion; for
//! others one bit an AND and a round a level of ANDs. Planes are whole bytes: fewer than eight lanes take as
//! many bytes as eight. Memory: two bits for every bit, and in the active model what products take until they
//! are proven (`active/mod.rs`, `MAX`).

mod active;
mod client;
mod config;
mod conversion;
mod descriptor;
mod elements;
mod four;
mod garbled;
mod gates;
mod input;
mod lookup;
mod multiply;
mod output;
mod passive;
mod refresh;
mod registers;
mod ring;
mod security;
mod service;
mod shared;
mod storage;
mod tower;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};

pub use active::Active;
pub use client::Mask;
pub use config::{ReplicatedActiveConfig, ReplicatedConfig, Setup};
pub use descriptor::{ACTIVE, PASSIVE};
pub use four::{FOUR, FourRegisters, ReplicatedFour, ReplicatedFourConfig};
pub use garbled::{
    FewRounds, FewRoundsConfig, GARBLED, GarbledCircuit, GarbledRegisters, GarbledThree, GarbledThreeConfig,
};
pub use passive::Passive;
pub use registers::Registers;
pub use shared::Shared;

use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session};
use crate::interface::tally::Cost;
use crate::{Error, Result};
use gates::Programs;
use multiply::Neighbours;
use ring::{Ring, add};
use security::AdversaryModel;

/// The number of parties.
const PARTIES: usize = 3;

/// More are not worth more: a message of a round is long enough.
const LANES_AT_ONCE: usize = 4096;

/// Something for each of the two shares that a party has.
type Pair<T> = [T; 2];

/// One party in one session, against a party that only looks on or that cheats.
pub struct Replicated<A = Passive> {
    ring: Ring,
    model: A,
    programs: Programs,
}

/// Every linear map is free.
impl<A: AdversaryModel> Maps for Replicated<A> {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl<A: AdversaryModel> Replicated<A> {
    fn new(ring: Ring, model: A) -> Replicated<A> {
        Replicated { ring, model, programs: Programs::default() }
    }

    /// An error that is not the caller's leaves the parties with different memories of what they have
    /// multiplied. So nothing is proven or released after it.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.as_ref().is_err_and(|error| !matches!(error, Error::Misuse(_))) {
            self.model.give_up();
        }
        outcome
    }

    /// Shares of all inputs, which all parties see alike.
    fn share_all(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &Registers<2>,
        net: &mut dyn Net,
    ) -> Result<Vec<Shared>> {
        let mut values = Vec::with_capacity(ports.len());
        for (port, input) in ports.iter().zip(inputs) {
            values.push(self.share(port, input, registers.count(), net)?);
        }
        if !values.is_empty() {
            self.model.compare(registers, &values, &mut self.ring, net)?;
        }
        Ok(values)
    }

    /// The shares of an input.
    fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared> {
        match input {
            Input::Public(cells) => self.ring.share_public(port, cells, lanes),
            Input::Mine(cells) => self.ring.share_own(port, cells, lanes, net),
            Input::From(owner) => self.ring.receive_share(port, *owner, lanes, net),
            Input::Shared(shared) => {
                self.model.refuse_foreign(&shared.unchecked)?;
                Ok((*shared).clone())
            }
        }
    }
}

/// Nothing is made before the inputs are known.
pub struct Batch(());

impl<A: AdversaryModel> Session for Replicated<A> {
    type Shared = Shared;
    type Registers = Registers<2>;
    type Batch = Batch;
    type Released = A::Released;

    fn cost(&self, compiled: &Compiled) -> Cost {
        lookup::cost(compiled, &self.programs)
    }

    fn lanes_at_once(&self, _: &Compiled) -> usize {
        LANES_AT_ONCE
    }

    fn prepare(&mut self, _: &Compiled, _: usize, _: &mut dyn Net) -> Result<Batch> {
        Ok(Batch(()))
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch) -> Result<Registers<2>> {
        Ok(Registers::new(compiled, lanes, &self.ring.pool))
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers<2>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let values = self.share_all(ports, inputs, registers, net);
        let values = self.or_give_up(values)?;
        ports.iter().zip(&values).try_for_each(|(port, value)| value.fill_port(port, registers))
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers<2>) {
        registers.linear(maps, self.ring.share_zero());
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers<2>,
        _: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        let Replicated { ring, model, programs } = self;
        let done =
            lookup::lookup(compiled, lookups, registers, programs, &mut Neighbours { ring, model }, net);
        self.or_give_up(done)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers<2>) -> Shared {
        let mut value = Shared::of_port(port, registers);
        self.model.mark(&mut value.unchecked);
        value
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        let checked = self.model.check(&mut self.ring, net);
        self.or_give_up(checked)
    }

    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<A::Released>> {
        let shares = [0, 1].map(|share| shared.share(share));
        self.ring.counts().openings += shares[0].len() as u64;
        let verified = self.model.refuse_unverified(&shared.unchecked);
        let third = verified.and_then(|()| self.model.third_share(shares, to, &mut self.ring, net));
        let Some(third) = self.or_give_up(third)? else { return Ok(None) };
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        cells.rows_mut().copy_from_slice(&third);
        shares.into_iter().for_each(|share| add(cells.rows_mut(), share));
        Ok(Some(A::released(cells)))
    }

    crate::counted_session!(self => self.ring.phase, self.ring.tally);
}
