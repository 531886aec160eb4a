//! An incoming connection, from its acceptance until its peer and its stream are known.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use polyclave_protocol::{Error, Party};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;

use crate::broken::Broken;
use crate::greeting::{GREETING, Terms, stream_of};
use crate::meter::WireMeter;
use crate::side::Tls;
use crate::socket::Socket;
use crate::stream::StreamId;

/// Which connections to admit, and on which terms.
pub(crate) struct Door {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) guests: Guests,
    pub(crate) terms: Terms,
    pub(crate) meter: Arc<WireMeter>,
}

/// How connections that TLS admits are identified.
pub(crate) enum Guests {
    /// As parties, by number, each by any of its certificates.
    Parties(Vec<Vec<CertificateDer<'static>>>),
    /// As clients, all under one number; their certificates tell them apart.
    Clients(Party),
}

/// A connection that has not yet shown its certificate and stream.
pub(crate) struct Arrival {
    pub(crate) socket: Socket,
    pub(crate) from: SocketAddr,
    pub(crate) since: Instant,
    greeting: [u8; GREETING],
    /// Bytes of the greeting read.
    read: usize,
    /// The party and the stream of the connection, once our answer is written.
    known: Option<(Party, StreamId)>,
}

/// Why a connection was refused.
pub(crate) enum Refusal {
    /// The other side has not shown that it is a party.
    Stranger(Broken),
    /// A party has other terms for this stream.
    Party(Party, StreamId, Error),
}

impl Arrival {
    /// Begins to receive a connection.
    pub(crate) fn new(tcp: TcpStream, from: SocketAddr, door: &Door) -> Result<Self, Error> {
        let socket = Socket::new(tcp, Tls::server(door.config.clone())?, door.meter.clone())?;
        let since = Instant::now();
        Ok(Arrival { socket, from, since, greeting: [0; GREETING], read: 0, known: None })
    }

    /// Goes on as far as possible without waiting. Returns whose connection it is once that is known.
    pub(crate) fn advance(&mut self, door: &Door) -> Result<Option<(Party, StreamId)>, Refusal> {
        if !self.socket.handshake().map_err(Refusal::Stranger)? {
            return Ok(None);
        }
        while self.read < GREETING {
            let count =
                self.socket.read(&mut self.greeting[self.read..], &mut []).map_err(Refusal::Stranger)?;
            self.read += count;
            if count == 0 {
                return Ok(None);
            }
        }
        if self.known.is_none() {
            self.known = Some(self.answer(door)?);
        }
        self.socket.flush().map_err(Refusal::Stranger)?;
        Ok(self.known.filter(|_| self.socket.is_flushed()))
    }

    /// Answers the greeting before judging it, so that the other side can find the difference too.
    fn answer(&mut self, door: &Door) -> Result<(Party, StreamId), Refusal> {
        let party = self.socket.peer_certificate().and_then(|shown| door.guests.party(shown));
        let party = party.ok_or_else(|| {
            Refusal::Stranger(Broken::Misbehaved("its certificate is not listed here".into()))
        })?;
        let stream = stream_of(&self.greeting);
        self.socket.write(&door.terms.greeting(stream), &[]).map_err(Refusal::Stranger)?;
        let version = door.terms.check(party, &self.greeting);
        self.socket.version = version.map_err(|e| Refusal::Party(party, stream, e))?;
        Ok((party, stream))
    }
}

impl Guests {
    fn party(&self, shown: &CertificateDer<'_>) -> Option<Party> {
        match self {
            Guests::Parties(certificates) => {
                let position = certificates.iter().position(|of_one| of_one.contains(shown))?;
                u8::try_from(position).ok().map(Party)
            }
            Guests::Clients(party) => Some(*party),
        }
    }
}
