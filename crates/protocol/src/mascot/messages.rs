//! Messages between all pairs of parties, in memory that is reused. Sent data is wiped when it is dropped.

use polyclave_kernels::memory::wipe;

use crate::interface::net::Net;
use crate::{Party, Result};

/// Those of one exchange, by peer.
pub(super) struct Messages {
    out: Vec<Vec<u8>>,
    into: Vec<Vec<u8>>,
}

impl Messages {
    /// Among this many parties.
    pub(super) fn new(parties: usize) -> Messages {
        Messages { out: vec![Vec::new(); parties], into: vec![Vec::new(); parties] }
    }

    /// Room for the next message to a party; what it holds is undefined. Every party has to be asked for.
    pub(super) fn outgoing(&mut self, to: Party, len: usize) -> &mut [u8] {
        let message = &mut self.out[to.index()];
        // Growing must leave no copy behind.
        if message.capacity() < len {
            wipe(message);
        }
        message.resize(len, 0);
        message
    }

    /// Sends every peer its message and receives `len(p)` bytes from p. One round.
    pub(super) fn exchange(&mut self, len: impl Fn(Party) -> usize, net: &mut dyn Net) -> Result<()> {
        for (p, message) in Party::all(self.into.len()).zip(&mut self.into) {
            message.resize(len(p), 0);
        }
        let out: Vec<&[u8]> = self.out.iter().map(Vec::as_slice).collect();
        net.exchange(&out, &mut self.into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
    }

    /// What came last from a peer.
    pub(super) fn incoming(&self, from: Party) -> &[u8] {
        &self.into[from.index()]
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.out.iter_mut().for_each(wipe);
    }
}
