//! Handles to a protocol and to a session of it, for evaluating circuits.

use polyclave_cipher::{Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};

use super::values::{AnyBatch, AnyRegisters, AnyReleased, AnySetup, AnyShared};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, Faults, Input, Owner, ProtocolConfig, Session};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{PartySet, Result};

/// A protocol with its parameters.
pub struct AnyProtocolConfig(Box<dyn ErasedConfig>);

impl AnyProtocolConfig {
    /// A handle to a protocol.
    pub fn new<S>(config: S) -> AnyProtocolConfig
    where
        S: ProtocolConfig<Setup: 'static, Session: Erasable> + Send + 'static,
    {
        AnyProtocolConfig(Box::new(config))
    }
}

/// A party in a session.
pub type AnySession = Handle<dyn ErasedSession>;

/// A party in a session, as far as the trait `D` knows it.
pub struct Handle<D: ?Sized>(pub(super) Box<D>);

/// A [`Session`] that owns all it works with, as all of them do.
pub trait Erasable: Session<Shared: 'static, Registers: 'static, Batch: 'static> + 'static {}

impl<P: Session<Shared: 'static, Registers: 'static, Batch: 'static> + 'static> Erasable for P {}

pub(super) trait ErasedConfig: Send + Sync {
    fn name(&self) -> &'static str;
    fn parties(&self) -> usize;
    fn adversary(&self) -> Adversary;
    fn promise(&self) -> String;
    fn verifies(&self) -> bool;
    fn needs_dealer(&self) -> bool;
    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters;
    fn set_up(&self, net: &mut dyn Net) -> Result<AnySetup>;
    fn join(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnySession>;
}

impl<S: ProtocolConfig<Setup: 'static, Session: Erasable> + Send> ErasedConfig for S {
    fn name(&self) -> &'static str {
        ProtocolConfig::name(self)
    }

    fn parties(&self) -> usize {
        ProtocolConfig::parties(self)
    }

    fn adversary(&self) -> Adversary {
        ProtocolConfig::adversary(self)
    }

    fn promise(&self) -> String {
        ProtocolConfig::promise(self)
    }

    fn verifies(&self) -> bool {
        ProtocolConfig::verifies(self)
    }

    fn needs_dealer(&self) -> bool {
        ProtocolConfig::needs_dealer(self)
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        ProtocolConfig::handshake(self, parameters)
    }

    fn set_up(&self, net: &mut dyn Net) -> Result<AnySetup> {
        ProtocolConfig::set_up(self, net).map(AnySetup::new)
    }

    fn join(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnySession> {
        Ok(Handle(Box::new(ProtocolConfig::join(self, setup.of(), stream, serving)?)))
    }
}

impl ProtocolConfig for AnyProtocolConfig {
    type Setup = AnySetup;
    type Session = AnySession;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn parties(&self) -> usize {
        self.0.parties()
    }

    fn adversary(&self) -> Adversary {
        self.0.adversary()
    }

    fn promise(&self) -> String {
        self.0.promise()
    }

    fn verifies(&self) -> bool {
        self.0.verifies()
    }

    fn needs_dealer(&self) -> bool {
        self.0.needs_dealer()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.0.handshake(parameters)
    }

    fn set_up(&self, net: &mut dyn Net) -> Result<AnySetup> {
        self.0.set_up(net)
    }

    fn join(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnySession> {
        self.0.join(setup, stream, serving)
    }
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

    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, AnyShared>,
        registers: &mut AnyRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.0.erased_inputs(std::slice::from_ref(port), std::slice::from_ref(input), registers, net)
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
