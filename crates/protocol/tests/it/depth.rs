//! How many one-way messages wait for each other: a network between two parties that counts them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result, forward_net};

/// Of messages that are under way to each party: how many there are in a row.
pub type UnderWay = Arc<[Mutex<VecDeque<u64>>; 2]>;

/// A party's end of it.
pub struct Deep<'n> {
    net: &'n mut dyn Net,
    under_way: UnderWay,
    /// How many messages, one after the other, this party has waited for.
    pub depth: u64,
}

impl<'n> Deep<'n> {
    pub fn new(net: &'n mut dyn Net, under_way: &UnderWay, depth: u64) -> Self {
        Deep { net, under_way: under_way.clone(), depth }
    }

    fn note_sent(&self, to: Party) {
        self.under_way[to.index()].lock().push_back(self.depth + 1);
    }

    fn note_received(&mut self) {
        let came = self.under_way[self.me().index()].lock().pop_front();
        self.depth = self.depth.max(came.expect("it was sent"));
    }
}

impl Net for Deep<'_> {
    forward_net!(self => self.net; me, parties, members, lost, fork, fork_among);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.note_sent(to);
        self.net.send(to, message)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)?;
        self.note_received();
        Ok(())
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let to = Party::all(out.len()).filter(|party| !out[party.index()].is_empty());
        to.for_each(|party| self.note_sent(party));
        self.net.exchange(out, into)?;
        (0..into.iter().filter(|message| !message.is_empty()).count()).for_each(|_| self.note_received());
        Ok(())
    }
}
