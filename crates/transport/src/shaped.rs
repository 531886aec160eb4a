//! Imitates a slower network between parties on one machine.
//!
//! # The model
//!
//! Between any two parties there is one line in each direction, shared by all streams. A message of b bytes
//! occupies its line for b / rate, after the messages before it, and arrives as a whole half a round-trip
//! time later. Lines to several peers work at the same time. So an exchange that all parties begin together
//! takes rtt/2 + b/rate, where b is the length of the longest message. A party that begins late delays the
//! others by as much as on a real network. A party that receives late finds what has arrived meanwhile.
//!
//! Every message carries, in 8 bytes before it, the moment at which its last bit leaves the line, by the
//! machine's monotonic clock, which all its processes share; the receiver holds the message back until half a
//! round-trip time after that.
//!
//! # What it leaves out
//!
//! Headers of frames, TLS and TCP/IP take no line time; nothing is lost; TCP needs no time to gain speed;
//! senders never wait for room; one party's lines do not share a common uplink. Connecting (`fork` too) is
//! not delayed. Waits are met to within some 10 us, and never shorter than what the real network below takes.
//! A gathering takes messages in the order in which the network below delivers them, so one that left its
//! line early may wait for one that left later. The 8 bytes show on a wire meter but not in a `Metered`
//! around this. For measurements only, because the receiver believes a peer's stamp.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet, Result};
use rustix::time::{ClockId, clock_gettime};

use crate::shape::Shape;

/// Bytes of a time stamp.
const STAMP: usize = 8;
/// The last part of a wait is spent yielding, since sleeps end late by about this much.
const OVERSLEEP: Duration = Duration::from_micros(100);
/// A stamp that lies farther ahead than this is not a delay but an error.
const FARTHEST: Duration = Duration::from_secs(3600);

/// A network as slow as its shape.
pub struct Shaped<N> {
    net: N,
    shape: Shape,
    lines: Arc<Lines>,
    /// Stamped messages on their way, by party; kept for their memory.
    out: Vec<Vec<u8>>,
    into: Vec<Vec<u8>>,
    /// Peers whose stamps are impossible, by party; the network below does not know of them.
    lost: Vec<Option<Error>>,
}

/// When each of a party's outgoing lines is free again, in nanoseconds of the machine's clock.
struct Lines(Vec<AtomicU64>);

impl<N: Net> Shaped<N> {
    /// Imitates `shape` on `net`. All parties must use the same shape, on the same machine.
    pub fn new(net: N, shape: Shape) -> Self {
        let lines = (0..net.parties()).map(|_| AtomicU64::new(0)).collect();
        Self::with_lines(net, shape, Arc::new(Lines(lines)))
    }

    fn with_lines(net: N, shape: Shape, lines: Arc<Lines>) -> Self {
        let buffers = vec![Vec::new(); net.parties()];
        let lost = vec![None; net.parties()];
        Shaped { net, shape, lines, out: buffers.clone(), into: buffers, lost }
    }

    /// Copies the message, with its stamp, to the buffer from which it is sent.
    fn stamp(&mut self, to: Party, message: &[u8]) {
        let leaves = self.lines.occupy(to, self.shape.line_time(message.len()));
        let stamped = &mut self.out[to.index()];
        stamped.clear();
        stamped.extend_from_slice(&leaves.to_le_bytes());
        stamped.extend_from_slice(message);
    }

    /// Copies the messages to all peers, with stamps, to the buffers from which they are sent, and makes room
    /// for theirs; but not for those of `without`.
    fn prepare(&mut self, out: &[&[u8]], into: &[&mut [u8]], without: PartySet) {
        for p in Party::all(self.parties()) {
            let (message, expected) = (out[p.index()], into[p.index()].len());
            let left_out = without.contains(p);
            if left_out || message.is_empty() {
                self.out[p.index()].clear();
            } else {
                self.stamp(p, message);
            }
            let room = if left_out || expected == 0 { 0 } else { STAMP + expected };
            self.into[p.index()].resize(room, 0);
        }
    }

    fn check_not_lost(&self, peer: Party) -> Result<()> {
        self.lost[peer.index()].clone().map_or(Ok(()), Err)
    }
}

impl Shape {
    /// Takes the message out of the bytes that arrived. Returns until when to hold it back.
    fn unstamp(&self, from: Party, arrived: &[u8], into: &mut [u8]) -> Result<u64> {
        let (stamp, message) = arrived.split_at(STAMP);
        into.copy_from_slice(message);
        let leaves = stamp.try_into().map_or(0, u64::from_le_bytes);
        if leaves > now().saturating_add(nanoseconds(FARTHEST)) {
            let detail =
                "a time stamp of the distant future; imitate one network for all, on one machine".into();
            return Err(Error::Peer { peer: from, detail });
        }
        Ok(leaves + nanoseconds(self.rtt / 2))
    }
}

impl Lines {
    /// Queues a message on the line to a party. Returns when its last bit leaves.
    fn occupy(&self, to: Party, time: Duration) -> u64 {
        let (now, time) = (now(), nanoseconds(time));
        let leaves = |free: u64| free.max(now).saturating_add(time);
        let line = &self.0[to.index()];
        leaves(line.fetch_update(Relaxed, Relaxed, |free| Some(leaves(free))).unwrap_or_else(|free| free))
    }
}

impl<N: Net> Net for Shaped<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        if self.shape.is_loopback() || to.index() >= self.parties() {
            return self.net.send(to, message);
        }
        self.check_not_lost(to)?;
        self.stamp(to, message);
        self.net.send(to, &self.out[to.index()])
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        if self.shape.is_loopback() || from.index() >= self.parties() {
            return self.net.recv(from, into);
        }
        self.check_not_lost(from)?;
        let arriving = &mut self.into[from.index()];
        arriving.resize(STAMP + into.len(), 0);
        self.net.recv(from, arriving)?;
        hold_until(self.shape.unstamp(from, arriving, into)?);
        Ok(())
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let n = self.parties();
        if self.shape.is_loopback() || out.len() != n || into.len() != n {
            return self.net.exchange(out, into);
        }
        for peer in Party::all(n) {
            if !out[peer.index()].is_empty() || !into[peer.index()].is_empty() {
                self.check_not_lost(peer)?;
            }
        }
        self.prepare(out, into, PartySet::from_bits(0));
        let stamped: Vec<&[u8]> = self.out.iter().map(Vec::as_slice).collect();
        let mut arriving: Vec<&mut [u8]> = self.into.iter_mut().map(Vec::as_mut_slice).collect();
        self.net.exchange(&stamped, &mut arriving)?;
        let mut until = 0;
        for from in Party::all(n).filter(|from| !self.into[from.index()].is_empty()) {
            until = until.max(self.shape.unstamp(from, &self.into[from.index()], into[from.index()])?);
        }
        hold_until(until);
        Ok(())
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let n = self.parties();
        if self.shape.is_loopback() || out.len() != n || into.len() != n {
            return self.net.gather(out, into, patience, enough);
        }
        self.prepare(out, into, self.lost());
        let stamped: Vec<&[u8]> = self.out.iter().map(Vec::as_slice).collect();
        let mut arriving: Vec<&mut [u8]> = self.into.iter_mut().map(Vec::as_mut_slice).collect();
        let (shape, lost) = (&self.shape, &mut self.lost);
        let mut arrived = PartySet::from_bits(0);
        let mut held_back = |come: PartySet, arriving: &[&mut [u8]]| {
            let taken = |p: Party| arrived.contains(p) || lost[p.index()].is_some();
            let Some(from) = come.iter().find(|p| !taken(*p)) else {
                return come.is_empty() && enough(arrived, into);
            };
            match shape.unstamp(from, arriving[from.index()], into[from.index()]) {
                Ok(moment) => hold_until(moment),
                Err(e) => {
                    lost[from.index()] = Some(e);
                    return false;
                }
            }
            arrived = arrived.iter().chain([from]).collect();
            enough(arrived, into)
        };
        self.net.gather(&stamped, &mut arriving, patience, &mut held_back)?;
        Ok(Gathered { arrived, lost: self.lost() })
    }

    fn lost(&self) -> PartySet {
        let mine = Party::all(self.parties()).filter(|p| self.lost[p.index()].is_some());
        self.net.lost().iter().chain(mine).collect()
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Ok(Box::new(Shaped::with_lines(self.net.fork()?, self.shape, self.lines.clone())))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let net = self.net.fork_among(members, name)?;
        Ok(Box::new(Shaped::with_lines(net, self.shape, self.lines.clone())))
    }
}

/// Waits for a moment of the machine's clock.
fn hold_until(moment: u64) {
    loop {
        let left = Duration::from_nanos(moment.saturating_sub(now()));
        match left.checked_sub(OVERSLEEP) {
            _ if left.is_zero() => return,
            Some(sleep) if !sleep.is_zero() => std::thread::sleep(sleep),
            _ => std::thread::yield_now(),
        }
    }
}

/// The machine's clock, the same in all its processes.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use polyclave_protocol::mesh::{Mesh, mesh};

    use super::*;

    const SLOW: Shape = Shape { rtt: Duration::from_millis(80), bytes_per_second: Some(1e6) };

    #[test]
    fn an_exchange_takes_one_way_and_line_time_not_once_per_peer() {
        let times = run(4, SLOW, |net| swap(net, 10_000));
        for time in times {
            let expected = Duration::from_millis(40 + 10);
            assert!(time >= expected, "{time:?} is less than {expected:?}");
            // Generous for a loaded machine, but less than three of them one after the other.
            assert!(time < expected * 5 / 2, "{time:?} is as if the delays added up");
        }
    }

    #[test]
    fn messages_in_a_row_share_the_line_and_overlap_in_flight() {
        let times = run(2, SLOW, |net| {
            for _ in 0..5 {
                match net.me() {
                    Party(0) => net.send(Party(1), &[7; 4_000]).expect("send"),
                    _ => net.recv(Party(0), &mut [0; 4_000]).expect("recv"),
                }
            }
        });
        assert!(times[0] < Duration::from_millis(40), "a sender does not wait, but this took {:?}", times[0]);
        let expected = Duration::from_millis(40 + 5 * 4);
        assert!(times[1] >= expected && times[1] < expected + Duration::from_millis(80), "{:?}", times[1]);
    }

    #[test]
    fn forks_share_the_line() {
        let times = run(2, SLOW, |net| {
            let mut fork = net.fork().expect("fork");
            match net.me() {
                Party(0) => {
                    net.send(Party(1), &[1; 20_000]).expect("send");
                    fork.send(Party(1), &[2; 1]).expect("send");
                }
                _ => fork.recv(Party(0), &mut [0; 1]).expect("recv"),
            }
        });
        assert!(times[1] >= Duration::from_millis(40 + 20), "{:?}", times[1]);
    }

    #[test]
    fn contents_and_lengths_pass_unchanged() {
        run(3, Shape { rtt: Duration::from_micros(10), bytes_per_second: Some(1e9) }, |net| {
            let (me, n) = (net.me(), net.parties());
            let message = |from: Party, to: Party| vec![from.0 * 16 + to.0; usize::from(from.0) * 100];
            let out: Vec<Vec<u8>> =
                Party::all(n).map(|to| if to == me { vec![] } else { message(me, to) }).collect();
            let mut into: Vec<Vec<u8>> = Party::all(n)
                .map(|from| if from == me { vec![] } else { vec![0; message(from, me).len()] })
                .collect();
            let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
            net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
                .expect("exchange");
            for from in me.peers(n) {
                assert_eq!(into[from.index()], message(from, me));
            }
        });
    }

    #[test]
    fn a_gathering_takes_one_way_and_throws_away_what_is_late() {
        // Before anybody sends: the message may be on its way before its receiver runs.
        let began = Instant::now();
        let times = run(3, SLOW, |net| match net.me() {
            Party(0) => {
                let mut into = [vec![], vec![0; 10], vec![0; 20]];
                let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
                let gathered =
                    net.gather(&[&[][..]; 3], &mut views, Patience::of(1), &mut |_, into| into[1] == [7; 10]);
                assert_eq!(gathered.expect("gather").arrived, PartySet::from_bits(2));
                assert!(began.elapsed() >= Duration::from_millis(40), "{:?}", began.elapsed());
                let mut views: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
                let gathered = net.gather(&[&[][..]; 3], &mut views, Patience::of(1), &mut |_, _| false);
                assert_eq!(gathered.expect("gather").arrived, PartySet::from_bits(6));
                assert_eq!((&into[1], &into[2]), (&vec![8; 10], &vec![9; 20]));
            }
            Party(1) => {
                net.send(Party(0), &[7; 10]).expect("send");
                net.send(Party(0), &[8; 10]).expect("send");
            }
            _ => {
                std::thread::sleep(Duration::from_millis(100));
                net.send(Party(0), &[0; 20]).expect("what was late");
                net.send(Party(0), &[9; 20]).expect("send");
            }
        });
        assert!(times[0] >= Duration::from_millis(140), "{:?}", times[0]);
    }

    #[test]
    fn a_gathering_loses_who_stamps_the_distant_future() {
        let mut nets = mesh(3).into_iter();
        let (mut a, mut b, c) =
            (nets.next().expect("three"), nets.next().expect("three"), nets.next().expect("three"));
        a.send(Party(2), &[0xff; STAMP + 1]).expect("send");
        b.send(Party(2), &[0; STAMP + 1]).expect("send");
        let mut c = Shaped::new(c, SLOW);
        let mut into = [[1; 1]; 2];
        let [first, second] = &mut into;
        let gathered =
            c.gather(&[&[][..]; 3], &mut [first, second, &mut []], Patience::of(1), &mut |_, _| false);
        let expected = Gathered { arrived: PartySet::from_bits(2), lost: PartySet::from_bits(1) };
        assert_eq!(gathered, Ok(expected));
        assert!(matches!(c.send(Party(0), b"x"), Err(Error::Peer { peer: Party(0), .. })));
        assert_eq!(c.lost(), PartySet::from_bits(1));
    }

    #[test]
    fn loopback_adds_nothing_to_messages() {
        let mut nets = mesh(2).into_iter();
        let (a, mut b) = (nets.next().expect("two"), nets.next().expect("two"));
        Shaped::new(a, Shape::LOOPBACK).send(Party(1), b"bare").expect("send");
        let mut bytes = [0; 4];
        b.recv(Party(0), &mut bytes).expect("recv");
        assert_eq!(&bytes, b"bare");
    }

    #[test]
    fn a_stamp_of_the_distant_future_is_an_error() {
        let mut nets = mesh(2).into_iter();
        let (mut a, b) = (nets.next().expect("two"), nets.next().expect("two"));
        a.send(Party(1), &[0xff; STAMP + 1]).expect("send");
        let received = Shaped::new(b, SLOW).recv(Party(0), &mut [0; 1]);
        assert!(matches!(received, Err(Error::Peer { peer: Party(0), .. })), "{received:?}");
    }

    /// Runs all parties; how long each took.
    fn run(n: usize, shape: Shape, party: impl Fn(&mut Shaped<Mesh>) + Sync) -> Vec<Duration> {
        let mut nets: Vec<_> = mesh(n).into_iter().map(|net| Shaped::new(net, shape)).collect();
        let party = &party;
        std::thread::scope(|scope| {
            let start = Instant::now();
            let threads: Vec<_> = nets
                .iter_mut()
                .map(|net| {
                    scope.spawn(move || {
                        party(net);
                        start.elapsed()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("party")).collect()
        })
    }

    /// All send `len` bytes to all.
    fn swap(net: &mut dyn Net, len: usize) {
        let (me, n) = (net.me(), net.parties());
        let message = vec![1; len];
        let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[][..] } else { &message[..] }).collect();
        let mut into: Vec<Vec<u8>> = Party::all(n).map(|p| vec![0; if p == me { 0 } else { len }]).collect();
        net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
            .expect("exchange");
    }
}
