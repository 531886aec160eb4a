//! The thread that receives incoming connections.
//!
//! It sleeps in `poll` on the listener, on every connection that has not yet shown its certificate and
//! stream, and on a pipe whose other end closes when its owner is dropped. A slow connection cannot delay
//! another. All steps are non-blocking. A connection has to show its certificate and stream within the
//! handshake limit. If there are more than [`STRANGERS`] unknown connections, the oldest is dropped. (Someone
//! who can open connections faster than honest handshakes finish can still keep honest ones out.)

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use polyclave_protocol::{Error, Party, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::arrival::{Arrival, Door, Refusal};
use crate::broken::Broken;
use crate::socket::Socket;
use crate::stream::StreamId;

/// The largest number of connections at one port that have not yet shown who they are. Each takes some 10 KB.
pub const STRANGERS: usize = 256;
/// Pause when the machine has no file descriptor or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A connection that has shown its peer, its stream and its terms.
pub(crate) struct Guest {
    pub(crate) party: Party,
    pub(crate) stream: StreamId,
    pub(crate) socket: Socket,
    pub(crate) from: SocketAddr,
}

/// Where the accepting thread delivers connections. These calls must not wait.
pub(crate) trait Desk: Send + Sync {
    /// Accepts a connection.
    fn welcome(&self, guest: Guest);

    /// Is told why a connection was refused.
    fn refused(&self, from: SocketAddr, refusal: Refusal);

    /// Drops connections that have waited too long. Returns when it has to be called again.
    fn tidy(&self) -> Option<Instant>;
}

/// The running thread. It ends, and the port is free, when this is dropped.
pub(crate) struct Acceptor {
    alive: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts to accept from `listener`.
    pub(crate) fn start(
        listener: TcpListener,
        door: Door,
        handshake: Duration,
        desk: Arc<dyn Desk>,
    ) -> Result<Self> {
        let broken = |e| Error::System(format!("cannot start to accept connections: {e}"));
        listener.set_nonblocking(true).map_err(broken)?;
        let (alive, until) = UnixStream::pair().map_err(broken)?;
        let porch = Porch { listener, until, door, handshake, desk, arrivals: Vec::new() };
        let thread = std::thread::Builder::new().name("accept".into()).spawn(|| porch.run());
        Ok(Acceptor { alive: Some(alive), thread: Some(thread.map_err(broken)?) })
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell, and no step of it takes long.
            let _ = thread.join();
        }
    }
}

struct Porch {
    listener: TcpListener,
    /// A pipe whose end becomes readable when it is time to end.
    until: UnixStream,
    door: Door,
    handshake: Duration,
    desk: Arc<dyn Desk>,
    arrivals: Vec<Arrival>,
}

impl Porch {
    fn run(mut self) {
        while let Some(listener_ready) = self.wait() {
            if listener_ready {
                self.accept();
            }
            self.advance();
        }
    }

    /// Sleeps until something happens. Returns whether the listener is ready, or `None` when it is time to
    /// end.
    fn wait(&self) -> Option<bool> {
        let mut fds =
            vec![PollFd::new(&self.until, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.arrivals.iter().map(|arrival| {
            let writable = if arrival.socket.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(arrival.socket.tcp(), PollFlags::IN | writable)
        }));
        let oldest = self.arrivals.iter().map(|arrival| arrival.since).min();
        let times = [oldest.map(|since| since + self.handshake), self.desk.tidy()];
        let next = times.into_iter().flatten().min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) if !fds[0].revents().is_empty() => None,
            Ok(_) => Some(!fds[1].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Some(false),
            Err(_) => {
                std::thread::sleep(EXHAUSTED);
                Some(false)
            }
        }
    }

    fn accept(&mut self) {
        // Not more at a time than have a place: then those already here get their turn.
        for _ in 0..STRANGERS {
            match self.listener.accept() {
                Ok((tcp, from)) => {
                    if self.arrivals.len() >= STRANGERS {
                        let oldest = self.arrivals.remove(0);
                        self.refuse(&oldest, "others came, and it had not yet shown who it is");
                    }
                    // Failing here is the machine's fault; the other side sees a closed connection and may
                    // retry.
                    self.arrivals.extend(Arrival::new(tcp, from, &self.door));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted || e.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => return std::thread::sleep(EXHAUSTED),
            }
        }
    }

    fn advance(&mut self) {
        for mut arrival in std::mem::take(&mut self.arrivals) {
            match arrival.advance(&self.door) {
                Ok(Some((party, stream))) => {
                    let (socket, from) = (arrival.socket, arrival.from);
                    self.desk.welcome(Guest { party, stream, socket, from });
                }
                Ok(None) if arrival.since.elapsed() >= self.handshake => {
                    self.refuse(&arrival, "it did not show who it is in time");
                }
                Ok(None) => self.arrivals.push(arrival),
                Err(refusal) => self.desk.refused(arrival.from, refusal),
            }
        }
    }

    fn refuse(&self, arrival: &Arrival, why: &str) {
        self.desk.refused(arrival.from, Refusal::Stranger(Broken::Closed(why.into())));
    }
}
