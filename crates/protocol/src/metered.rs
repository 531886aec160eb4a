//! Counts what a protocol sends: payload bytes, messages, and rounds of communication.
//!
//! [`Metered`] wraps any network; its counts are of the protocol's own bytes, before framing and encryption
//! (the transport's wire meter has those). Forks count into the same [`Meter`]. Costs a few atomic additions
//! per call.

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::interface::net::{Gathered, Net, Patience};
use crate::{Party, PartySet, Result};

/// A network whose traffic is counted.
pub struct Metered<N> {
    net: N,
    meter: Arc<Meter>,
}

/// The counters of a network and of all its forks.
#[derive(Debug, Default)]
pub struct Meter {
    payload_sent: AtomicU64,
    payload_received: AtomicU64,
    messages_sent: AtomicU64,
    exchanges: AtomicU64,
}

/// What was counted up to a moment, or between two: subtract the earlier from the later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of all messages sent.
    pub payload_sent: u64,
    /// Bytes of all messages received.
    pub payload_received: u64,
    /// Messages sent. An empty entry of an exchange does not count.
    pub messages_sent: u64,
    /// Exchanges and gatherings, in which every party sends and receives at once: rounds, if the protocol
    /// talks in no other way.
    pub exchanges: u64,
}

impl<N: Net> Metered<N> {
    /// Counts from zero.
    pub fn new(net: N) -> Self {
        Metered { net, meter: Arc::default() }
    }

    /// The counters, to be read while the network is in use.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl Meter {
    /// The counts now.
    pub fn snapshot(&self) -> Traffic {
        Traffic {
            payload_sent: self.payload_sent.load(Relaxed),
            payload_received: self.payload_received.load(Relaxed),
            messages_sent: self.messages_sent.load(Relaxed),
            exchanges: self.exchanges.load(Relaxed),
        }
    }

    fn sent(&self, bytes: usize, messages: usize) {
        self.payload_sent.fetch_add(bytes as u64, Relaxed);
        self.messages_sent.fetch_add(messages as u64, Relaxed);
    }

    fn received(&self, bytes: usize) {
        self.payload_received.fetch_add(bytes as u64, Relaxed);
    }
}

impl Sub for Traffic {
    type Output = Traffic;

    fn sub(self, earlier: Traffic) -> Traffic {
        Traffic {
            payload_sent: self.payload_sent - earlier.payload_sent,
            payload_received: self.payload_received - earlier.payload_received,
            messages_sent: self.messages_sent - earlier.messages_sent,
            exchanges: self.exchanges - earlier.exchanges,
        }
    }
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            payload_sent: self.payload_sent + other.payload_sent,
            payload_received: self.payload_received + other.payload_received,
            messages_sent: self.messages_sent + other.messages_sent,
            exchanges: self.exchanges + other.exchanges,
        }
    }
}

impl<N: Net> Net for Metered<N> {
    crate::forward_net!(self => self.net; me, parties, members, lost);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)?;
        self.meter.sent(message.len(), 1);
        Ok(())
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)?;
        self.meter.received(into.len());
        Ok(())
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.net.exchange(out, into)?;
        let sent = out.iter().map(|message| message.len()).sum();
        self.meter.sent(sent, out.iter().filter(|message| !message.is_empty()).count());
        self.meter.received(into.iter().map(|buffer| buffer.len()).sum());
        self.meter.exchanges.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Counts what goes to peers that are not lost before, and what arrives in time.
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let lost = self.net.lost();
        let gathered = self.net.gather(out, into, patience, enough)?;
        for (_, message) in
            Party::all(out.len()).zip(out).filter(|(to, message)| !message.is_empty() && !lost.contains(*to))
        {
            self.meter.sent(message.len(), 1);
        }
        self.meter.received(gathered.arrived.iter().map(|from| into[from.index()].len()).sum());
        self.meter.exchanges.fetch_add(1, Relaxed);
        Ok(gathered)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Ok(Box::new(Metered { net: self.net.fork()?, meter: self.meter.clone() }))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        Ok(Box::new(Metered { net: self.net.fork_among(members, name)?, meter: self.meter.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::mesh;

    #[test]
    fn a_phase_is_the_difference_of_two_snapshots() {
        let nets = mesh(3).into_iter().map(Metered::new);
        std::thread::scope(|scope| {
            for mut net in nets {
                scope.spawn(move || {
                    let meter = net.meter();
                    swap(&mut net, 5);
                    let before = meter.snapshot();
                    swap(&mut net, 7);
                    let phase = meter.snapshot() - before;
                    let expected =
                        Traffic { payload_sent: 14, payload_received: 14, messages_sent: 2, exchanges: 1 };
                    assert_eq!(phase, expected);
                    let first = Traffic { payload_sent: 10, payload_received: 10, ..expected };
                    assert_eq!(meter.snapshot(), first + phase);
                });
            }
        });
    }

    #[test]
    fn forks_and_single_messages_count_too() {
        let mut nets = mesh(2).into_iter().map(Metered::new);
        let (mut a, mut b) = (nets.next().expect("two"), nets.next().expect("two"));
        let (mut a2, mut b2) = (a.fork().expect("fork"), b.fork().expect("fork"));
        a2.send(Party(1), &[1, 2, 3]).expect("send");
        b2.recv(Party(0), &mut [0; 3]).expect("recv");
        let (sender, receiver) = (a.meter().snapshot(), b.meter().snapshot());
        assert_eq!(sender, Traffic { payload_sent: 3, messages_sent: 1, ..Traffic::default() });
        assert_eq!(receiver, Traffic { payload_received: 3, ..Traffic::default() });
    }

    /// All parties send `len` bytes to all.
    fn swap(net: &mut dyn Net, len: usize) {
        let me = net.me();
        let message = vec![me.0; len];
        let out: Vec<&[u8]> = Party::all(3).map(|p| if p == me { &[][..] } else { &message[..] }).collect();
        let mut into: Vec<Vec<u8>> = Party::all(3).map(|p| vec![0; if p == me { 0 } else { len }]).collect();
        let mut into: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
        net.exchange(&out, &mut into).expect("exchange");
    }
}
