//! One party's side of one protocol, as [`evaluate`](crate::evaluate::evaluate) drives it.

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps};

use crate::net::Net;
use crate::release::Released;
use crate::session::{HandshakeParameters, Stream};
use crate::tally::{Cost, Phase, Tally};
use crate::{Error, Party, PartySet, Result};

/// Where the value of an input port comes from. All parties name the same source.
pub enum Input<'a, S> {
    /// All parties know it.
    Public(&'a Cells),
    /// This party gives it.
    Mine(&'a Cells),
    /// Another party gives it.
    From(Party),
    /// It is shared already.
    Shared(&'a S),
}

/// Who learns an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Every party.
    All,
    /// One party.
    Party(Party),
}

/// Which cheating a protocol withstands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adversary {
    /// None: corrupted parties are curious, and run the program as it is.
    Passive,
    /// Any, and it ends the session: an honest party has the right output or none.
    Abort,
    /// Any, and honest parties have the right output all the same.
    GuaranteedOutput,
}

/// What one party has seen of others' faults that its protocol made up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Parties whose messages were wrong and were outvoted. Known to this party; the others may have been told other things.
    pub outvoted: PartySet,
    /// Parties that fell silent, or broke off.
    pub silent: PartySet,
}

/// A protocol with its parameters, before any session: what all parties are started with.
pub trait ProtocolConfig: Sync {
    /// What a party keeps from session to session.
    type Setup: Send + Sync;
    /// A party in a session.
    type Session: Session;

    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// Number of parties.
    fn parties(&self) -> usize;

    /// Which cheating it withstands, with material that is what it should be.
    fn adversary(&self) -> Adversary;

    /// One sentence on whom it protects against: shown to people.
    fn promise(&self) -> String;

    /// Whether an output is right whatever the other parties do. Not with material that they could have made themselves.
    fn verifies(&self) -> bool {
        self.adversary() != Adversary::Passive
    }

    /// Whether its material comes from a dealer that any party could be: then no input is safe from any party.
    fn needs_dealer(&self) -> bool {
        false
    }

    /// Adds the parameters to the terms that the parties compare.
    fn terms(&self, terms: HandshakeParameters) -> HandshakeParameters;

    /// Agrees on fresh long-lived secrets with the peers.
    fn set_up(&self, net: &mut dyn Net) -> Result<Self::Setup>;

    /// Joins a session on one of its streams; every thread takes its own. `serving` are the parties that take part
    /// ([`Net::members`]): the same at all of them.
    fn join(&self, setup: &Self::Setup, stream: Stream, serving: PartySet) -> Result<Self::Session>;
}

/// A value of which this party has its part.
pub trait SharedValue: Send + Sync {
    /// This party's shares, cell by cell: what lies on its disk if it stores the value. Of no use without those of other
    /// parties.
    fn reveal_own_shares(&self) -> &[u8];
}

/// A protocol's local state for one session: long-lived keys are in its setup, shared values in banks.
///
/// All parties make the same calls in the same order with the same public arguments; the hello round
/// ([`crate::session`]) has compared them. After an error the state is of no further use.
pub trait Session: Maps + Send {
    /// Shares of one port, outside of any bank; wiped on drop.
    type Shared: SharedValue;
    /// Shares of an evaluation under way, by slot; wiped on drop.
    type Registers;
    /// Material for one evaluation, handed out once.
    type Batch: Send;
    /// A revealed value: [`Unverified`](crate::release::Unverified) for passive protocols.
    type Released: Released;

    /// What evaluating `compiled` will take, by the protocol's own arithmetic.
    fn cost(&self, compiled: &Compiled) -> Cost;

    /// The most lanes worth evaluating together, for whoever has the choice. Fewer where shares are so large that more would not
    /// stay near the processor, and nothing waits for an answer.
    fn lanes_at_once(&self, _: &Compiled) -> usize {
        usize::MAX
    }

    /// Makes the material for one evaluation. Does not depend on inputs.
    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Self::Batch>;

    /// An empty bank for the evaluation that uses this material.
    fn bank(&mut self, compiled: &Compiled, lanes: usize, batch: &mut Self::Batch)
    -> Result<Self::Registers>;

    /// Fills the slots of all input ports.
    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Self::Shared>],
        bank: &mut Self::Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        ports.iter().zip(inputs).try_for_each(|(port, input)| self.input(port, input, bank, net))
    }

    /// Fills the slots of an input port.
    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Self::Shared>,
        bank: &mut Self::Registers,
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Local maps, in order. Never talks.
    fn linear(&mut self, maps: &[Linear], bank: &mut Self::Registers);

    /// The lookups of one layer, together.
    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        bank: &mut Self::Registers,
        batch: &mut Self::Batch,
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Takes the shares of an output port out of a bank, once.
    fn output(&mut self, port: &CompiledPort, bank: &mut Self::Registers) -> Self::Shared;

    /// The lanes of these numbers, in this order and as often as they are named, as a value of their own: so that what one
    /// circuit put out in its lanes goes into the lanes or the ports of another. Never talks.
    ///
    /// # Panics
    /// If the value has no lane of such a number.
    fn select_lanes(&self, shared: &Self::Shared, lanes: &[usize]) -> Self::Shared;

    /// Whatever the protocol must verify before anything is revealed; once per release. Passive protocols have
    /// nothing to verify.
    fn check(&mut self, net: &mut dyn Net) -> Result<()>;

    /// Reveals a shared value to its owner, after [`check`](Session::check). `None` for everybody else.
    fn release(
        &mut self,
        shared: &Self::Shared,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Self::Released>>;

    /// Says which part of the session follows, for the counts.
    fn enter(&mut self, phase: Phase);

    /// What this party has done so far.
    fn tally(&self) -> Tally;

    /// What it has seen of others' faults, where the protocol goes on in spite of them.
    fn faults(&self) -> Faults {
        Faults::default()
    }
}

/// Refuses cells that are not those of a port in so many lanes.
pub(crate) fn check_cells(port: &CompiledPort, cells: &Cells, lanes: usize) -> Result<()> {
    let lanes = if port.uniform { 1 } else { lanes };
    if (cells.count(), cells.bits(), cells.lanes()) == (port.cells.len(), port.bits, lanes) {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "input {} takes {} cells of {} bits in {lanes} lanes, not {} of {} bits in {}",
        port.name,
        port.cells.len(),
        port.bits,
        cells.count(),
        cells.bits(),
        cells.lanes()
    )))
}
