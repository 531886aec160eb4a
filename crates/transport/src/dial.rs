//! Dialling a peer, again and again until it answers or the time limit is reached, because parties start at
//! different times.
//!
//! The operating system looks up host names, with its own time limits. Numeric addresses avoid that.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use polyclave_protocol::{Error, Party};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ClientConfig;

use crate::attempt::{Attempt, POLL_INTERVAL};
use crate::broken::Broken;
use crate::greeting::{GREETING, Terms, stream_of};
use crate::meter::WireMeter;
use crate::side::Tls;
use crate::socket::Socket;
use crate::stream::StreamId;

/// Between two attempts, at first; doubled each time up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// What a caller tolerates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Parties start at about the same time, and their hosts exist before.
    Session,
    /// Nodes come and go, and sometimes their host names with them.
    Mesh,
    /// A client uses another node rather than wait for one that is not there: it tries no longer than this.
    Client { refused: Duration },
}

/// Which peer to call and how.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) peer: Party,
    pub(crate) address: String,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) terms: Terms,
    pub(crate) patience: Patience,
    pub(crate) meter: Arc<WireMeter>,
}

impl Dialer {
    /// A connection for `stream` on which the peer has shown its certificate and accepted ours; `None` once
    /// the attempt has failed elsewhere.
    pub(crate) fn dial(&self, stream: StreamId, attempt: &Attempt<'_>) -> Result<Option<Socket>, Error> {
        let mut pause = PAUSE;
        loop {
            let (reached, failure) = match self.reach(attempt)? {
                Ok(tcp) => match self.introduce(tcp, stream, attempt)? {
                    Ok(socket) => return Ok(Some(socket)),
                    Err(failure @ Broken::Misbehaved(_)) => return Err(failure.of(self.peer)),
                    Err(Broken::Closed(detail)) => (true, detail),
                },
                Err(failure) => (false, failure),
            };
            if attempt.has_failed() {
                return Ok(None);
            }
            let hopeless = !reached
                && matches!(self.patience, Patience::Client { refused } if attempt.began.elapsed() >= refused);
            let left = attempt.left().filter(|_| !hopeless).ok_or_else(|| {
                let tried = if hopeless { attempt.began.elapsed() } else { attempt.limit };
                let detail = format!("no connection to {} within {tried:.1?}: {failure}", self.address);
                Error::Closed { peer: self.peer, detail }
            })?;
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A TCP connection. The outer error is final; after the inner one a new try may succeed.
    fn reach(&self, attempt: &Attempt<'_>) -> Result<Result<TcpStream, String>, Error> {
        let wrong =
            |why: String| format!("the address of {}, {:?}, is of no use: {why}", self.peer, self.address);
        let found = self.address.to_socket_addrs().map(Vec::from_iter);
        Ok(match found {
            Ok(addresses) if !addresses.is_empty() => {
                self.connect(&addresses, attempt).map_err(|e| e.to_string())
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(Error::Misuse(wrong(e.to_string())));
            }
            unknown => {
                let why = unknown.err().map_or("it stands for no machine".into(), |e| e.to_string());
                match self.patience {
                    Patience::Session => return Err(Error::Misuse(wrong(why))),
                    Patience::Mesh | Patience::Client { .. } => Err(why),
                }
            }
        })
    }

    fn connect(&self, addresses: &[SocketAddr], attempt: &Attempt<'_>) -> io::Result<TcpStream> {
        let mut failure = io::Error::from(io::ErrorKind::TimedOut);
        for address in addresses {
            match TcpStream::connect_timeout(address, attempt.left().unwrap_or(PAUSE)) {
                // Dialling a free port of one's own machine can, by TCP's rules, connect a socket with
                // itself.
                Ok(tcp) if tcp.local_addr().ok() == tcp.peer_addr().ok() => {
                    failure = io::Error::from(io::ErrorKind::ConnectionRefused);
                }
                Ok(tcp) => return Ok(tcp),
                Err(e) => failure = e,
            }
        }
        Err(failure)
    }

    /// TLS handshake and greetings. The outer error is final; after the inner one a new try may succeed.
    fn introduce(
        &self,
        tcp: TcpStream,
        stream: StreamId,
        attempt: &Attempt<'_>,
    ) -> Result<Result<Socket, Broken>, Error> {
        let mut socket = Socket::new(tcp, Tls::client(self.config.clone())?, self.meter.clone())?;
        Ok(match self.exchange_greetings(&mut socket, stream, attempt) {
            Ok(greeting) => {
                socket.version = self.terms.check(self.peer, &greeting)?;
                if stream_of(&greeting) != stream {
                    let detail = "its answer is for another stream".into();
                    return Err(Error::Peer { peer: self.peer, detail });
                }
                Ok(socket)
            }
            // It may have said why it closed the connection before it did.
            Err(failure @ Broken::Closed(_)) => match socket.read(&mut [0], &mut []) {
                Err(why @ Broken::Misbehaved(_)) => Err(why),
                _ => Err(failure),
            },
            Err(failure) => Err(failure),
        })
    }

    fn exchange_greetings(
        &self,
        socket: &mut Socket,
        stream: StreamId,
        attempt: &Attempt<'_>,
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

/// Sleeps until the socket is ready or it is time to check again. If the time is up, that is an error.
fn wait(socket: &Socket, attempt: &Attempt<'_>) -> Result<(), Broken> {
    let left = attempt.left().filter(|_| !attempt.has_failed());
    let left = left.ok_or_else(|| Broken::Closed("it accepts connections but does not answer".into()))?;
    let writable = if socket.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
    let mut fds = [PollFd::new(socket.tcp(), PollFlags::IN | writable)];
    match poll(&mut fds, Timespec::try_from(left.min(POLL_INTERVAL)).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(Broken::Closed(format!("waiting for it failed: {e}"))),
    }
}
