//! Limits on time and size. Every step of the transport ends under one of them.

use std::time::Duration;

use polyclave_protocol::{Error, Result};

/// The largest number that a frame's header can hold.
const LARGEST_FRAME: usize = u32::MAX as usize;

/// How long a client dials a node before it takes it for gone. Nodes know it, too: for this long a client may
/// leave a connection alone that it has just made, since it dials others.
pub const CLIENT_CONNECT: Duration = Duration::from_secs(3);

/// Limits on time and size of everything that a peer or a stranger can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until all peers are connected, from the beginning of `join`, `fork` or `stream`; and for a client's
    /// call of a node.
    pub connect: Duration,
    /// For how long a client tries a node again that refuses the connection: it may just be starting.
    pub refused: Duration,
    /// Until an incoming connection has shown its certificate and stream.
    pub handshake: Duration,
    /// Until a peer that owes bytes, or that should take ours, moves at least one; and at a mesh, until
    /// somebody asks for a connection.
    pub idle: Duration,
    /// Bytes of one frame; a larger message travels as several. The same at every party.
    pub max_frame: usize,
    /// By how many bytes a peer may be behind in gatherings: bytes that it owes and nobody waits for any
    /// more, and the same number of bytes that are kept for it because it does not take them.
    pub max_backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(20),
            refused: Duration::from_millis(300),
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            max_frame: 16 << 20,
            max_backlog: 64 << 20,
        }
    }
}

impl Limits {
    /// Limits between clients and nodes: frames no larger than their messages, so that little of what a
    /// client sends ahead is kept.
    pub fn for_clients() -> Limits {
        Limits { max_frame: 1 << 20, ..Limits::default() }
    }

    /// Refuses limits under which nothing could be sent.
    pub(crate) fn check(&self) -> Result<()> {
        if self.max_frame == 0 || self.max_frame > LARGEST_FRAME {
            let message =
                format!("a frame limit of {} bytes is not within 1 .. {LARGEST_FRAME}", self.max_frame);
            return Err(Error::misuse(message));
        }
        for (name, limit) in [("connect", self.connect), ("handshake", self.handshake), ("idle", self.idle)] {
            if limit.is_zero() {
                return Err(Error::misuse(format!("the {name} limit is zero; give it some time")));
            }
        }
        Ok(())
    }
}
