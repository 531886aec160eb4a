//! The network port: authenticated, private, ordered channels between the parties of a session.
//!
//! Protocols talk through [`Net`] only. The in-memory [`crate::mesh`] implements it for tests and `eval`; the
//! `transport` crate implements it over TLS. All lengths are known to both sides beforehand, so a message carries
//! no type: a peer that sends another length is out of step, and that is an error, never a guess.

use crate::{Party, PartySet, Result};

/// What came of a [`Net::gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Peers whose messages are complete.
    pub arrived: PartySet,
    /// Peers that are given up, now or earlier.
    pub lost: PartySet,
}

/// One party's channels to all other parties. Blocking; every wait ends in a time-out error.
pub trait Net: Send {
    /// This party.
    fn me(&self) -> Party;

    /// Number of parties, this one included; they are `Party(0) .. Party(n - 1)`.
    fn parties(&self) -> usize;

    /// The parties that are connected, this one included. All, unless only some serve; the others can be neither sent to
    /// nor received from.
    fn members(&self) -> PartySet {
        PartySet::all(self.parties())
    }

    /// Sends one message to one party.
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()>;

    /// Receives one message of exactly `into.len()` bytes from one party.
    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()>;

    /// Sends `out[p]` to and receives `into[p]` from every other party p, all at once: no order of sizes can
    /// deadlock. Empty entries (always that of `me`) are neither sent nor awaited. Returns when everything has
    /// arrived and everything has been handed to the operating system.
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()>;

    /// [`exchange`](Net::exchange) with peers that may fail.
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: u32,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let _ = patience;
        self.exchange(out, into)?;
        let awaited = Party::all(into.len()).zip(into.iter()).filter(|(_, message)| !message.is_empty());
        let arrived = awaited.map(|(peer, _)| peer).collect();
        enough(arrived, into);
        Ok(Gathered { arrived, lost: PartySet::from_bits(0) })
    }

    /// Peers that a [`gather`](Net::gather) has given up.
    fn lost(&self) -> PartySet {
        PartySet::from_bits(0)
    }

    /// An independent stream to the same parties, for another thread. Every party must fork in the same order.
    fn fork(&mut self) -> Result<Box<dyn Net>>;
}
