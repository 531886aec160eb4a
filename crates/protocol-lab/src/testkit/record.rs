//! A network that records every message, to count messages and to compare what a party saw in two runs.
//!
//! Wrap one party's network for that party's view. Within an exchange the order is that of the parties, all
//! sent before all received, whatever the network did; messages of forks in several threads interleave as
//! they happened.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Party, PartySet, Result};

/// A network whose messages are recorded.
pub struct Record<N> {
    net: N,
    transcript: Transcript,
}

/// All messages of a network and its forks so far. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    messages: Arc<Mutex<Vec<Message>>>,
}

/// One message that a party sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Seen from the recording party.
    pub direction: Direction,
    /// The other party.
    pub peer: Party,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

impl<N: Net> Record<N> {
    /// Records from now on.
    pub fn new(net: N) -> Self {
        Record { net, transcript: Transcript::default() }
    }

    /// What has been and will be recorded.
    pub fn transcript(&self) -> Transcript {
        self.transcript.clone()
    }
}

impl Transcript {
    /// All messages so far, in order.
    pub fn messages(&self) -> Vec<Message> {
        self.lock().clone()
    }

    /// How many messages went in that direction so far.
    pub fn count(&self, direction: Direction) -> usize {
        self.lock().iter().filter(|message| message.direction == direction).count()
    }

    /// How many bytes went in that direction so far.
    pub fn bytes(&self, direction: Direction) -> usize {
        self.lock()
            .iter()
            .filter(|message| message.direction == direction)
            .map(|message| message.bytes.len())
            .sum()
    }

    fn push(&self, direction: Direction, peer: Party, bytes: &[u8]) {
        self.lock().push(Message { direction, peer, bytes: bytes.to_vec() });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock()
    }
}

impl<N: Net> Net for Record<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, lost);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)?;
        self.transcript.push(Direction::Sent, to, message);
        Ok(())
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)?;
        self.transcript.push(Direction::Received, from, into);
        Ok(())
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.net.exchange(out, into)?;
        for (peer, message) in Party::all(out.len()).zip(out).filter(|(_, message)| !message.is_empty()) {
            self.transcript.push(Direction::Sent, peer, message);
        }
        for (peer, message) in Party::all(into.len()).zip(into).filter(|(_, message)| !message.is_empty()) {
            self.transcript.push(Direction::Received, peer, message);
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
        let lost = self.net.lost();
        let gathered = self.net.gather(out, into, patience, enough)?;
        for (peer, message) in Party::all(out.len()).zip(out) {
            if !message.is_empty() && !lost.contains(peer) {
                self.transcript.push(Direction::Sent, peer, message);
            }
        }
        for peer in gathered.arrived.iter() {
            self.transcript.push(Direction::Received, peer, into[peer.index()]);
        }
        Ok(gathered)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Ok(Box::new(Record { net: self.net.fork()?, transcript: self.transcript.clone() }))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        Ok(Box::new(Record { net: self.net.fork_among(members, name)?, transcript: self.transcript.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_protocol::mesh::mesh;

    #[test]
    fn transcripts_of_both_ends_mirror_each_other() {
        let mut nets = mesh(2).into_iter().map(Record::new);
        let (mut a, mut b) = (nets.next().expect("two"), nets.next().expect("two"));
        a.send(Party(1), b"question").expect("send");
        b.exchange(&[b"answer", b""], &mut [&mut [0; 8], &mut []]).expect("exchange");
        a.fork().expect("fork").send(Party(1), b"aside").expect("send");
        a.recv(Party(1), &mut [0; 6]).expect("recv");

        let message = |direction, peer, bytes: &[u8]| Message { direction, peer, bytes: bytes.to_vec() };
        let expected = [
            message(Direction::Sent, Party(1), b"question"),
            message(Direction::Sent, Party(1), b"aside"),
            message(Direction::Received, Party(1), b"answer"),
        ];
        assert_eq!(a.transcript().messages(), expected);
        let expected = [
            message(Direction::Sent, Party(0), b"answer"),
            message(Direction::Received, Party(0), b"question"),
        ];
        assert_eq!(b.transcript().messages(), expected);
        assert_eq!((a.transcript().count(Direction::Sent), a.transcript().bytes(Direction::Sent)), (2, 13));
    }
}
