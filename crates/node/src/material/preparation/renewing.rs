//! A test protocol: Shamir sharing that claims to need renewal and material, and fails where a test wants it
//! to.

use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, Faults, ProtocolConfig};
use polyclave_protocol::service::{Element, Refreshed, ServiceConfig, Stored};
use polyclave_protocol::session::{HandshakeParameters, Stream};
use polyclave_protocol::shamir::{Inversion, Setup, Shamir, ShamirConfig, Structure, Tables};
use polyclave_protocol::stock::{Kind, Purpose, Stock};
use polyclave_protocol::{Error, Party, PartySet, Result, coins};
use zeroize::Zeroizing;

/// The one kind of material.
pub(super) const KIND: Kind =
    Kind { name: "tables of 8 bits", purpose: Purpose::Tables(8), item_bytes: 8, per_block: 10 };

/// The places where a node may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Renewal,
    Filling,
    Request,
    Refreshing,
}

/// The next failure of a node. It happens once.
#[derive(Clone, Default)]
pub(super) struct Fault(Arc<Mutex<Option<(Place, Error)>>>);

impl Fault {
    pub(super) fn set(&self, place: Place, error: Error) {
        *self.0.lock() = Some((place, error));
    }

    /// Whether the failure has happened.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_none()
    }

    fn strike(&self, here: Place) -> Result<()> {
        match self.0.lock().take_if(|(place, _)| *place == here) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

pub(super) struct Renewing {
    inner: ShamirConfig,
    fault: Fault,
}

impl Renewing {
    pub(super) fn new(nodes: usize, fault: Fault) -> Renewing {
        let structure = Structure::new(nodes, 1).expect("a structure");
        let inner = ShamirConfig { structure, inversion: Inversion::CarriedSquares, tables: Tables::Masked };
        Renewing { inner, fault }
    }
}

impl ProtocolConfig for Renewing {
    type Setup = Setup;
    type Session = Shamir;

    fn name(&self) -> &'static str {
        "renewing"
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn adversary(&self) -> Adversary {
        Adversary::Abort
    }

    fn promise(&self) -> String {
        "a test".into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.inner.handshake(parameters)
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        self.inner.setup(net)
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Shamir> {
        self.inner.join(setup, stream, serving)
    }
}

impl ServiceConfig for Renewing {
    fn quorum(&self) -> usize {
        self.inner.quorum()
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        self.inner.save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        self.inner.restore_setup(me, bytes)
    }

    fn has_mac_key(&self) -> bool {
        true
    }

    fn renew(&self, setup: &Setup, net: &mut dyn Net) -> Result<Setup> {
        self.fault.strike(Place::Renewal)?;
        coins::toss(b"renewal", net)?;
        self.inner.restore_setup(net.me(), &self.inner.save_setup(setup))
    }

    fn kinds(&self, _: Party) -> Vec<Kind> {
        vec![KIND]
    }

    fn make_material(
        &self,
        _setup: &Setup,
        _stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.fault.strike(Place::Filling)?;
        coins::toss(b"material", net)?;
        Ok(Zeroizing::new(vec![7; count * kind.item_bytes]))
    }

    fn join_stocked(
        &self,
        setup: &Setup,
        stream: Stream,
        serving: PartySet,
        _stock: Arc<dyn Stock>,
    ) -> Result<Shamir> {
        self.fault.strike(Place::Request)?;
        self.inner.join(setup, stream, serving)
    }

    fn refresh(
        &self,
        _old: &Setup,
        _new: &Setup,
        _stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        self.fault.strike(Place::Refreshing)?;
        coins::toss(b"carrying over", net)?;
        let same = |stored: &Stored<'_>| {
            let (Stored::Value(bytes) | Stored::Elements(bytes)) = stored;
            Zeroizing::new(bytes.to_vec())
        };
        Ok(Refreshed { stored: stored.iter().map(same).collect(), faults: Faults::default() })
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.inner.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.inner.combine_elements(serving, messages)
    }
}
