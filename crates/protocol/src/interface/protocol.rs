//! The interface of a protocol: one party's side of it, as [`evaluate`](crate::evaluate::evaluate) drives it.

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps};

use crate::interface::net::Net;
use crate::interface::release::Released;
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{Error, Party, PartySet, Result};

/// The source of an input port's value. All parties name the same source.
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

/// The party or parties that learn an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Every party.
    All,
    /// One party.
    Party(Party),
}

/// Which adversary a protocol tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adversary {
    /// Corrupt parties are curious, but run the program unmodified.
    Passive,
    /// Corrupt parties may do anything, but cheating ends the session: an honest party gets the right output
    /// or none.
    Abort,
    /// Corrupt parties may do anything, and honest parties still get the right output.
    GuaranteedOutput,
}

/// Faults of other parties that this party saw and that its protocol corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Parties whose messages were wrong and were outvoted. Known to this party; the others may have been
    /// told other things.
    pub outvoted: PartySet,
    /// Parties that fell silent, or broke off.
    pub silent: PartySet,
    /// Two parties that contradict each other, as all parties know: one of the two cheats or is damaged.
    pub disputed: PartySet,
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

    /// Which adversary it tolerates, provided that its material is correct.
    fn adversary(&self) -> Adversary;

    /// One sentence, shown to people, on the adversary that the protocol protects against.
    fn promise(&self) -> String;

    /// Whether an output is right for any behaviour of the other parties. It is not if they could have made
    /// the material themselves.
    fn verifies(&self) -> bool {
        self.adversary() != Adversary::Passive
    }

    /// Whether its material comes from a dealer that any party could be: then no input is safe from any
    /// party.
    fn needs_dealer(&self) -> bool {
        false
    }

    /// Adds the parameters to the terms that the parties compare.
    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters;

    /// Agrees on fresh long-lived secrets with the peers.
    fn setup(&self, net: &mut dyn Net) -> Result<Self::Setup>;

    /// Joins a session on one of its streams. Every thread takes its own stream. `serving` are the parties
    /// that take part ([`Net::members`]); all of them name the same set.
    fn join(&self, setup: &Self::Setup, stream: Stream, serving: PartySet) -> Result<Self::Session>;
}

/// This party's part of a shared value.
pub trait SharedValue: Send + Sync {
    /// This party's shares, cell by cell, as they are on its disk if it stores the value. Without the shares
    /// of other parties they are of no use.
    fn reveal_own_shares(&self) -> &[u8];
}

/// A protocol's local state for one session: long-lived keys are in its setup, shared values in banks.
///
/// All parties make the same calls in the same order with the same public arguments; the hello round
/// ([`crate::interface::session`]) has compared them. After an error the state is of no further use.
pub trait Session: Maps + Send {
    /// Shares of one port, outside of any bank; wiped on drop.
    type Shared: SharedValue;
    /// Shares of an evaluation under way, by slot; wiped on drop.
    type Registers;
    /// Material for one evaluation, handed out once.
    type Batch: Send;
    /// A revealed value: [`Unverified`](crate::interface::release::Unverified) for passive protocols.
    type Released: Released;

    /// The predicted cost of evaluating `compiled`.
    fn cost(&self, compiled: &Compiled) -> Cost;

    /// The most lanes that are worth evaluating together, for callers that can choose. It is small if shares
    /// are so large that more would not fit the processor's cache, and if nothing waits for an answer.
    fn lanes_at_once(&self, _: &Compiled) -> usize {
        usize::MAX
    }

    /// Makes the material for one evaluation. Does not depend on inputs.
    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Self::Batch>;

    /// An empty bank for the evaluation that uses this material.
    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut Self::Batch,
    ) -> Result<Self::Registers>;

    /// Fills the slots of all input ports. A protocol implements this method or [`Session::input`]: each is
    /// made of the other.
    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Self::Shared>],
        registers: &mut Self::Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        ports.iter().zip(inputs).try_for_each(|(port, input)| self.input(port, input, registers, net))
    }

    /// Fills the slots of an input port.
    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Self::Shared>,
        registers: &mut Self::Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.inputs(std::slice::from_ref(port), std::slice::from_ref(input), registers, net)
    }

    /// Applies linear maps, in order. Never communicates.
    fn linear(&mut self, maps: &[Linear], registers: &mut Self::Registers);

    /// The lookups of one layer, together.
    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Self::Registers,
        batch: &mut Self::Batch,
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Ends an evaluation, before its outputs are taken: whether they stand. If they do not, a protocol that
    /// corrects has found a fault, and the evaluation is repeated from its inputs; it goes on in another way
    /// then. A protocol that verifies before a release has nothing to do here.
    fn settle(&mut self, _: &Compiled, _: &mut Self::Registers, _: &mut dyn Net) -> Result<bool> {
        Ok(true)
    }

    /// Takes the shares of an output port out of a bank, once.
    fn output(&mut self, port: &CompiledPort, registers: &mut Self::Registers) -> Self::Shared;

    /// The lanes with these numbers as a new value, in this order and as often as they are named. With it the
    /// lanes of one circuit's output become lanes or ports of another circuit. Never communicates.
    ///
    /// # Panics
    /// If the value has no lane of such a number.
    fn select_lanes(&self, shared: &Self::Shared, lanes: &[usize]) -> Self::Shared;

    /// Verifies everything that the protocol must verify before a value is revealed; once per release.
    /// Passive protocols have nothing to verify.
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

    /// The faults of others that it has seen, if the protocol continues despite faults.
    fn faults(&self) -> Faults {
        Faults::default()
    }
}

/// Refuses cells that are not those of a port in this many lanes.
pub fn check_cells(port: &CompiledPort, cells: &Cells, lanes: usize) -> Result<()> {
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

/// [`Session::enter`] and [`Session::tally`] of a protocol that keeps the phase and the counts in these
/// fields.
#[macro_export]
macro_rules! counted_session {
    ($this:ident => $phase:expr, $tally:expr) => {
        fn enter(&mut $this, phase: $crate::tally::Phase) {
            $phase = phase;
        }

        fn tally(&$this) -> $crate::tally::Tally {
            $tally
        }
    };
}
