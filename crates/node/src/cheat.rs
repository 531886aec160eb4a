//! For demonstrations and tests: a node that cheats. Nothing here changes what a node does that does not.

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Party, PartySet};

use crate::Result;

/// How a node cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Cheat {
    /// Wrong shares to all peers in every opening of a request.
    InOpenings,
    /// Wrong bytes to clients.
    InAnswers,
}

/// Changes what is about to be sent to a client.
pub(crate) fn spoil(cheat: Option<Cheat>, answers: [&mut Vec<u8>; 2]) {
    if cheat == Some(Cheat::InAnswers) {
        answers.into_iter().for_each(|bytes| wrong(bytes));
    }
}

fn wrong(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
}

/// What a node gives its protocol as its network: as it is, unless the node cheats in openings. These are exchanges of equal messages
/// with everybody, and what one peer alone is sent, and are told from claims of material by how long they wait.
pub(crate) struct Partners<'n> {
    pub(crate) net: &'n mut dyn Net,
    pub(crate) cheat: Option<Cheat>,
}

impl Partners<'_> {
    fn is_opening(&self, out: &[&[u8]], into: &[&mut [u8]], patience: Patience) -> bool {
        let peers = || Party::all(out.len()).filter(|p| !out[p.index()].is_empty());
        let with_all = peers().all(|p| into[p.index()].len() == out[p.index()].len());
        let to_one = peers().count() == 1 && into.iter().all(|message| message.is_empty());
        patience.limits > 1 && (with_all || to_one)
    }
}

impl Net for Partners<'_> {
    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        if self.cheat != Some(Cheat::InOpenings) {
            return self.net.gather(out, into, patience, enough);
        }
        let mut shares: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        if self.is_opening(out, into, patience) {
            shares.iter_mut().for_each(|message| wrong(message));
        }
        let out: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
        self.net.gather(&out, into, patience, enough)
    }

    fn me(&self) -> Party {
        self.net.me()
    }

    fn parties(&self) -> usize {
        self.net.parties()
    }

    fn members(&self) -> PartySet {
        self.net.members()
    }

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.net.exchange(out, into)
    }

    fn lost(&self) -> PartySet {
        self.net.lost()
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}
