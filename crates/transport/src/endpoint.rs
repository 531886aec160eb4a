//! From an address to a network: bind, tell the others where, join.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use polyclave_protocol::{Error, Party, Result};
use rustls::pki_types::CertificateDer;

use crate::accept::Acceptor;
use crate::arrival::Door;
use crate::dial::Dialer;
use crate::greeting::Terms;
use crate::limits::Limits;
use crate::meter::WireMeter;
use crate::net::TlsNet;
use crate::session::Session;
use crate::switchboard::Switchboard;
use crate::tls::Identity;

/// Where a party listens and what it identifies itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// `host:port`.
    pub address: String,
    /// The exact certificate, see [`Identity::certificate`].
    pub certificate: CertificateDer<'static>,
}

/// A party's place on the network before a session. Listens from the start, so that its port can be told to others.
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
        let addresses = address.to_socket_addrs();
        let addresses: Vec<_> =
            addresses.map_err(|e| Error::misuse(format!("no address to listen on: {e}")))?.collect();
        let listener = TcpListener::bind(&addresses[..]).map_err(|e| {
            let shown: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
            let shown = shown.join(", ");
            Error::System(format!("cannot listen on {shown}: {e}; stop what uses it or choose another port"))
        })?;
        let local_addr = listener.local_addr();
        let local_addr = local_addr.map_err(|e| Error::System(format!("a listener without address: {e}")))?;
        Ok(Endpoint { listener, local_addr, identity, limits, meter: Arc::default() })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What the peers must be given to recognise this party.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.identity.certificate()
    }

    /// Bytes on the wire, of all streams that will come of this endpoint.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.meter.clone()
    }

    /// Connects with all other parties. `parties` lists all, this one included, in the same order at every party. Of two
    /// parties the one with the lower number calls.
    pub fn join(self, me: Party, parties: &[PeerAddress]) -> Result<TlsNet> {
        self.check(me, parties)?;
        let terms = self.terms(parties);
        let dialers = parties.iter().zip(0..).skip(me.index() + 1).map(|(peer, number)| {
            Ok(Dialer {
                peer: Party(number),
                address: peer.address.clone(),
                config: self.identity.client_config(peer.certificate.clone())?,
                terms,
                meter: self.meter.clone(),
            })
        });
        let dialers = dialers.collect::<Result<Vec<_>>>()?;
        let certificates: Vec<_> = parties.iter().map(|peer| peer.certificate.clone()).collect();
        // Only lower numbers call.
        let config = self.identity.server_config(certificates[..me.index()].to_vec())?;
        let door = Door { config, certificates, terms, meter: self.meter.clone() };
        let switchboard = Arc::new(Switchboard::default());
        let acceptor = Acceptor::start(self.listener, door, self.limits.handshake, switchboard.clone())?;
        let parties = parties.len();
        TlsNet::join(Session {
            me,
            parties,
            limits: self.limits,
            dialers,
            switchboard,
            meter: self.meter,
            acceptor,
        })
    }

    fn check(&self, me: Party, parties: &[PeerAddress]) -> Result<()> {
        if !(2..=usize::from(u8::MAX)).contains(&parties.len()) {
            return Err(Error::misuse(format!("a session of {} parties; it takes 2 to 255", parties.len())));
        }
        let mine = parties.get(me.index()).ok_or_else(|| {
            Error::misuse(format!("this is {me}, but the session lists {} parties", parties.len()))
        })?;
        if mine.certificate != self.identity.certificate() {
            return Err(Error::misuse(format!(
                "the session lists another certificate for {me} than this party's"
            )));
        }
        for (peer, number) in parties.iter().zip(0..) {
            if parties[..number].iter().any(|other| other.certificate == peer.certificate) {
                return Err(Error::misuse("the session lists one certificate for two parties"));
            }
        }
        Ok(())
    }

    fn terms(&self, parties: &[PeerAddress]) -> Terms {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave transport 2025 session");
        for peer in parties {
            hasher.update(&(peer.certificate.len() as u64).to_le_bytes()).update(&peer.certificate);
        }
        // `Limits::check` has made sure that it fits.
        Terms { max_frame: self.limits.max_frame as u32, session: hasher.finalize().into() }
    }
}
