//! Handles to a protocol and to a session of it, for evaluating circuits.

use std::convert::identity;

use polyclave_cipher::{Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};

use super::values::{AnyBatch, AnyRegisters, AnyReleased, AnySetup, AnyShared};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, Faults, Input, Owner, ProtocolConfig, Session};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{PartySet, Result};

/// A protocol with its parameters: a handle to what implements [`ProtocolConfig`].
pub struct AnyProtocolConfig(Box<dyn ProtocolConfig<Setup = AnySetup, Session = AnySession> + Send>);

impl AnyProtocolConfig {
    /// A handle to a protocol.
    pub fn new<S>(config: S) -> AnyProtocolConfig
    where
        S: ProtocolConfig<Setup: 'static, Session: Erasable> + Send + 'static,
    {
        let handle: fn(S::Session) -> AnySession = |session| Handle(Box::new(session));
        AnyProtocolConfig(Box::new(Erased { config, handle }))
    }
}

/// A party in a session.
pub type AnySession = Handle<dyn ErasedSession>;

/// A party in a session, as far as the trait `D` knows it.
pub struct Handle<D: ?Sized>(pub(super) Box<D>);

/// A [`Session`] that owns all it works with, as all of them do.
pub trait Erasable: Session<Shared: 'static, Registers: 'static, Batch: 'static> + 'static {}

impl<P: Session<Shared: 'static, Registers: 'static, Batch: 'static> + 'static> Erasable for P {}

/// A protocol whose setups and sessions are handles.
pub(super) struct Erased<S: ProtocolConfig, D: ?Sized> {
    pub(super) config: S,
    /// Hides the type of a session.
    pub(super) handle: fn(S::Session) -> Handle<D>,
}

/// [`ProtocolConfig`] with handles, by what is at `$inner`: `$of` is applied to a setup that is given,
/// `$made` to one that is made, and `$joined` to a session.
macro_rules! protocol_config {
    ($this:ident => $inner:expr; $session:ty; $of:expr, $made:expr, $joined:expr) => {
        type Setup = AnySetup;
        type Session = $session;

        fn name(&$this) -> &'static str {
            $inner.name()
        }

        fn parties(&$this) -> usize {
            $inner.parties()
        }

        fn adversary(&$this) -> Adversary {
            $inner.adversary()
        }

        fn promise(&$this) -> String {
            $inner.promise()
        }

        fn verifies(&$this) -> bool {
            $inner.verifies()
        }

        fn needs_dealer(&$this) -> bool {
            $inner.needs_dealer()
        }

        fn handshake(&$this, parameters: HandshakeParameters) -> HandshakeParameters {
            $inner.handshake(parameters)
        }

        fn setup(&$this, net: &mut dyn Net) -> Result<AnySetup> {
            $inner.setup(net).map($made)
        }

        fn join(&$this, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<$session> {
            $inner.join($of(setup), stream, serving).map($joined)
        }
    };
}
pub(super) use protocol_config;

impl<S, D> ProtocolConfig for Erased<S, D>
where
    S: ProtocolConfig<Setup: 'static>,
    D: ErasedSession + ?Sized,
{
    protocol_config!(self => self.config; Handle<D>; AnySetup::of, AnySetup::new, self.handle);
}

impl ProtocolConfig for AnyProtocolConfig {
    protocol_config!(self => self.0; AnySession; identity, identity, identity);
}

/// [`Session`] with handles in place of types. See there for what the methods do.
pub trait ErasedSession: Maps + Send {
    /// See [`Session::cost`].
    fn erased_cost(&self, compiled: &Compiled) -> Cost;
    /// See [`Session::lanes_at_once`].
    fn erased_lanes_at_once(&self, compiled: &Compiled) -> usize;
    /// See [`Session::prepare`].
    fn erased_prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<AnyBatch>;
    /// See [`Session::registers`].
    fn erased_bank(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut AnyBatch,
    ) -> Result<AnyRegisters>;
    /// See [`Session::inputs`].
    fn erased_inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, AnyShared>],
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<()>;
    /// See [`Session::linear`].
    fn erased_linear(&mut self, maps: &[Linear], registers: &mut AnyRegisters);
    /// See [`Session::lookup`].
    fn erased_lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut AnyRegisters,
        batch: &mut AnyBatch,
        net: &mut dyn Net,
    ) -> Result<()>;
    /// See [`Session::settle`].
    fn erased_settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<bool>;
    /// See [`Session::output`].
    fn erased_output(&mut self, port: &CompiledPort, registers: &mut AnyRegisters) -> AnyShared;
    /// See [`Session::select_lanes`].
    fn erased_select_lanes(&self, shared: &AnyShared, lanes: &[usize]) -> AnyShared;
    /// See [`Session::check`].
    fn erased_check(&mut self, net: &mut dyn Net) -> Result<()>;
    /// See [`Session::release`].
    fn erased_release(
        &mut self,
        shared: &AnyShared,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<AnyReleased>>;
    /// See [`Session::enter`].
    fn erased_enter(&mut self, phase: Phase);
    /// See [`Session::tally`].
    fn erased_tally(&self) -> Tally;
    /// See [`Session::faults`].
    fn erased_faults(&self) -> Faults;
}

impl<P: Erasable> ErasedSession for P {
    fn erased_cost(&self, compiled: &Compiled) -> Cost {
        self.cost(compiled)
    }

    fn erased_lanes_at_once(&self, compiled: &Compiled) -> usize {
        self.lanes_at_once(compiled)
    }

    fn erased_prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<AnyBatch> {
        self.prepare(compiled, lanes, net).map(AnyBatch::new)
    }

    fn erased_bank(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut AnyBatch,
    ) -> Result<AnyRegisters> {
        self.registers(compiled, lanes, batch.of()).map(AnyRegisters::new)
    }

    fn erased_inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, AnyShared>],
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        let typed: Vec<Input<'_, P::Shared>> = inputs
            .iter()
            .map(|input| match input {
                Input::Public(cells) => Input::Public(cells),
                Input::Mine(cells) => Input::Mine(cells),
                Input::From(party) => Input::From(*party),
                Input::Shared(shared) => Input::Shared(shared.of()),
            })
            .collect();
        self.inputs(ports, &typed, registers.of(), net)
    }

    fn erased_linear(&mut self, maps: &[Linear], registers: &mut AnyRegisters) {
        self.linear(maps, registers.of());
    }

    fn erased_lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut AnyRegisters,
        batch: &mut AnyBatch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.lookup(compiled, lookups, registers.of(), batch.of(), net)
    }

    fn erased_settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        self.settle(compiled, registers.of(), net)
    }

    fn erased_output(&mut self, port: &CompiledPort, registers: &mut AnyRegisters) -> AnyShared {
        AnyShared::new(self.output(port, registers.of()))
    }

    fn erased_select_lanes(&self, shared: &AnyShared, lanes: &[usize]) -> AnyShared {
        AnyShared::new(self.select_lanes(shared.of(), lanes))
    }

    fn erased_check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.check(net)
    }

    fn erased_release(
        &mut self,
        shared: &AnyShared,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<AnyReleased>> {
        Ok(self.release(shared.of(), to, net)?.map(AnyReleased::new))
    }

    fn erased_enter(&mut self, phase: Phase) {
        self.enter(phase);
    }

    fn erased_tally(&self) -> Tally {
        self.tally()
    }

    fn erased_faults(&self) -> Faults {
        self.faults()
    }
}

impl<D: ErasedSession + ?Sized> Maps for Handle<D> {
    fn is_local(&self, m: &Matrix) -> bool {
        self.0.is_local(m)
    }

    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        self.0.split(m)
    }

    fn pays_for_views(&self) -> bool {
        self.0.pays_for_views()
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        self.0.wants(table)
    }

    fn has_another_way(&self, circuit: &[u8; 32]) -> bool {
        self.0.has_another_way(circuit)
    }
}

impl<D: ErasedSession + ?Sized> Session for Handle<D> {
    type Shared = AnyShared;
    type Registers = AnyRegisters;
    type Batch = AnyBatch;
    type Released = AnyReleased;

    fn cost(&self, compiled: &Compiled) -> Cost {
        self.0.erased_cost(compiled)
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        self.0.erased_lanes_at_once(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<AnyBatch> {
        self.0.erased_prepare(compiled, lanes, net)
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, batch: &mut AnyBatch) -> Result<AnyRegisters> {
        self.0.erased_bank(compiled, lanes, batch)
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, AnyShared>],
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.0.erased_inputs(ports, inputs, registers, net)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut AnyRegisters) {
        self.0.erased_linear(maps, registers);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut AnyRegisters,
        batch: &mut AnyBatch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.0.erased_lookup(compiled, lookups, registers, batch, net)
    }

    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        self.0.erased_settle(compiled, registers, net)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut AnyRegisters) -> AnyShared {
        self.0.erased_output(port, registers)
    }

    fn select_lanes(&self, shared: &AnyShared, lanes: &[usize]) -> AnyShared {
        self.0.erased_select_lanes(shared, lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.0.erased_check(net)
    }

    fn release(&mut self, shared: &AnyShared, to: Owner, net: &mut dyn Net) -> Result<Option<AnyReleased>> {
        self.0.erased_release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.0.erased_enter(phase);
    }

    fn tally(&self) -> Tally {
        self.0.erased_tally()
    }

    fn faults(&self) -> Faults {
        self.0.erased_faults()
    }
}
