//! Runs the parties of a session as threads of one process, connected by in-memory channels: for tests and
//! `eval`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;

use crate::interface::net::{Gathered, Net, Patience};
use crate::{Error, Party, PartySet, Result};

mod gather;

use gather::Debt;

/// How long a receive waits for a peer's message.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One party's end of the mesh.
pub struct Mesh {
    me: Party,
    members: PartySet,
    to: Vec<Option<Sender<Vec<u8>>>>,
    from: Vec<Option<Receiver<Vec<u8>>>>,
    /// By party.
    debts: Vec<Debt>,
    switchboard: Arc<Switchboard>,
    stream: String,
    forks: usize,
    timeout: Duration,
}

/// Ends of streams that one party has opened and its peer has not yet picked up, by (stream, from, to).
#[derive(Default)]
struct Switchboard {
    ends: Mutex<HashMap<(String, Party, Party), End>>,
}

type End = (Option<Sender<Vec<u8>>>, Option<Receiver<Vec<u8>>>);

impl Switchboard {
    fn ends(&self) -> parking_lot::MutexGuard<'_, HashMap<(String, Party, Party), End>> {
        self.ends.lock()
    }

    fn sender(&self, stream: &str, from: Party, to: Party) -> Option<Sender<Vec<u8>>> {
        self.with_end(stream, from, to, |end| end.0.take())
    }

    fn receiver(&self, stream: &str, from: Party, to: Party) -> Option<Receiver<Vec<u8>>> {
        self.with_end(stream, from, to, |end| end.1.take())
    }

    /// Makes the channel when its first end is asked for and forgets it when both ends are taken.
    fn with_end<T>(&self, stream: &str, from: Party, to: Party, take: impl FnOnce(&mut End) -> T) -> T {
        let key = (stream.to_owned(), from, to);
        let mut ends = self.ends();
        let end = ends.entry(key.clone()).or_insert_with(|| {
            let (sender, receiver) = channel();
            (Some(sender), Some(receiver))
        });
        let taken = take(end);
        if end.0.is_none() && end.1.is_none() {
            ends.remove(&key);
        }
        taken
    }
}

/// The ends of a mesh of `n` parties, in order.
pub fn mesh(n: usize) -> Vec<Mesh> {
    mesh_with_timeout(n, TIMEOUT)
}

/// [`mesh`] with another limit on the wait for a message.
pub fn mesh_with_timeout(n: usize, timeout: Duration) -> Vec<Mesh> {
    open_all(n, PartySet::all(n), timeout)
}

/// The ends of a mesh among some of `n` parties, in their order.
pub fn mesh_among(n: usize, members: PartySet) -> Vec<Mesh> {
    open_all(n, members, TIMEOUT)
}

fn open_all(n: usize, members: PartySet, timeout: Duration) -> Vec<Mesh> {
    let switchboard = Arc::new(Switchboard::default());
    let open = |me| Mesh::open(me, n, members, switchboard.clone(), "0".into(), timeout);
    Party::all(n).filter(|p| members.contains(*p)).map(open).collect()
}

/// Runs all parties of a mesh, each on a thread of its own, and returns what they return, in order.
pub fn run_parties<T: Send>(n: usize, party: impl Fn(&mut dyn Net) -> Result<T> + Sync) -> Vec<Result<T>> {
    run_members(n, PartySet::all(n), party)
}

/// [`run_parties`] with some of `n` parties only.
pub fn run_members<T: Send>(
    n: usize,
    members: PartySet,
    party: impl Fn(&mut dyn Net) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let party = &party;
    std::thread::scope(|scope| {
        let ends = mesh_among(n, members).into_iter();
        let threads: Vec<_> = ends.map(|mut net| scope.spawn(move || party(&mut net))).collect();
        let panicked = |_| Err(Error::System("a party's thread panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}

impl Mesh {
    fn open(
        me: Party,
        n: usize,
        members: PartySet,
        switchboard: Arc<Switchboard>,
        stream: String,
        timeout: Duration,
    ) -> Mesh {
        let is_peer = |p: &Party| *p != me && members.contains(*p);
        let peers = || Party::all(n).map(|p| Some(p).filter(is_peer));
        Mesh {
            me,
            members,
            to: peers().map(|p| switchboard.sender(&stream, me, p?)).collect(),
            from: peers().map(|p| switchboard.receiver(&stream, p?, me)).collect(),
            debts: Party::all(n).map(|_| Debt::none()).collect(),
            switchboard,
            stream,
            forks: 0,
            timeout,
        }
    }
}

impl Mesh {
    /// The next message of a peer that is not lost, which has to have this length.
    fn next(&self, from: Party, len: usize) -> Result<Vec<u8>> {
        let receiver = self.from.get(from.index()).and_then(Option::as_ref);
        let receiver = receiver.ok_or_else(|| Error::misuse(format!("{from} is not a peer")))?;
        if let Some(e) = self.debts[from.index()].error() {
            return Err(e);
        }
        let message = receiver.recv_timeout(self.timeout).map_err(|e| match e {
            RecvTimeoutError::Timeout => Error::Timeout { peer: from, waited: self.timeout },
            RecvTimeoutError::Disconnected => closed(from),
        })?;
        if message.len() != len {
            return Err(wrong_length(from, message.len(), len));
        }
        Ok(message)
    }
}

fn closed(peer: Party) -> Error {
    Error::Closed { peer, detail: "its end of the channel is gone".into() }
}

fn wrong_length(peer: Party, sent: usize, due: usize) -> Error {
    Error::Peer { peer, detail: format!("a message of {sent} bytes where {due} were due") }
}

impl Net for Mesh {
    fn me(&self) -> Party {
        self.me
    }

    fn parties(&self) -> usize {
        self.to.len()
    }

    fn members(&self) -> PartySet {
        self.members
    }

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        let sender = self.to.get(to.index()).and_then(Option::as_ref);
        let sender = sender.ok_or_else(|| Error::misuse(format!("{to} is not a peer")))?;
        if let Some(e) = self.debts[to.index()].error() {
            return Err(e);
        }
        sender.send(message.to_vec()).map_err(|_| closed(to))
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        while let Some(len) = self.debts.get(from.index()).and_then(Debt::front) {
            self.next(from, len)?;
            self.debts[from.index()].settle();
        }
        into.copy_from_slice(&self.next(from, into.len())?);
        Ok(())
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        for (p, message) in Party::all(out.len()).zip(out).filter(|(_, message)| !message.is_empty()) {
            self.send(p, message)?;
        }
        for (p, buffer) in Party::all(into.len()).zip(into).filter(|(_, buffer)| !buffer.is_empty()) {
            self.recv(p, buffer)?;
        }
        Ok(())
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
        self.lost_peers()
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        let stream = format!("{}.{}", self.stream, self.forks);
        self.forks += 1;
        let switchboard = self.switchboard.clone();
        Ok(Box::new(Mesh::open(self.me, self.parties(), self.members, switchboard, stream, self.timeout)))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let stream = format!("{} {members} {}", self.stream, blake3::hash(name));
        let switchboard = self.switchboard.clone();
        Ok(Box::new(Mesh::open(self.me, self.parties(), members, switchboard, stream, self.timeout)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_their_forks_reach_each_other_and_nobody_else() {
        let members = PartySet::from_bits(0b1010);
        let outcomes = run_members(4, members, |net| {
            let mut fork = net.fork()?;
            for net in [net, &mut *fork] {
                assert_eq!((net.parties(), net.members()), (4, members));
                let peer = if net.me() == Party(1) { Party(3) } else { Party(1) };
                net.send(peer, &[net.me().0])?;
                let mut heard = [0];
                net.recv(peer, &mut heard)?;
                assert_eq!(heard, [peer.0]);
                assert!(matches!(net.send(Party(0), &[1]), Err(Error::Misuse(_))));
                assert!(matches!(net.recv(Party(2), &mut heard), Err(Error::Misuse(_))));
            }
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }
}
