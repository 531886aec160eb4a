//! The fault suite for every protocol: one party cheats in one message. The suite tries every message and
//! every fault in turn.
//!
//! The verdict depends on what a protocol promises ([`Adversary`]). Under an active protocol every honest
//! party ends with the right output or with an error, never with a wrong output. Under a passive protocol
//! outputs may be wrong. Under neither does a party panic, or run for longer than the time limits explain.
//! Under an active protocol no error of an honest party accuses another honest party. Under a passive
//! protocol, honest parties that were misled cannot tell why the other's messages do not fit.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};

use super::tamper::{Fault, Tamper};
use polyclave_protocol::{Error, Party, PartySet, Result};

/// For runs in which somebody is missed: every one of them takes that long.
pub const SOON: Duration = Duration::from_millis(300);
/// For runs in which nobody is missed, however busy the machine is.
pub const LATE: Duration = Duration::from_secs(30);
/// A run that takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// Runs parties on threads, one for each end of a mesh, and returns what they return, in order.
///
/// # Panics
/// If a party panics, or runs for longer than any time limit explains.
pub fn run_over<N: Net + 'static, T: Send + 'static>(
    ends: Vec<N>,
    party: impl Fn(&mut dyn Net) -> Result<T> + Send + Sync + 'static,
) -> Vec<Result<T>> {
    let (party, until) = (Arc::new(party), Instant::now() + HANG);
    // Not scoped: a party that hangs must not keep the test from failing.
    let threads: Vec<_> = ends
        .into_iter()
        .map(|mut net| {
            let (party, (done, outcome)) = (party.clone(), channel());
            std::thread::spawn(move || done.send(party(&mut net)));
            outcome
        })
        .collect();
    let outcome = |(i, thread): (usize, &std::sync::mpsc::Receiver<_>)| match thread
        .recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => panic!("party {} hangs", i + 1),
        Err(RecvTimeoutError::Disconnected) => panic!("party {} panicked", i + 1),
    };
    threads.iter().enumerate().map(outcome).collect()
}

/// What an honest party may end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// An error or the right output.
    RightOrAborted,
    /// An error or any output.
    Anything,
}

impl Promise {
    /// What a scheme promises.
    pub fn of<S: ProtocolConfig>(config: &S) -> Promise {
        match config.adversary() {
            Adversary::Passive => Promise::Anything,
            Adversary::Abort | Adversary::GuaranteedOutput => Promise::RightOrAborted,
        }
    }
}

/// One party that cheats in one message at a time.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Number of parties.
    pub parties: usize,
    /// The party that cheats.
    pub cheater: Party,
    /// What honest parties may end with.
    pub promise: Promise,
    /// Committed on every message.
    pub faults: Vec<Fault>,
    /// The first message with faults, 0 for all. Those before have a sweep of their own.
    pub first: u64,
    /// [`Fault::Drop`] is committed on one message of this many, since it costs a time limit: 1 for all.
    pub drop_every: u64,
    /// Whether honest parties may make up for a message that is lost or cut short, so that none of them
    /// notices. Then all of them have to end as promised, and some faults have to be noticed by all.
    pub corrects: bool,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Messages that the cheater sends.
    pub messages: u64,
    /// Faults that were committed.
    pub faults: u64,
    /// How many of these left some honest party with an output.
    pub survived: u64,
}

/// One flipped bit, an old message, a short one, noise.
pub const QUICK_FAULTS: [Fault; 4] =
    [Fault::FlipBit { byte: 0, bit: 0 }, Fault::Replay, Fault::Truncate, Fault::Garbage { seed: 1 }];

impl Sweep {
    /// Every fault on every message.
    pub fn new(parties: usize, cheater: Party, promise: Promise) -> Sweep {
        Sweep {
            parties,
            cheater,
            promise,
            faults: QUICK_FAULTS.to_vec(),
            first: 0,
            drop_every: 1,
            corrects: false,
        }
    }

    /// Runs `party` at all parties, first without a fault, then with each.
    ///
    /// # Panics
    /// If the promise is broken, a party hangs or panics, a message is lost or cut short and nobody notices
    /// (under a protocol that corrects: every fault leaves some honest party with an output), or, under a
    /// protocol that verifies, the error of an honest party accuses another honest one.
    pub fn run<T: Clone + Debug + PartialEq + Send + Sync + 'static>(
        &self,
        party: impl Fn(&mut dyn Net) -> Result<T> + Send + Sync + 'static,
    ) -> Swept {
        assert!(
            !self.corrects || self.promise == Promise::RightOrAborted,
            "what corrects gives the right output"
        );
        let party = Arc::new(party);
        let ends = |timeout| mesh_with_timeout(self.parties, timeout);
        let honest: Vec<_> =
            ends(LATE).into_iter().map(|net| self.wrapped(net, u64::MAX, Fault::Drop)).collect();
        let tampering = honest[self.cheater.index()].tampering();
        let right: Vec<T> = run_over(honest, with(&party))
            .into_iter()
            .map(|outcome| outcome.expect("honest parties finish"))
            .collect();
        let mut swept = Swept { messages: tampering.messages(), ..Swept::default() };
        for at in self.first..swept.messages {
            let dropped = (at % self.drop_every == self.drop_every - 1).then_some(Fault::Drop);
            for fault in self.faults.iter().copied().chain(dropped) {
                let ends = ends(SOON).into_iter().map(|net| self.wrapped(net, at, fault));
                let ends: Vec<_> = ends.collect();
                let tampering = ends[self.cheater.index()].tampering();
                let outcomes = run_over(ends, with(&party));
                if !tampering.fired() {
                    // The first message to each peer has none before it to replay, and where a protocol
                    // retries at random a run can be shorter than the first.
                    let is_first = fault == Fault::Replay && at < 2 * self.parties as u64;
                    assert!(is_first || tampering.messages() <= at, "message {at}, {fault:?}");
                    continue;
                }
                swept.faults += 1;
                let honest = || Party::all(self.parties).zip(&outcomes).filter(|(p, _)| *p != self.cheater);
                swept.survived += u64::from(honest().any(|(_, outcome)| outcome.is_ok()));
                if matches!(fault, Fault::Truncate | Fault::Drop) && !self.corrects {
                    assert!(honest().any(|(_, outcome)| outcome.is_err()), "message {at}, {fault:?}");
                }
                if self.promise == Promise::RightOrAborted {
                    for (p, outcome) in honest() {
                        let is_just = outcome.as_ref().err().is_none_or(|e| self.is_just(e));
                        assert!(is_just, "message {at}, {fault:?}: {p} accuses an honest party: {outcome:?}");
                    }
                    for (p, outcome) in honest().filter(|(_, outcome)| outcome.is_ok()) {
                        let is_right = outcome.as_ref() == Ok(&right[p.index()]);
                        assert!(is_right, "message {at}, {fault:?}: {p} accepts a wrong output");
                    }
                }
            }
        }
        assert!(!self.corrects || swept.survived < swept.faults, "no fault ends the run for all: {swept:?}");
        swept
    }

    /// Whether an error accuses nobody but the one that cheats. (That a peer is silent or gone is no
    /// accusation.)
    fn is_just(&self, error: &Error) -> bool {
        accused(error).is_empty() || accused(error).contains(self.cheater)
    }

    fn wrapped(&self, net: Mesh, at: u64, fault: Fault) -> Tamper<Mesh> {
        let at = if net.me() == self.cheater { at } else { u64::MAX };
        Tamper::new(net, at, fault)
    }
}

/// Whom an error accuses of having sent what the protocol does not allow; one of them has.
pub fn accused(error: &Error) -> PartySet {
    match error {
        Error::Peer { peer, .. } | Error::Disagreement { peer, .. } => [*peer].into_iter().collect(),
        Error::OneOfTwo { first, second, .. } => [*first, *second].into_iter().collect(),
        Error::Disputed { dealer, receiver } => [*dealer, *receiver].into_iter().collect(),
        _ => PartySet::default(),
    }
}

fn with<T>(
    party: &Arc<impl Fn(&mut dyn Net) -> Result<T> + Send + Sync + 'static>,
) -> impl Fn(&mut dyn Net) -> Result<T> + Send + Sync + 'static {
    let party = party.clone();
    move |net| party(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(check: fn(u8) -> Result<u8>) -> Swept {
        let (sender, receiver) = (Party(0), Party(1));
        let sweep = Sweep { corrects: true, ..Sweep::new(2, sender, Promise::RightOrAborted) };
        sweep.run(move |net| {
            let mut message = [7];
            if net.me() == sender {
                net.send(receiver, &message)?;
                return Ok(7);
            }
            loop {
                match net.recv(sender, &mut message) {
                    Ok(()) => return check(message[0]),
                    // The machine may be busy.
                    Err(Error::Timeout { .. }) => {}
                    // It makes up for what is cut or does not come.
                    Err(_) => return Ok(7),
                }
            }
        })
    }

    #[test]
    fn a_protocol_that_corrects_a_lost_message_and_ends_with_a_wrong_one_passes() {
        let refused =
            |message| (message == 7).then_some(7).ok_or_else(|| Error::System("it is wrong".into()));
        let swept = sweep(refused);
        assert!(swept.survived > 0 && swept.survived < swept.faults, "{swept:?}");
    }

    #[test]
    #[should_panic(expected = "accepts a wrong output")]
    fn a_protocol_that_corrects_and_accepts_what_is_wrong_fails() {
        sweep(Ok);
    }

    #[test]
    #[should_panic(expected = "no fault ends the run for all")]
    fn a_protocol_that_seems_to_correct_everything_fails() {
        sweep(|_| Ok(7));
    }
}
