//! A handle to a protocol with which nodes can serve.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::engine::{ErasedConfig, Handle};
use super::service_session::{AnyServiceSession, ErasableService};
use super::values::AnySetup;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::service::{Carried, Element, ServiceConfig, Sharing, Stored};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::{Kind, Stock};
use crate::{GuessGuard, Party, PartySet, Result};

/// A protocol with its parameters that nodes serve with.
pub struct AnyServiceConfig(Box<dyn ErasedServiceConfig>);

impl AnyServiceConfig {
    /// A handle to a protocol.
    pub fn new<S>(config: S) -> AnyServiceConfig
    where
        S: ServiceConfig<Setup: 'static, Session: ErasableService>,
    {
        AnyServiceConfig(Box::new(config))
    }
}

trait ErasedServiceConfig: ErasedConfig {
    fn quorum(&self) -> usize;
    fn save_setup(&self, setup: &AnySetup) -> Zeroizing<Vec<u8>>;
    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<AnySetup>;
    fn renew(&self, setup: &AnySetup, net: &mut dyn Net) -> Result<AnySetup>;
    fn kinds(&self) -> Vec<Kind>;
    fn keeps_stock(&self) -> bool;
    fn has_mac_key(&self) -> bool;
    fn guard_guesses(&self, setup: &AnySetup, guard: Arc<dyn GuessGuard>);
    fn make_material(
        &self,
        setup: &AnySetup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>>;
    fn join_serving(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnyServiceSession>;
    fn join_stocked(
        &self,
        setup: &AnySetup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<AnyServiceSession>;
    fn carry_over(
        &self,
        old: &AnySetup,
        new: &AnySetup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Carried>;
    fn for_many(&self) -> Option<AnyServiceConfig>;
    fn sharing(&self) -> Option<Sharing>;
    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>>;
    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>>;
}

impl<S: ServiceConfig<Setup: 'static, Session: ErasableService>> ErasedServiceConfig for S {
    fn quorum(&self) -> usize {
        ServiceConfig::quorum(self)
    }

    fn save_setup(&self, setup: &AnySetup) -> Zeroizing<Vec<u8>> {
        ServiceConfig::save_setup(self, setup.of())
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<AnySetup> {
        ServiceConfig::restore_setup(self, me, bytes).map(AnySetup::new)
    }

    fn renew(&self, setup: &AnySetup, net: &mut dyn Net) -> Result<AnySetup> {
        ServiceConfig::renew(self, setup.of(), net).map(AnySetup::new)
    }

    fn kinds(&self) -> Vec<Kind> {
        ServiceConfig::kinds(self)
    }

    fn keeps_stock(&self) -> bool {
        ServiceConfig::keeps_stock(self)
    }

    fn has_mac_key(&self) -> bool {
        ServiceConfig::has_mac_key(self)
    }

    fn guard_guesses(&self, setup: &AnySetup, guard: Arc<dyn GuessGuard>) {
        ServiceConfig::guard_guesses(self, setup.of(), guard);
    }

    fn make_material(
        &self,
        setup: &AnySetup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        ServiceConfig::make_material(self, setup.of(), stream, kind, count, net)
    }

    fn join_serving(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnyServiceSession> {
        Ok(Handle(Box::new(ProtocolConfig::join(self, setup.of(), stream, serving)?)))
    }

    fn join_stocked(
        &self,
        setup: &AnySetup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<AnyServiceSession> {
        Ok(Handle(Box::new(ServiceConfig::join_stocked(self, setup.of(), stream, serving, stock)?)))
    }

    fn carry_over(
        &self,
        old: &AnySetup,
        new: &AnySetup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Carried> {
        ServiceConfig::carry_over(self, old.of(), new.of(), stream, stored, net)
    }

    fn for_many(&self) -> Option<AnyServiceConfig> {
        ServiceConfig::for_many(self)
    }

    fn sharing(&self) -> Option<Sharing> {
        ServiceConfig::sharing(self)
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        ServiceConfig::combine(self, serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        ServiceConfig::combine_elements(self, serving, messages)
    }
}

impl ProtocolConfig for AnyServiceConfig {
    type Setup = AnySetup;
    type Session = AnyServiceSession;

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

    fn join(&self, setup: &AnySetup, stream: Stream, serving: PartySet) -> Result<AnyServiceSession> {
        self.0.join_serving(setup, stream, serving)
    }
}

impl ServiceConfig for AnyServiceConfig {
    fn quorum(&self) -> usize {
        self.0.quorum()
    }

    fn save_setup(&self, setup: &AnySetup) -> Zeroizing<Vec<u8>> {
        self.0.save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<AnySetup> {
        self.0.restore_setup(me, bytes)
    }

    fn renew(&self, setup: &AnySetup, net: &mut dyn Net) -> Result<AnySetup> {
        self.0.renew(setup, net)
    }

    fn kinds(&self) -> Vec<Kind> {
        self.0.kinds()
    }

    fn keeps_stock(&self) -> bool {
        self.0.keeps_stock()
    }

    fn has_mac_key(&self) -> bool {
        self.0.has_mac_key()
    }

    fn guard_guesses(&self, setup: &AnySetup, guard: Arc<dyn GuessGuard>) {
        self.0.guard_guesses(setup, guard);
    }

    fn make_material(
        &self,
        setup: &AnySetup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.0.make_material(setup, stream, kind, count, net)
    }

    fn join_stocked(
        &self,
        setup: &AnySetup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<AnyServiceSession> {
        self.0.join_stocked(setup, stream, serving, stock)
    }

    fn carry_over(
        &self,
        old: &AnySetup,
        new: &AnySetup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Carried> {
        self.0.carry_over(old, new, stream, stored, net)
    }

    fn for_many(&self) -> Option<AnyServiceConfig> {
        self.0.for_many()
    }

    fn sharing(&self) -> Option<Sharing> {
        self.0.sharing()
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.0.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.0.combine_elements(serving, messages)
    }
}
