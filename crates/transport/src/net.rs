//! [`TlsNet`]: the network port over TLS.
//!
//! One thread drives all connections of a stream. It sends and receives a piece at a time, going round the
//! peers. So no order of sizes can deadlock, and data for one peer flows while data for the next is
//! encrypted. When nothing moves, the thread yields its core a few times, because answers on a fast network
//! take microseconds, and then sleeps in `poll`.
//!
//! A call that fails leaves messages half sent. So the first error is final, and every later call returns it
//! again. In a gathering, a peer's failure is not an error: only its link is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::accept::Acceptor;
use crate::attempt::Attempt;
use crate::halt::Halt;
use crate::limits::Limits;
use crate::link::Link;
use crate::messages::{In, Out};
use crate::meter::WireMeter;
use crate::session::Session;
use crate::socket::Socket;
use crate::stream::StreamId;
use crate::switchboard::Calls;

mod gather;
mod linger;

pub use linger::Farewells;

/// How long to yield before going to sleep. Measured with three processes on two cores: sleeping at once
/// doubles the time of a small exchange, yielding longer gains nothing.
const YIELD: Duration = Duration::from_micros(50);

/// How many forks of a stream its peers may have connected to that this party has not made yet.
const FORKS_AHEAD: u64 = 16;

/// One party's TLS connections to others, for one stream.
pub struct TlsNet {
    me: Party,
    parties: usize,
    limits: Limits,
    meter: Arc<WireMeter>,
    /// By party; `None` for this one, for those that are not members, and for those that are lost.
    links: Vec<Option<Link>>,
    /// `None` if a client is involved. It is dropped after the links.
    origin: Option<Origin>,
    /// By party: the error by which it was lost.
    lost: Vec<Option<Error>>,
    failed: Option<Error>,
    /// When everything has to be finished, even if bytes still arrive.
    deadline: Option<Instant>,
    /// Ends the threads in which this network lingers after its drop, if its owner wants that.
    farewells: Option<Arc<Farewells>>,
    /// Lets another thread end the work on this network, if set.
    halt: Option<Halt>,
    /// By party: how long this one had nothing to do until bytes of that one came, or could go to it. `None`
    /// if nobody wants to know.
    waits: Option<Vec<Duration>>,
}

/// Where further streams are opened.
struct Origin {
    session: Arc<Session>,
    /// Keeps the listener of an endpoint as long as any of its streams lives.
    acceptor: Option<Arc<Acceptor>>,
    /// The root of named streams.
    family: StreamId,
    stream: StreamId,
    forks: u64,
}

impl Drop for Origin {
    /// Peers may have connected to forks that this party will not make any more. They would wait for it.
    fn drop(&mut self) {
        let from = self.forks.saturating_sub(1);
        self.session.switchboard.turn_away((from..from + FORKS_AHEAD).map(|count| self.stream.fork(count)));
    }
}

impl TlsNet {
    /// The first stream of an endpoint.
    pub(crate) fn join(session: Session, acceptor: Acceptor) -> Result<TlsNet> {
        let (session, acceptor) = (Arc::new(session), Some(Arc::new(acceptor)));
        let peers: Vec<Party> = session.me.peers(session.parties).collect();
        let (root, within) = (StreamId::root(), session.limits.connect);
        let origin = Origin { session, acceptor, family: root, stream: root, forks: 0 };
        Self::connect(origin, Calls::Again, &peers, &Attempt::new(within))
    }

    /// The stream with this name in a family.
    pub(crate) fn open(
        session: Arc<Session>,
        acceptor: Option<Arc<Acceptor>>,
        family: StreamId,
        name: &str,
        peers: &[Party],
        attempt: &Attempt<'_>,
    ) -> Result<TlsNet> {
        let stream = family.named(name);
        Self::connect(Origin { session, acceptor, family, stream, forks: 0 }, Calls::Again, peers, attempt)
    }

    /// A network from connections that exist already.
    pub(crate) fn of_sockets(
        me: Party,
        parties: usize,
        limits: Limits,
        meter: Arc<WireMeter>,
        sockets: Vec<(Party, Socket)>,
    ) -> TlsNet {
        let mut links: Vec<Option<Link>> = (0..parties).map(|_| None).collect();
        let mut failed = None;
        for (peer, mut socket) in sockets {
            match links.get_mut(peer.index()) {
                Some(place) if place.is_none() && peer != me => {
                    socket.set_meter(meter.clone());
                    *place = Some(Link::new(peer, socket));
                }
                _ => failed = Some(Error::misuse(format!("a connection of {me} with {peer} has no place"))),
            }
        }
        let lost = vec![None; parties];
        let (origin, deadline, farewells, halt, waits) = (None, None, None, None, None);
        TlsNet { me, parties, limits, meter, origin, links, lost, failed, deadline, farewells, halt, waits }
    }

    /// The connections of a network that is between two messages.
    pub(crate) fn into_sockets(mut self) -> Result<Vec<(Party, Socket)>> {
        let unsettled = || Error::misuse("late messages are still on their way");
        let has_debts = self.links.iter().flatten().any(Link::has_debts).then(unsettled);
        let lost = self.lost.iter().flatten().next().cloned();
        match (self.failed.clone().or(lost).or(has_debts), &self.origin) {
            (Some(e), _) => Err(e),
            (None, Some(_)) => Err(Error::misuse("a stream between nodes is not a client's lines")),
            (None, None) => {
                let links = std::mem::take(&mut self.links).into_iter().flatten();
                Ok(links.map(|link| (link.peer, link.into_socket())).collect())
            }
        }
    }

    /// A stream to the same parties under a name that all of them use, in any order. It also reaches a peer
    /// that has closed or lost its old streams.
    pub fn stream(&self, name: &str) -> Result<TlsNet> {
        let Origin { session, acceptor, family, .. } = self.origin()?;
        let (session, acceptor) = (session.clone(), acceptor.clone());
        let attempt = Attempt::ended_by(session.halt.clone(), self.limits.connect);
        Self::open(session, acceptor, *family, name, &self.peers(), &attempt)
    }

    /// Bytes on the wire: of all streams of this endpoint or mesh, of all callers of a reception, or of a
    /// client's lines since they became a network.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.meter.clone()
    }

    /// The lowest version that its connections speak, of the wire between nodes or of that of clients. `None`
    /// if there is no connection any more.
    pub fn version(&self) -> Option<u8> {
        self.links.iter().flatten().map(Link::version).min()
    }

    /// From now on, waits this long for a peer that owes bytes, or that should take ours, to move at least
    /// one.
    pub fn set_idle_limit(&mut self, idle: Duration) {
        self.limits.idle = idle;
    }

    /// From now on nothing may last beyond this moment, even if bytes move now and then. `None` removes the
    /// limit.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The same network, on which everything fails once `halt` says so.
    pub fn ended_by(mut self, halt: Halt) -> TlsNet {
        self.halt = Some(halt);
        self
    }

    /// From now on measures how long this party waits for each other one, or stops to do so.
    pub fn measure_waits(&mut self, wanted: bool) {
        self.waits = wanted.then(|| vec![Duration::ZERO; self.parties]);
    }

    /// How long this party has waited for others since it asked last, if it measures that: the time in which
    /// it had nothing to do, by the party whose bytes came at the end of it or could be sent then. What forks
    /// wait for is not in it.
    pub fn take_waits(&mut self) -> Vec<(Party, Duration)> {
        let Some(waits) = &mut self.waits else { return Vec::new() };
        let waited = Party::all(self.parties).zip(waits.iter_mut().map(std::mem::take));
        waited.filter(|(_, waited)| *waited > Duration::ZERO).collect()
    }

    /// Notes that a wait has ended with bytes of a party.
    fn note_wait(&mut self, since: Option<Instant>, party: Option<Party>) {
        if let (Some(waits), Some(since), Some(party)) = (&mut self.waits, since, party)
            && let Some(of_party) = waits.get_mut(party.index())
        {
            *of_party += since.elapsed();
        }
    }

    /// How long to sleep of a time that is left. An error if nothing is to be waited for any more.
    fn nap(&self, left: Duration) -> Result<Option<Timespec>> {
        let nap = match &self.halt {
            Some(halt) => {
                halt.check()?;
                left.min(halt.look)
            }
            None => left,
        };
        Ok(Timespec::try_from(nap).ok())
    }

    /// Whether nothing has failed and no peer has ended its connection, as far as that is known without
    /// waiting.
    pub fn is_alive(&mut self) -> bool {
        let limit = self.limits.max_frame;
        self.failed.is_none()
            && self.lost().is_empty()
            && self.links.iter_mut().flatten().all(|link| link.is_open(limit))
    }

    /// Waits until one of some peers has sent something that nobody has received yet, and returns which; or
    /// until the time is over. If such a peer is gone and has left nothing, that is an error, as it would be
    /// of [`Net::recv`].
    pub fn wait(&mut self, among: PartySet, within: Duration) -> Result<Option<Party>> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        if let Some(e) = among.iter().find_map(|peer| self.lost.get(peer.index())?.clone()) {
            return Err(e);
        }
        let deadline = Instant::now() + within;
        let limit = self.limits.max_frame;
        loop {
            for link in self.links.iter_mut().flatten().filter(|link| among.contains(link.peer)) {
                if let Err(broken) = link.look(limit) {
                    let e = broken.of(link.peer);
                    self.failed = Some(e.clone());
                    return Err(e);
                }
                if link.has_early() {
                    return Ok(Some(link.peer));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let links = self.links.iter().flatten().filter(|link| among.contains(link.peer));
            let mut fds: Vec<PollFd<'_>> = links.map(|link| PollFd::new(link.tcp(), PollFlags::IN)).collect();
            match poll(&mut fds, self.nap(left)?.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Error::System(format!("waiting for the peers failed: {e}"))),
            }
        }
    }

    /// The peers that have sent something that nobody has received yet, as far as that is known without
    /// waiting. A peer that is gone is no error here, because its last messages can still be received.
    pub fn arrived(&mut self) -> PartySet {
        let limit = self.limits.max_frame;
        let mut arrived = PartySet::default();
        for link in self.links.iter_mut().flatten() {
            // An error of the link shows when the link is used.
            let _ = link.look(limit);
            if link.has_early() {
                arrived = arrived.and([link.peer].into_iter().collect());
            }
        }
        arrived
    }

    fn connect(origin: Origin, calls: Calls, peers: &[Party], attempt: &Attempt<'_>) -> Result<TlsNet> {
        let session = origin.session.clone();
        let sockets = session.open(origin.stream, calls, peers, attempt)?;
        let (me, parties, limits) = (session.me, session.parties, session.limits);
        let mut net = Self::of_sockets(me, parties, limits, session.meter.clone(), sockets);
        net.origin = Some(origin);
        net.halt = session.is_of_mesh().then(|| session.halt.clone());
        Ok(net)
    }

    /// Connects a fork to these peers. At a mesh it fails as soon as one of them has ended this stream: that
    /// peer will not come, and if it has started again, it knows nothing of the fork. So nodes keep a stream
    /// until all have made their forks.
    fn connect_beside(&self, origin: Origin, peers: &[Party]) -> Result<TlsNet> {
        let is_beside = |link: &&Link| origin.session.is_of_mesh() && peers.contains(&link.peer);
        let links = self.links.iter().flatten().filter(is_beside);
        let beside: Vec<_> = links.map(|link| (link.peer, link.tcp())).collect();
        let attempt = Attempt::ended_by(origin.session.halt.clone(), self.limits.connect).beside(&beside);
        Self::connect(origin, Calls::Once, peers, &attempt)
    }

    fn peers(&self) -> Vec<Party> {
        Party::all(self.parties).filter(|peer| self.is_peer(*peer)).collect()
    }

    /// Lost or not.
    fn is_peer(&self, peer: Party) -> bool {
        let at = peer.index();
        at < self.parties && (self.links[at].is_some() || self.lost[at].is_some())
    }

    fn origin(&self) -> Result<&Origin> {
        self.origin
            .as_ref()
            .ok_or_else(|| Error::misuse("the connections of a client have no further streams"))
    }

    /// Begins the given messages and moves them until all are done.
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
        let limits = self.limits;
        let mut waiting_since = None;
        loop {
            let stuck = waiting_since.is_some() && !self.links.iter().flatten().all(Link::is_sent);
            let (mut moved, mut done, mut mover) = (false, true, None);
            for (place, lost) in self.links.iter_mut().zip(&mut self.lost) {
                let Some(link) = place else { continue };
                let peer = link.peer;
                let had_moved = moved;
                if link.is_done() && link.has_debts() {
                    match link.step(&[], &mut [], limits.max_frame) {
                        Ok(step) => moved |= step,
                        Err(broken) => {
                            (*place, *lost) = (None, Some(broken.of(peer)));
                            continue;
                        }
                    }
                } else if !link.is_done() {
                    let step = link.step(out.of(peer), into.of(peer), limits.max_frame);
                    moved |= step.map_err(|broken| broken.of(peer))?;
                    done &= link.is_done();
                }
                if stuck {
                    // The peer may be unable to take ours before it gets rid of its own.
                    moved |= link.read_ahead(limits.max_frame).map_err(|broken| broken.of(peer))?;
                }
                if moved && !had_moved {
                    mover = Some(peer);
                }
            }
            if done || moved {
                self.note_wait(waiting_since.take(), mover);
            }
            if done {
                return Ok(());
            }
            if moved {
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
        let limits = self.limits;
        let now = Instant::now();
        let mut left = limits.idle;
        for link in self.links.iter().flatten().filter(|link| !link.is_done()) {
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                let waited = now.saturating_duration_since(link.began_at);
                return Err(Error::Timeout { peer: link.peer, waited });
            }
            let quiet = now.saturating_duration_since(link.moved_at);
            if quiet >= limits.idle {
                return Err(Error::Timeout { peer: link.peer, waited: limits.idle });
            }
            left = left.min(limits.idle - quiet);
        }
        if let Some(deadline) = self.deadline {
            left = left.min(deadline.saturating_duration_since(now));
        }
        let stuck = !self.links.iter().flatten().all(Link::is_sent);
        self.poll(left, stuck.then_some(limits.max_frame))
    }

    /// Sleeps until a socket is ready, or for as long as `left`.
    fn poll(&self, left: Duration, ahead: Option<usize>) -> Result<()> {
        let links = self.links.iter().flatten().filter(|link| !link.interest(ahead).is_empty());
        let mut fds: Vec<PollFd<'_>> =
            links.map(|link| PollFd::new(link.tcp(), link.interest(ahead))).collect();
        match poll(&mut fds, self.nap(left)?.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::System(format!("waiting for the peers failed: {e}"))),
        }
    }

    /// Checks that a message may be sent to or received from a peer.
    fn check_peer(&self, peer: Party) -> Result<()> {
        match self.lost.get(peer.index()) {
            Some(Some(e)) => Err(e.clone()),
            _ if self.is_peer(peer) => Ok(()),
            _ => Err(Error::misuse(format!("{peer} is not a peer of {} here", self.me))),
        }
    }

    fn check_lengths(&self, what: &str, out: &[&[u8]], into: &[&mut [u8]]) -> Result<()> {
        let n = self.parties;
        if out.len() != n || into.len() != n {
            let message = format!("{what} of {} and {} messages among {n} parties", out.len(), into.len());
            return Err(Error::misuse(message));
        }
        Ok(())
    }
}

impl Net for TlsNet {
    fn me(&self) -> Party {
        self.me
    }

    fn parties(&self) -> usize {
        self.parties
    }

    fn members(&self) -> PartySet {
        self.peers().into_iter().chain([self.me]).collect()
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
        self.check_lengths("an exchange", out, into)?;
        for peer in Party::all(self.parties) {
            if !out[peer.index()].is_empty() || !into[peer.index()].is_empty() {
                self.check_peer(peer)?;
            }
        }
        self.run(Out::Each(out), In::Each(into))
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.gather_from_all(out, into, patience, enough)
    }

    fn lost(&self) -> PartySet {
        Party::all(self.parties).filter(|peer| self.lost[peer.index()].is_some()).collect()
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        let Origin { session, acceptor, family, stream, forks } = self.origin()?;
        let (session, acceptor, stream) = (session.clone(), acceptor.clone(), stream.fork(*forks));
        let origin = Origin { session, acceptor, family: *family, stream, forks: 0 };
        if let Some(mine) = &mut self.origin {
            mine.forks += 1;
        }
        Ok(Box::new(self.connect_beside(origin, &self.peers())?))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let Origin { session, acceptor, family, stream, .. } = self.origin()?;
        let (session, acceptor) = (session.clone(), acceptor.clone());
        let stream = stream.fork_among(members, name);
        let origin = Origin { session, acceptor, family: *family, stream, forks: 0 };
        let peers: Vec<Party> = self.peers().into_iter().filter(|peer| members.contains(*peer)).collect();
        Ok(Box::new(self.connect_beside(origin, &peers)?))
    }
}
