//! Limits on time and size. Every step of the transport ends under one of them.

use std::time::Duration;

use polyclave_protocol::{Error, Result};

/// The largest number that a frame's header can hold.
const LARGEST_FRAME: usize = u32::MAX as usize;

/// Limits on time and size of everything that a peer or a stranger can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For all peers to be connected, from the beginning of `join`, `fork` or `stream`, and for a client's call of a node.
    pub connect: Duration,
    /// For an incoming connection to show who it is.
    pub handshake: Duration,
    /// For a peer that owes bytes, or a place to put ours, to move at least one; and at a mesh, for a connection to be
    /// asked for.
    pub idle: Duration,
    /// Bytes of one frame; a larger message travels as several. The same at every party.
    pub max_frame: usize,
    /// Bytes by which a peer may be behind in gatherings: that it owes and nobody waits for any more, and as many that are
    /// kept for it since it does not take them.
    pub max_backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(20),
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            max_frame: 16 << 20,
            max_backlog: 64 << 20,
        }
    }
}

impl Limits {
    /// Between clients and nodes: frames no larger than their messages, so that little of what a client sends ahead is kept.
    pub fn for_clients() -> Limits {
        Limits { max_frame: 1 << 20, ..Limits::default() }
    }

    /// Refuses limits under which nothing could move.
    pub(crate) fn check(&self) -> Result<()> {
        if self.max_frame == 0 || self.max_frame > LARGEST_FRAME {
            let told =
                format!("a frame limit of {} bytes is not within 1 .. {LARGEST_FRAME}", self.max_frame);
            return Err(Error::misuse(told));
        }
        for (name, limit) in [("connect", self.connect), ("handshake", self.handshake), ("idle", self.idle)] {
            if limit.is_zero() {
                return Err(Error::misuse(format!("the {name} limit is zero; give it some time")));
            }
        }
        Ok(())
    }
}
