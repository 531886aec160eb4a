//! The steps from an address to a network: bind a port, tell the other parties where it is, join them.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use polyclave_protocol::{Error, Party, Result};
use rustls::pki_types::CertificateDer;

use crate::dial::Patience;
use crate::greeting::Terms;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::listen::listen;
use crate::meter::WireMeter;
use crate::net::TlsNet;
use crate::node::Node;
use crate::session::{Session, Setup};

/// Where a party listens, and its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// `host:port`.
    pub address: String,
    /// The exact certificate, see [`Identity::certificate`].
    pub certificate: CertificateDer<'static>,
}

/// A party's place on the network before a session. It listens from the start, so that its port can be told
/// to others.
pub struct Endpoint {
    listener: TcpListener,
    local_addr: SocketAddr,
    identity: Identity,
    limits: Limits,
    meter: Arc<WireMeter>,
}

impl Endpoint {
    /// Listens on `address`; port 0 takes a free one.
    pub fn bind(address: impl ToSocketAddrs, identity: Identity, limits: Limits) -> Result<Endpoint> {
        limits.check()?;
        let (listener, local_addr) = listen(address)?;
        Ok(Endpoint { listener, local_addr, identity, limits, meter: Arc::default() })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The certificate, by which the peers recognise this party.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.identity.certificate()
    }

    /// Bytes on the wire, of all streams that this endpoint opens.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.meter.clone()
    }

    /// Connects with all other parties. `parties` lists all of them, this one included, in the same order at
    /// every party. The party with the lower number calls the other.
    pub fn join(self, me: Party, parties: &[PeerAddress]) -> Result<TlsNet> {
        if !(2..=usize::from(u8::MAX)).contains(&parties.len()) {
            return Err(Error::misuse(format!("a session of {} parties; it takes 2 to 255", parties.len())));
        }
        let node = |peer: &PeerAddress| Node {
            address: peer.address.clone(),
            certificates: vec![peer.certificate.clone()],
        };
        let nodes: Vec<Node> = parties.iter().map(node).collect();
        let setup = Setup {
            identity: &self.identity,
            limits: self.limits,
            me,
            nodes: &nodes,
            terms: Terms::session(&self.limits, parties.iter().map(|peer| &peer.certificate)),
            patience: Patience::Session,
            keep: None,
            meter: self.meter,
        };
        let (session, acceptor) = Session::start(self.listener, setup)?;
        TlsNet::join(session, acceptor)
    }
}
