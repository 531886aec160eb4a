//! An incoming connection until it is known whose it is and which stream it carries.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use polyclave_protocol::{Error, Party};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;

use crate::broken::Broken;
use crate::greeting::{GREETING, Terms, stream_of};
use crate::meter::WireMeter;
use crate::socket::Socket;
use crate::stream::StreamId;

/// Whom to let in, and on which terms.
pub(crate) struct Door {
    pub(crate) config: Arc<ServerConfig>,
    /// Of all parties, in order.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) terms: Terms,
    pub(crate) meter: Arc<WireMeter>,
}

/// A connection that has not yet shown who it is.
pub(crate) struct Arrival {
    pub(crate) socket: Socket,
    pub(crate) from: SocketAddr,
    pub(crate) since: Instant,
    greeting: [u8; GREETING],
    /// Bytes of the greeting read.
    read: usize,
    /// Whose connection it is and which stream, once our answer is written.
    known: Option<(Party, StreamId)>,
}

/// Why an arrival was turned away.
pub(crate) enum Refusal {
    /// By someone who has not shown to be a party.
    Stranger(Broken),
    /// By a party of the session, on other terms.
    Party(Party, Error),
}

impl Arrival {
    /// Begins to receive a connection.
    pub(crate) fn new(tcp: TcpStream, from: SocketAddr, door: &Door) -> Result<Self, Error> {
        let socket = Socket::server(tcp, door.config.clone(), door.meter.clone())?;
        let since = Instant::now();
        Ok(Arrival { socket, from, since, greeting: [0; GREETING], read: 0, known: None })
    }

    /// Goes on as far as possible without waiting; whose connection it is once that is settled.
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

    /// Answers the greeting, before judging it: so the other side can find the difference too.
    fn answer(&mut self, door: &Door) -> Result<(Party, StreamId), Refusal> {
        let certificate = self.socket.peer_certificate();
        let position = door.certificates.iter().position(|listed| Some(listed) == certificate);
        let party = position.and_then(|p| u8::try_from(p).ok()).map(Party).ok_or_else(|| {
            Refusal::Stranger(Broken::Misbehaved("its certificate is not listed in this session".into()))
        })?;
        let stream = stream_of(&self.greeting);
        self.socket.write(&door.terms.greeting(stream), &[]).map_err(Refusal::Stranger)?;
        door.terms.check(party, &self.greeting).map_err(|e| Refusal::Party(party, e))?;
        Ok((party, stream))
    }
}
