//! Calling a peer, again and again until it answers or the time is up: parties start at different times.
//!
//! Looking up a host name is left to the system and its time limits; give addresses in digits to be independent of them.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use polyclave_protocol::{Error, Party};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ClientConfig;

use crate::attempt::{Attempt, LOOK};
use crate::broken::Broken;
use crate::greeting::{GREETING, Terms, stream_of};
use crate::meter::WireMeter;
use crate::socket::Socket;
use crate::stream::StreamId;

/// Between two attempts, at first; doubled each time up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Whom to call and how.
pub(crate) struct Dialer {
    pub(crate) peer: Party,
    pub(crate) address: String,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) terms: Terms,
    pub(crate) meter: Arc<WireMeter>,
}

impl Dialer {
    /// A connection for `stream` on which the peer has shown its certificate and accepted ours; none once the attempt
    /// has failed elsewhere.
    pub(crate) fn dial(&self, stream: StreamId, attempt: &Attempt) -> Result<Option<Socket>, Error> {
        let addresses = self.resolve()?;
        let mut pause = PAUSE;
        loop {
            let failure = match self.connect(&addresses, attempt) {
                Ok(tcp) => match self.introduce(tcp, stream, attempt)? {
                    Ok(socket) => return Ok(Some(socket)),
                    Err(failure @ Broken::Misbehaved(_)) => return Err(failure.of(self.peer)),
                    Err(Broken::Closed(detail)) => detail,
                },
                Err(e) => e.to_string(),
            };
            if attempt.has_failed() {
                return Ok(None);
            }
            let left = attempt.left().ok_or_else(|| {
                let detail =
                    format!("no connection to {} within {:?}: {failure}", self.address, attempt.limit);
                Error::Closed { peer: self.peer, detail }
            })?;
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn resolve(&self) -> Result<Vec<SocketAddr>, Error> {
        let wrong = |why: String| {
            Error::misuse(format!("the address of {}, {:?}, is of no use: {why}", self.peer, self.address))
        };
        let addresses: Vec<_> = self.address.to_socket_addrs().map_err(|e| wrong(e.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(wrong("it stands for no machine".into()));
        }
        Ok(addresses)
    }

    fn connect(&self, addresses: &[SocketAddr], attempt: &Attempt) -> io::Result<TcpStream> {
        let mut failure = io::Error::from(io::ErrorKind::TimedOut);
        for address in addresses {
            match TcpStream::connect_timeout(address, attempt.left().unwrap_or(PAUSE)) {
                // Dialling a free port of one's own machine can, by TCP's rules, connect a socket with itself.
                Ok(tcp) if tcp.local_addr().ok() == tcp.peer_addr().ok() => {
                    failure = io::Error::from(io::ErrorKind::ConnectionRefused);
                }
                Ok(tcp) => return Ok(tcp),
                Err(e) => failure = e,
            }
        }
        Err(failure)
    }

    /// TLS handshake and greetings. The outer error is final, the inner one may pass.
    fn introduce(
        &self,
        tcp: TcpStream,
        stream: StreamId,
        attempt: &Attempt,
    ) -> Result<Result<Socket, Broken>, Error> {
        let mut socket = Socket::client(tcp, self.config.clone(), self.meter.clone())?;
        Ok(match self.exchange_greetings(&mut socket, stream, attempt) {
            Ok(greeting) => {
                self.terms.check(self.peer, &greeting)?;
                if stream_of(&greeting) != stream {
                    let detail = "its answer is for another stream".into();
                    return Err(Error::Peer { peer: self.peer, detail });
                }
                Ok(socket)
            }
            Err(failure) => Err(failure),
        })
    }

    fn exchange_greetings(
        &self,
        socket: &mut Socket,
        stream: StreamId,
        attempt: &Attempt,
    ) -> Result<[u8; GREETING], Broken> {
        while !socket.handshake()? {
            wait(socket, attempt)?;
        }
        let mut answer = [0; GREETING];
        let mut read = 0;
        socket.write(&self.terms.greeting(stream), &[])?;
        while read < GREETING {
            socket.flush()?;
            match socket.read(&mut answer[read..], &mut [])? {
                0 => wait(socket, attempt)?,
                count => read += count,
            }
        }
        Ok(answer)
    }
}

/// Sleeps until the socket is ready or it is time to look again; that the time is up is an error.
fn wait(socket: &Socket, attempt: &Attempt) -> Result<(), Broken> {
    let left = attempt.left().filter(|_| !attempt.has_failed());
    let left = left.ok_or_else(|| Broken::Closed("it accepts connections but does not answer".into()))?;
    let writable = if socket.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
    let mut fds = [PollFd::new(socket.tcp(), PollFlags::IN | writable)];
    match poll(&mut fds, Timespec::try_from(left.min(LOOK)).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(Broken::Closed(format!("waiting for it failed: {e}"))),
    }
}
