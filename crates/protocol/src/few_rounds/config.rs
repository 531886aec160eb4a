//! The protocol as nodes configure it: that of rounds, and circuits on its values.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::kept::Kept;
use super::{FewRounds, Garbles};
use crate::interface::any::AnyServiceConfig;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::service::{Element, Refreshed, ServiceConfig, Sharing, Stored};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::{Kind, Purpose, Stock};
use crate::{Error, GuessGuard, Party, PartySet, Result};

/// Garbled circuits on the values of a protocol that nodes serve with, with their parameters.
pub trait GarblesConfig: Send + Sync + 'static {
    /// The protocol whose values go in and out.
    type Rounds: ServiceConfig;
    /// A session of both.
    type Session: Garbles<Rounds = <Self::Rounds as ProtocolConfig>::Session>;
    /// What a session takes of the setup besides that protocol's session.
    type Part;

    /// Bytes of a party's part of a circuit in stock.
    fn item_bytes(&self, kept: &Kept, party: Party) -> usize;

    /// What a session takes of the setup. Only a session that makes circuits can make some.
    fn part(
        &self,
        setup: &<Self::Rounds as ProtocolConfig>::Setup,
        stream: &Stream,
        makes: bool,
    ) -> Result<Self::Part>;

    /// A session of both.
    fn join(&self, part: Self::Part, rounds: <Self::Rounds as ProtocolConfig>::Session) -> Self::Session;
}

type Setup<G> = <<G as GarblesConfig>::Rounds as ProtocolConfig>::Setup;

/// A protocol, with garbled circuits from a stock.
pub struct FewRoundsConfig<G: GarblesConfig> {
    rounds: G::Rounds,
    circuits: G,
}

impl<G: GarblesConfig> FewRoundsConfig<G> {
    /// Both have the same setup and values.
    pub fn new(rounds: G::Rounds, circuits: G) -> Self {
        FewRoundsConfig { rounds, circuits }
    }

    fn kept_of(&self, kind: &Kind, party: Party) -> Result<&'static Kept> {
        let kept = Kept::all().iter().find(|kept| self.kind(kept, party) == *kind);
        kept.ok_or_else(|| Error::misuse(format!("{} are not made here", kind.name)))
    }

    fn kind(&self, kept: &Kept, party: Party) -> Kind {
        kept.kind(self.circuits.item_bytes(kept, party))
    }
}

impl<G: GarblesConfig> ProtocolConfig for FewRoundsConfig<G> {
    type Setup = Setup<G>;
    type Session = FewRounds<G::Session>;

    fn name(&self) -> &'static str {
        self.rounds.name()
    }

    fn parties(&self) -> usize {
        self.rounds.parties()
    }

    fn adversary(&self) -> Adversary {
        self.rounds.adversary()
    }

    fn promise(&self) -> String {
        self.rounds.promise()
    }

    fn verifies(&self) -> bool {
        self.rounds.verifies()
    }

    fn needs_dealer(&self) -> bool {
        self.rounds.needs_dealer()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.rounds.handshake(parameters)
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup<G>> {
        self.rounds.setup(net)
    }

    fn join(&self, setup: &Setup<G>, stream: Stream, serving: PartySet) -> Result<FewRounds<G::Session>> {
        let part = self.circuits.part(setup, &stream, true)?;
        Ok(FewRounds::new(self.circuits.join(part, self.rounds.join(setup, stream, serving)?), None))
    }
}

impl<G: GarblesConfig> ServiceConfig for FewRoundsConfig<G> {
    fn quorum(&self) -> usize {
        self.rounds.quorum()
    }

    fn save_setup(&self, setup: &Setup<G>) -> Zeroizing<Vec<u8>> {
        self.rounds.save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup<G>> {
        self.rounds.restore_setup(me, bytes)
    }

    fn renew(&self, setup: &Setup<G>, net: &mut dyn Net) -> Result<Setup<G>> {
        self.rounds.renew(setup, net)
    }

    fn has_mac_key(&self) -> bool {
        self.rounds.has_mac_key()
    }

    fn guard_guesses(&self, setup: &Setup<G>, guard: Arc<dyn GuessGuard>) {
        self.rounds.guard_guesses(setup, guard);
    }

    fn kinds(&self, me: Party) -> Vec<Kind> {
        let of_circuits = Kept::all().iter().map(|kept| self.kind(kept, me));
        self.rounds.kinds(me).into_iter().chain(of_circuits).collect()
    }

    /// Nobody waits for circuits.
    fn keeps_stock(&self) -> bool {
        self.rounds.keeps_stock()
    }

    fn make_material(
        &self,
        setup: &Setup<G>,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if kind.purpose != Purpose::Circuits {
            return self.rounds.make_material(setup, stream, kind, count, net);
        }
        let kept = self.kept_of(kind, net.me())?;
        self.join(setup, stream, net.members())?.make_circuits(kept, (kind, count), net)
    }

    fn join_stocked(
        &self,
        setup: &Setup<G>,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<FewRounds<G::Session>> {
        let part = self.circuits.part(setup, &stream, false)?;
        let rounds = self.rounds.join_stocked(setup, stream, serving, stock.clone())?;
        Ok(FewRounds::new(self.circuits.join(part, rounds), Some(stock)))
    }

    fn refresh(
        &self,
        old: &Setup<G>,
        new: &Setup<G>,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        self.rounds.refresh(old, new, stream, stored, net)
    }

    fn for_many(&self) -> Option<AnyServiceConfig> {
        self.rounds.for_many()
    }

    fn sharing(&self) -> Option<Sharing> {
        self.rounds.sharing()
    }

    fn components(&self) -> Vec<PartySet> {
        self.rounds.components()
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.rounds.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.rounds.combine_elements(serving, messages)
    }
}
