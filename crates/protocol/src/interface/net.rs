//! The interface to the network: authenticated, private, ordered channels between the parties of a session.
//!
//! Protocols communicate through [`Net`] only. The in-memory [`crate::mesh`] implements it for tests and
//! `eval`; the `transport` crate implements it over TLS. Both sides know all lengths beforehand, so a message
//! carries no type. A peer that sends another length is out of step, and that is an error, never a guess.
//!
//! For a protocol that stops if any party does, a peer's failure is an error. A protocol that goes on without
//! some of its parties uses [`Net::gather`], for which a peer that fails is merely *lost*.

use std::time::Duration;

use crate::{Error, Party, PartySet, Result};

/// The result of a [`Net::gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Peers whose messages are complete.
    pub arrived: PartySet,
    /// Peers that were given up, now or earlier. A peer that failed right after its message came is in both
    /// sets.
    pub lost: PartySet,
}

/// How long a gathering waits for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// This many times the limit of a single wait.
    pub limits: u32,
    /// In addition, the time for this many bytes at [`MIN_BYTES_PER_SECOND`]: those of messages that the peer
    /// may still have been waiting for.
    pub bytes: u64,
}

/// A message has to arrive at this rate at least, after the time limit for its beginning. So a byte now and
/// then is no answer.
pub const MIN_BYTES_PER_SECOND: u64 = 16 << 10;

impl Patience {
    /// Patience for this many limits.
    pub const fn of(limits: u32) -> Patience {
        Patience { limits, bytes: 0 }
    }

    /// The time that a message may take to begin, if `limit` is the limit of a single wait.
    pub fn to_begin(self, limit: Duration) -> Duration {
        let millis = self.bytes.saturating_mul(1000) / MIN_BYTES_PER_SECOND;
        limit.saturating_mul(self.limits) + Duration::from_millis(millis)
    }

    /// The time that a message of `bytes` bytes may take in all.
    pub fn to_end(self, limit: Duration, bytes: usize) -> Duration {
        let more = Patience { bytes: self.bytes.saturating_add(bytes as u64), ..self };
        more.to_begin(limit)
    }
}

/// One party's channels to all other parties. Blocking; every wait ends in a time-out error.
pub trait Net: Send {
    /// This party.
    fn me(&self) -> Party;

    /// Number of parties, this one included; they are `Party(0) .. Party(n - 1)`.
    fn parties(&self) -> usize;

    /// The parties that are connected, this one included. All, unless only some serve; the others can be
    /// neither sent to nor received from.
    fn members(&self) -> PartySet {
        PartySet::all(self.parties())
    }

    /// Sends one message to one party.
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()>;

    /// Receives one message of exactly `into.len()` bytes from one party.
    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()>;

    /// Sends `out[p]` to and receives `into[p]` from every other party p, all at once: no order of sizes can
    /// deadlock. Empty entries (always that of `me`) are neither sent nor awaited. Returns when everything
    /// has arrived and everything has been handed to the operating system.
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()>;

    /// A [`Net::exchange`] in which peers may be late or fail. At the beginning, and whenever a peer's
    /// message is complete, the call asks `enough`, with all peers whose messages are complete so far and
    /// with the buffers. Once `enough` returns true, the call returns. Otherwise it returns when every
    /// awaited peer has arrived or is lost.
    ///
    /// Messages that are incomplete then are *late*. Later calls on this stream, of any kind, first receive
    /// and discard what is late from a peer, and then receive the message that they need from it. Bytes that
    /// the operating system has not taken yet are kept as a copy, and later calls send them before anything
    /// else to the same peer. The content of a buffer whose peer has not arrived is undefined.
    ///
    /// **The kept bytes move only during later calls on this stream, or when it is dropped.** A caller that
    /// waits elsewhere in between for parties that may be behind here (on another stream, or for a process to
    /// end) first has to wait for them here.
    ///
    /// A peer is *lost* when its connection ends or breaks; when its message has another length than is due;
    /// when it is too many bytes behind, in what it owes or in what it does not take; when it moves no byte
    /// for the time that `patience` gives a message to begin, while this call waits for it or while it owes
    /// something late; and, over a real network, when its message takes longer in all than `patience` gives
    /// one of its length. A lost peer is neither sent to nor waited for again. The other calls, if they
    /// involve it, return the error by which it was lost.
    ///
    /// An error is a misuse, a failure of this machine, or the error of an earlier call, but never a peer's.
    /// The exception is a network that does not know lost peers. That is the default; it fails as an exchange
    /// does.
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let _ = patience;
        self.exchange(out, into)?;
        let arrived: PartySet =
            Party::all(into.len()).filter(|from| !into[from.index()].is_empty()).collect();
        enough(arrived, into);
        Ok(Gathered { arrived, lost: PartySet::from_bits(0) })
    }

    /// The peers that a [`Net::gather`] has given up.
    fn lost(&self) -> PartySet {
        PartySet::from_bits(0)
    }

    /// An independent stream to the same parties, for another thread. Every party must fork in the same
    /// order.
    fn fork(&mut self) -> Result<Box<dyn Net>>;

    /// An independent stream to some of the members, this party included. These give it the same name, which
    /// nothing else has, and the others take no part. It also reaches a peer that is lost here.
    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let _ = name;
        Err(Error::Misuse(format!("this network has no streams of its own for {members}")))
    }
}

/// Methods of [`Net`] that a network passes on to the one below as they are, for its implementation:
/// `forward_net!(self => self.net; me, parties, members, send, recv)`. Those that are not named are written
/// out, or are the trait's.
#[macro_export]
macro_rules! forward_net {
    ($this:ident => $below:expr; $($method:ident),+) => {
        $($crate::forward_net!(@$method $this, $below);)+
    };
    (@me $this:ident, $below:expr) => {
        fn me(&$this) -> $crate::Party {
            $crate::net::Net::me(&$below)
        }
    };
    (@parties $this:ident, $below:expr) => {
        fn parties(&$this) -> usize {
            $crate::net::Net::parties(&$below)
        }
    };
    (@members $this:ident, $below:expr) => {
        fn members(&$this) -> $crate::PartySet {
            $crate::net::Net::members(&$below)
        }
    };
    (@send $this:ident, $below:expr) => {
        fn send(&mut $this, to: $crate::Party, message: &[u8]) -> $crate::Result<()> {
            $crate::net::Net::send(&mut $below, to, message)
        }
    };
    (@recv $this:ident, $below:expr) => {
        fn recv(&mut $this, from: $crate::Party, into: &mut [u8]) -> $crate::Result<()> {
            $crate::net::Net::recv(&mut $below, from, into)
        }
    };
    (@exchange $this:ident, $below:expr) => {
        fn exchange(&mut $this, out: &[&[u8]], into: &mut [&mut [u8]]) -> $crate::Result<()> {
            $crate::net::Net::exchange(&mut $below, out, into)
        }
    };
    (@gather $this:ident, $below:expr) => {
        fn gather(
            &mut $this,
            out: &[&[u8]],
            into: &mut [&mut [u8]],
            patience: $crate::net::Patience,
            enough: &mut dyn FnMut($crate::PartySet, &[&mut [u8]]) -> bool,
        ) -> $crate::Result<$crate::net::Gathered> {
            $crate::net::Net::gather(&mut $below, out, into, patience, enough)
        }
    };
    (@lost $this:ident, $below:expr) => {
        fn lost(&$this) -> $crate::PartySet {
            $crate::net::Net::lost(&$below)
        }
    };
    (@fork_among $this:ident, $below:expr) => {
        fn fork_among(
            &mut $this,
            members: $crate::PartySet,
            name: &[u8],
        ) -> $crate::Result<Box<dyn $crate::net::Net>> {
            $crate::net::Net::fork_among(&mut $below, members, name)
        }
    };
    (@fork $this:ident, $below:expr) => {
        fn fork(&mut $this) -> $crate::Result<Box<dyn $crate::net::Net>> {
            $crate::net::Net::fork(&mut $below)
        }
    };
}

/// So that networks can wrap what `fork` returns, and what they are lent.
impl<N: Net + ?Sized> Net for Box<N> {
    forward_net!(self => **self; me, parties, members, send, recv, exchange, gather, lost, fork, fork_among);
}

impl<N: Net + ?Sized> Net for &mut N {
    forward_net!(self => **self; me, parties, members, send, recv, exchange, gather, lost, fork, fork_among);
}
