//! For demonstrations and tests: a node that cheats. With the feature `cheats` only; without it `honest.rs` stands here.

use std::thread::sleep;
use std::time::Duration;

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::wire::{Reason, Refusal, Reply};

use crate::Result;
use crate::strategy::guaranteed::ONLINE;

/// How a node cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cheat {
    /// Wrong shares to all peers in every opening of a request.
    InOpenings,
    /// Wrong bytes to clients.
    InAnswers,
    /// Refusals to clients of all steps, at once, while it goes on with the other nodes.
    RefusesSteps,
    /// Claims to clients that it works, without end for all they can tell, instead of answers.
    ClaimsToWork,
    /// No message in any opening of a request: it stops in the middle of the first one.
    Hangs,
    /// Every message of a hello late, if not too late by itself.
    GreetsLate,
    /// None, but for being slow to answer clients.
    AnswersLate,
    /// It never says that it holds another node's mark.
    HoldsNothing,
    /// No nonce in the hello of a request once it can know those of the others: it leaves, and waits for them to begin anew.
    LeavesHellos,
}

/// Hellos that were left so.
#[cfg(test)]
pub(crate) static HELLOS_LEFT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Longer than anybody waits for one that hangs.
const FOR_EVER: Duration = Duration::from_secs(70);
/// Late for a message of a hello.
const LATE_GREETING: Duration = Duration::from_secs(4);
/// Late for an answer to a client.
const LATE_ANSWER: Duration = Duration::from_millis(4500);

/// More than a client reads before it has the others' answers.
const CLAIMS: usize = 10_000;

/// How a node behaves: as its protocol says, or not.
#[derive(Clone, Copy)]
pub(crate) struct Conduct(Option<Cheat>);

impl From<Cheat> for Conduct {
    fn from(cheat: Cheat) -> Conduct {
        Conduct(Some(cheat))
    }
}

impl Conduct {
    /// As the protocol says.
    pub(crate) const HONEST: Conduct = Conduct(None);

    /// The network as the protocol gets it.
    pub(crate) fn partners(self, net: &mut dyn Net) -> Partners<'_> {
        Partners { net, cheat: self.0 }
    }

    /// Whether this node leaves a hello before it opens its nonce.
    pub(crate) fn leaves_hello(self) -> bool {
        let leaves = self.0 == Some(Cheat::LeavesHellos);
        #[cfg(test)]
        HELLOS_LEFT.fetch_add(usize::from(leaves), std::sync::atomic::Ordering::SeqCst);
        leaves
    }

    /// Whether it denies that it holds other nodes' marks.
    pub(crate) fn denies_marks(self) -> bool {
        self.0 == Some(Cheat::HoldsNothing)
    }

    /// What is said to a client at once instead of an answer.
    pub(crate) fn instead_of_answer(self) -> Vec<Reply> {
        match self.0 {
            Some(Cheat::RefusesSteps) => {
                vec![Reply::Refused(Refusal::new(Reason::Denied, "not this step"))]
            }
            Some(Cheat::ClaimsToWork) => vec![Reply::Working { done: 0, of: 1 }; CLAIMS],
            _ => Vec::new(),
        }
    }

    /// Waits with an answer that is ready.
    pub(crate) fn delay(self) {
        if self.0 == Some(Cheat::AnswersLate) {
            sleep(LATE_ANSWER);
        }
    }

    /// Changes what is about to be sent to a client.
    pub(crate) fn spoil<const N: usize>(self, answers: [&mut Vec<u8>; N]) {
        if self.0 == Some(Cheat::InAnswers) {
            answers.into_iter().for_each(|bytes| wrong(bytes));
        }
    }
}

fn wrong(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
}

/// What a node gives its protocol as its network: as it is, unless the node cheats in openings. These are exchanges of equal messages
/// with everybody, and what one peer alone is sent, and are told from claims of material by how long they wait.
pub(crate) struct Partners<'n> {
    net: &'n mut dyn Net,
    cheat: Option<Cheat>,
}

impl Partners<'_> {
    fn is_opening(&self, out: &[&[u8]], into: &[&mut [u8]], patience: Patience) -> bool {
        let peers = || Party::all(out.len()).filter(|p| !out[p.index()].is_empty());
        let with_all = peers().all(|p| into[p.index()].len() == out[p.index()].len());
        let to_one = peers().count() == 1 && into.iter().all(|message| message.is_empty());
        patience.limits >= ONLINE && (with_all || to_one)
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
        if self.cheat == Some(Cheat::Hangs) && self.is_opening(out, into, patience) {
            sleep(FOR_EVER);
            return Err(Error::System("it hung".into()));
        }
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
        if self.cheat == Some(Cheat::GreetsLate) {
            sleep(LATE_GREETING);
        }
        self.net.exchange(out, into)
    }

    fn lost(&self) -> PartySet {
        self.net.lost()
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}
