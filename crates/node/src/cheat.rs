//! A node that cheats, or is less patient than others, for demonstrations and tests. Compiled with the
//! feature `cheats` only; without it `honest.rs` takes its place.

use std::thread::sleep;
use std::time::Duration;

use polyclave_api::{Reason, Refusal, Reply};
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet};

use crate::Result;
use crate::strategy::guaranteed::ONLINE;

/// How a node cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cheat {
    /// Sends wrong shares to all peers in every opening of a request.
    InOpenings,
    /// Sends wrong messages of replicated sharing, products among them, in requests: round the ring of three,
    /// and to each of the others of four.
    InProducts,
    /// Sends wrong labels and outputs of garbled circuits in requests.
    InCircuits,
    /// Sends wrong bytes to clients.
    InAnswers,
    /// Refuses all steps of clients at once, while it continues with the other nodes.
    RefusesSteps,
    /// Tells clients endlessly that it works, and never answers.
    ClaimsToWork,
    /// Sends no message in any opening of a request: it stops in the middle of the first one.
    Hangs,
    /// Sends every message of a hello late, but within the time limit of a single message.
    GreetsLate,
    /// Does not cheat, but answers clients slowly.
    AnswersLate,
    /// Never says that it holds another node's mark.
    HoldsNothing,
    /// Leaves the hello of a request without opening its nonce once it can know the others' nonces, and waits
    /// for them to begin again.
    LeavesHellos,
    /// Deals other values than its shares, or other masks to the new nodes than to the old ones, when keys
    /// move to other nodes.
    InReshare,
    /// Flips the parity bits of its part of a sealed key.
    FlipsParity,
    /// Uses other shares than it has stored, when keys are opened under masks to move to other nodes.
    WithOtherShares,
}

/// Counts the hellos that were left this way.
#[cfg(test)]
pub(crate) static HELLOS_LEFT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Longer than any node waits for one that hangs.
const FOR_EVER: Duration = Duration::from_secs(70);
/// The delay of a message of a hello.
const LATE_GREETING: Duration = Duration::from_secs(4);
/// The delay of an answer to a client.
const LATE_ANSWER: Duration = Duration::from_millis(4500);

/// More bytes than a stored value has before its shares.
const HEAD_OF_STORED: usize = 128;

/// No message that claims one item of a stock has more bytes, and each one of a garbled circuit does.
const CLAIM: usize = 40;

/// More than a client reads before it has the others' answers.
const CLAIMS: usize = 10_000;

/// How a node behaves: as its protocol says, or not.
#[derive(Clone, Copy)]
pub(crate) struct FaultInjection {
    cheat: Option<Cheat>,
    /// A limit in the place of the usual one, so that a test need not wait for that.
    silence: Option<Duration>,
}

impl From<Cheat> for FaultInjection {
    fn from(cheat: Cheat) -> FaultInjection {
        FaultInjection { cheat: Some(cheat), ..FaultInjection::HONEST }
    }
}

impl FaultInjection {
    /// The behaviour that the protocol prescribes.
    pub(crate) const HONEST: FaultInjection = FaultInjection { cheat: None, silence: None };

    /// The same behaviour, by a node that waits no longer than this for a peer that is silent while a key is
    /// used.
    pub(crate) fn with_silence(self, silence: Duration) -> FaultInjection {
        FaultInjection { silence: Some(silence), ..self }
    }

    /// How long to wait for a peer that is silent while a key is used.
    pub(crate) fn silence(self, usual: Duration) -> Duration {
        self.silence.unwrap_or(usual)
    }

    /// The network that the protocol uses.
    pub(crate) fn net_of_peers(self, net: &mut dyn Net) -> InjectedNet<'_> {
        InjectedNet { net, cheat: self.cheat }
    }

    /// The network that the hello uses. No cheat changes what is said there.
    pub(crate) fn net_in_hello(self, net: &mut dyn Net) -> InjectedNet<'_> {
        InjectedNet { net, cheat: self.cheat.filter(|cheat| *cheat == Cheat::GreetsLate) }
    }

    /// Whether this node leaves a hello before it opens its nonce.
    pub(crate) fn leaves_hello(self) -> bool {
        let leaves = self.cheat == Some(Cheat::LeavesHellos);
        #[cfg(test)]
        HELLOS_LEFT.fetch_add(usize::from(leaves), std::sync::atomic::Ordering::SeqCst);
        leaves
    }

    /// Whether it denies that it holds other nodes' marks.
    pub(crate) fn denies_marks(self) -> bool {
        self.cheat == Some(Cheat::HoldsNothing)
    }

    /// What the node sends to a client at once instead of an answer.
    pub(crate) fn instead_of_answer(self) -> Vec<Reply> {
        match self.cheat {
            Some(Cheat::RefusesSteps) => {
                vec![Reply::Refused(Refusal::new(Reason::Denied, "not this step"))]
            }
            Some(Cheat::ClaimsToWork) => vec![Reply::Working { done: 0, of: 1 }; CLAIMS],
            _ => Vec::new(),
        }
    }

    /// Delays an answer that is ready.
    pub(crate) fn delay(self) {
        if self.cheat == Some(Cheat::AnswersLate) {
            sleep(LATE_ANSWER);
        }
    }

    /// Changes what the node is about to send to a client.
    pub(crate) fn spoil<const N: usize>(self, answers: [&mut Vec<u8>; N]) {
        if self.cheat == Some(Cheat::InAnswers) {
            answers.into_iter().for_each(|bytes| wrong(bytes));
        }
    }

    /// Changes what the node deals when keys move to other nodes: a constant is added to its first value, so
    /// that it is a sharing still.
    pub(crate) fn spoil_dealt<'m>(self, messages: impl IntoIterator<Item = &'m mut [u8]>) {
        if self.cheat == Some(Cheat::InReshare) {
            messages.into_iter().filter(|message| !message.is_empty()).for_each(|message| message[0] ^= 0x5a);
        }
    }

    /// Changes this node's part of a sealed key.
    pub(crate) fn spoil_part(self, part: &mut [u8]) {
        if self.cheat == Some(Cheat::FlipsParity) {
            part.iter_mut().for_each(|byte| *byte ^= 1);
        }
    }

    /// Changes shares that the node has read from its disk, and their MACs. What stands before them is left
    /// as it is.
    pub(crate) fn spoil_stored(self, stored: &mut [u8]) {
        if self.cheat == Some(Cheat::WithOtherShares) {
            wrong(stored.get_mut(HEAD_OF_STORED..).unwrap_or_default());
        }
    }
}

fn wrong(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
}

/// Whether a message goes to one neighbour and another one comes from the other.
fn is_of_ring(out: &[&[u8]], into: &[&mut [u8]]) -> bool {
    let to: Vec<usize> = (0..out.len()).filter(|peer| !out[*peer].is_empty()).collect();
    let from: Vec<usize> = (0..into.len()).filter(|peer| !into[*peer].is_empty()).collect();
    to.len() == 1 && from.len() == 1 && to != from
}

/// Whether several peers get messages that differ, as in the products of four parties.
fn is_for_each(out: &[&[u8]]) -> bool {
    let mut messages = out.iter().filter(|message| !message.is_empty());
    let first = messages.next();
    messages.any(|message| Some(message) != first)
}

/// The network that a node gives to its protocol: unchanged, unless the node cheats in openings. Openings are
/// exchanges of equal messages with all nodes, and messages for one peer alone. The time for which a call
/// waits distinguishes them from claims of material.
pub(crate) struct InjectedNet<'n> {
    net: &'n mut dyn Net,
    cheat: Option<Cheat>,
}

impl InjectedNet<'_> {
    fn is_opening(&self, out: &[&[u8]], into: &[&mut [u8]], patience: Patience) -> bool {
        let peers = || Party::all(out.len()).filter(|p| !out[p.index()].is_empty());
        let with_all = peers().all(|p| into[p.index()].len() == out[p.index()].len());
        let to_one = peers().count() == 1 && into.iter().all(|message| message.is_empty());
        patience.limits >= ONLINE && (with_all || to_one)
    }
}

impl Net for InjectedNet<'_> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost, fork, fork_among);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        if self.cheat != Some(Cheat::InCircuits) || message.len() <= CLAIM {
            return self.net.send(to, message);
        }
        let mut changed = message.to_vec();
        // Behind the name of a circuit, since another name only ends a session. And in a label that gates
        // take, not in one that goes straight to an output.
        changed[CLAIM] ^= 1;
        self.net.send(to, &changed)
    }

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
        let is_wrong = match self.cheat {
            Some(Cheat::InOpenings) => self.is_opening(out, into, patience),
            Some(Cheat::InProducts) => is_for_each(out),
            _ => false,
        };
        if !is_wrong {
            return self.net.gather(out, into, patience, enough);
        }
        let mut shares: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        shares.iter_mut().for_each(|message| wrong(message));
        let out: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
        self.net.gather(&out, into, patience, enough)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        if self.cheat == Some(Cheat::GreetsLate) {
            sleep(LATE_GREETING);
        }
        if self.cheat != Some(Cheat::InProducts) || !is_of_ring(out, into) {
            return self.net.exchange(out, into);
        }
        let mut changed: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        changed.iter_mut().for_each(|message| wrong(message));
        self.net.exchange(&changed.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)
    }
}
