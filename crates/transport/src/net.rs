//! [`TlsNet`]: the network port over TLS.
//!
//! One thread drives all connections of a stream: it sends and receives a piece at a time, going round the peers, so no
//! order of sizes can deadlock and data for one peer flows while that for the next is encrypted. When nothing moves it
//! yields its core a few times, since answers on a fast network take microseconds, and then sleeps in `poll`.
//!
//! A call that fails leaves messages half sent; so the first error is final, and every later call returns it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};
use rustix::event::{PollFd, Timespec, poll};

use crate::link::Link;
use crate::meter::WireMeter;
use crate::session::Session;
use crate::stream::StreamId;

/// How long to yield before going to sleep. Measured with three processes on two cores: sleeping at once doubles the
/// time of a small exchange, yielding longer gains nothing.
const YIELD: Duration = Duration::from_micros(50);

/// One party's TLS connections to all others, for one stream.
pub struct TlsNet {
    session: Arc<Session>,
    stream: StreamId,
    forks: u64,
    /// By party; none for this one.
    links: Vec<Option<Link>>,
    failed: Option<Error>,
}

/// What to send.
enum Out<'a> {
    Nothing,
    One(Party, &'a [u8]),
    Each(&'a [&'a [u8]]),
}

/// Where to put what arrives.
enum In<'a, 'b> {
    Nothing,
    One(Party, &'a mut [u8]),
    Each(&'a mut [&'b mut [u8]]),
}

impl TlsNet {
    pub(crate) fn join(session: Session) -> Result<TlsNet> {
        Self::open(Arc::new(session), StreamId::root())
    }

    /// A stream to the same parties under a name that all of them use, in whatever order. Also reaches a peer that has
    /// closed its old streams or lost them.
    pub fn stream(&self, name: &str) -> Result<TlsNet> {
        Self::open(self.session.clone(), StreamId::root().named(name))
    }

    /// Bytes on the wire, of all streams of this endpoint.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.session.meter.clone()
    }

    fn open(session: Arc<Session>, stream: StreamId) -> Result<TlsNet> {
        let sockets = session.open(stream)?;
        let links = Party::all(sockets.len()).zip(sockets);
        let links = links.map(|(peer, socket)| Some(Link::new(peer, socket?))).collect();
        Ok(TlsNet { session, stream, forks: 0, links, failed: None })
    }

    /// Begins the given messages and moves them until all are through.
    fn run(&mut self, out: Out<'_>, into: In<'_, '_>) -> Result<()> {
        match &self.failed {
            Some(e) => Err(e.clone()),
            None => self.transfer(out, into).inspect_err(|e| self.failed = Some(e.clone())),
        }
    }

    fn transfer(&mut self, out: Out<'_>, mut into: In<'_, '_>) -> Result<()> {
        let began = Instant::now();
        for link in self.links.iter_mut().flatten() {
            link.begin(out.has(link.peer), into.has(link.peer), began);
        }
        let limits = self.session.limits;
        let mut waiting_since = None;
        loop {
            let stuck = waiting_since.is_some() && !self.links.iter().flatten().all(Link::is_sent);
            let (mut moved, mut done) = (false, true);
            for link in self.links.iter_mut().flatten() {
                let peer = link.peer;
                if !link.is_done() {
                    let step = link.step(out.of(peer), into.of(peer), limits.max_frame);
                    moved |= step.map_err(|broken| broken.of(peer))?;
                    done &= link.is_done();
                }
                if stuck {
                    // The peer may be unable to take ours before it gets rid of its own.
                    moved |= link.read_ahead(limits.max_frame).map_err(|broken| broken.of(peer))?;
                }
            }
            if done {
                return Ok(());
            }
            if moved {
                waiting_since = None;
                continue;
            }
            let since = *waiting_since.get_or_insert_with(Instant::now);
            if since.elapsed() < YIELD {
                std::thread::yield_now();
            } else {
                self.sleep()?;
            }
        }
    }

    /// Sleeps until a socket is ready for what is still to be done with it.
    fn sleep(&self) -> Result<()> {
        let limits = self.session.limits;
        let now = Instant::now();
        let mut left = limits.idle;
        for link in self.links.iter().flatten().filter(|link| !link.is_done()) {
            let quiet = now.saturating_duration_since(link.moved_at);
            if quiet >= limits.idle {
                return Err(Error::Timeout { peer: link.peer, waited: limits.idle });
            }
            left = left.min(limits.idle - quiet);
        }
        let stuck = !self.links.iter().flatten().all(Link::is_sent);
        let ahead = stuck.then_some(limits.max_frame);
        let links = self.links.iter().flatten().filter(|link| !link.interest(ahead).is_empty());
        let mut fds: Vec<PollFd<'_>> =
            links.map(|link| PollFd::new(link.tcp(), link.interest(ahead))).collect();
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::System(format!("waiting for the peers failed: {e}"))),
        }
    }

    fn check_peer(&self, peer: Party) -> Result<()> {
        match self.links.get(peer.index()) {
            Some(Some(_)) => Ok(()),
            _ => Err(Error::misuse(format!("{peer} is not a peer of {}", self.session.me))),
        }
    }
}

impl Net for TlsNet {
    fn me(&self) -> Party {
        self.session.me
    }

    fn parties(&self) -> usize {
        self.session.parties
    }

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.check_peer(to)?;
        self.run(Out::One(to, message), In::Nothing)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.check_peer(from)?;
        self.run(Out::Nothing, In::One(from, into))
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let (n, me) = (self.session.parties, self.session.me);
        if out.len() != n || into.len() != n {
            let told = format!("an exchange of {} and {} messages among {n} parties", out.len(), into.len());
            return Err(Error::misuse(told));
        }
        if !out[me.index()].is_empty() || !into[me.index()].is_empty() {
            return Err(Error::misuse(format!("an exchange of {me} with itself")));
        }
        self.run(Out::Each(out), In::Each(into))
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        let stream = self.stream.fork(self.forks);
        self.forks += 1;
        Ok(Box::new(Self::open(self.session.clone(), stream)?))
    }
}

impl Out<'_> {
    fn has(&self, peer: Party) -> bool {
        match self {
            Out::Nothing => false,
            Out::One(to, _) => *to == peer,
            Out::Each(messages) => !messages[peer.index()].is_empty(),
        }
    }

    fn of(&self, peer: Party) -> &[u8] {
        match self {
            Out::One(to, message) if *to == peer => message,
            Out::Each(messages) => messages[peer.index()],
            _ => &[],
        }
    }
}

impl In<'_, '_> {
    fn has(&self, peer: Party) -> bool {
        match self {
            In::Nothing => false,
            In::One(from, _) => *from == peer,
            In::Each(buffers) => !buffers[peer.index()].is_empty(),
        }
    }

    fn of(&mut self, peer: Party) -> &mut [u8] {
        match self {
            In::One(from, buffer) if *from == peer => buffer,
            In::Each(buffers) => buffers[peer.index()],
            _ => &mut [],
        }
    }
}
