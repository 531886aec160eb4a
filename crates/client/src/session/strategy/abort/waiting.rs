//! What the replies to one message show so far: for which nodes the client still waits and how long, and what
//! ends the wait. It is told what arrives and when; it asks nothing.

use std::time::Instant;

use polyclave_api::{Refusal, Reply};
use polyclave_protocol::{Error, Party, PartySet, Result};

use crate::session::group::ANSWER;
use crate::session::replies::{LONGEST, OTHER_REASONS};

/// See the [module](self).
pub(super) struct Waiting {
    pub(super) awaited: PartySet,
    began: Instant,
    /// By node: when something last came from it.
    heard: Vec<Instant>,
    /// After a refusal: how long to wait for the reasons of others.
    reasons_until: Option<Instant>,
    /// One of each node that did not refuse.
    pub(super) replies: Vec<(Party, Reply)>,
    pub(super) refused: Vec<(Party, Refusal)>,
}

impl Waiting {
    /// For one reply of each of these nodes.
    pub(super) fn new(serving: PartySet, parties: usize, now: Instant) -> Waiting {
        let (replies, refused) = (Vec::new(), Vec::new());
        let heard = vec![now; parties];
        Waiting { awaited: serving, began: now, heard, reasons_until: None, replies, refused }
    }

    /// Until when to wait for the next reply. Who works is waited for, who is silent is not, and nobody for
    /// ever.
    pub(super) fn until(&self) -> Instant {
        let of_silent = self.heard[self.silent().index()] + ANSWER;
        self.reasons_until.unwrap_or(of_silent.min(self.began + LONGEST))
    }

    /// Takes note of a node's reply.
    pub(super) fn note(&mut self, party: Party, reply: Reply, now: Instant) {
        match reply {
            Reply::Working { .. } => {
                self.heard[party.index()] = now;
                return;
            }
            Reply::Refused(refusal) => {
                self.refused.push((party, refusal));
                self.reasons_until = Some(now + OTHER_REASONS);
            }
            reply => self.replies.push((party, reply)),
        }
        self.awaited = self.awaited.without([party].into_iter().collect());
    }

    /// Nothing came, or something that is no reply. It ends the wait. An error unless a node has refused: a
    /// refusal is the outcome, whatever the others do.
    pub(super) fn end(&mut self, why: Option<Error>, now: Instant) -> Result<()> {
        if self.refused.is_empty() {
            let peer = self.silent();
            let waited = now.saturating_duration_since(self.heard[peer.index()]).max(ANSWER);
            return Err(why.unwrap_or(Error::Timeout { peer, waited }));
        }
        self.awaited = PartySet::default();
        Ok(())
    }

    /// The awaited node that was silent for longest.
    fn silent(&self) -> Party {
        self.awaited.iter().min_by_key(|node| self.heard[node.index()]).unwrap_or(Party(0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use polyclave_api::Reason;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn refusal() -> Reply {
        Reply::Refused(Refusal::new(Reason::Denied, "no"))
    }

    #[test]
    fn who_works_is_waited_for_who_is_silent_is_not_and_nobody_for_ever() {
        let began = Instant::now();
        let mut waiting = Waiting::new(PartySet::all(3), 3, began);
        let work = |waiting: &mut Waiting, node, now| {
            waiting.note(Party(node), Reply::Working { done: 0, of: 0 }, now);
        };
        for second in 1..=2000 {
            for node in [0, 2] {
                work(&mut waiting, node, began + second * SECOND);
            }
            assert_eq!(waiting.until(), began + ANSWER);
        }
        let silent = waiting.end(None, began + 61 * SECOND);
        assert_eq!(silent, Err(Error::Timeout { peer: Party(1), waited: 61 * SECOND }));
        waiting.note(Party(1), Reply::Done(None), began);
        assert_eq!(waiting.until(), began + LONGEST);
        assert_eq!(waiting.awaited.len(), 2, "who only works has not replied");
    }

    #[test]
    fn after_a_refusal_the_reasons_of_others_are_awaited_shortly_and_no_error_hides_it() {
        let began = Instant::now();
        let mut waiting = Waiting::new(PartySet::all(3), 3, began);
        let broken = || Some(Error::Closed { peer: Party(2), detail: "it is gone".into() });
        assert_eq!(waiting.end(broken(), began), Err(broken().expect("an error")));
        waiting.note(Party(1), refusal(), began + SECOND);
        assert_eq!(waiting.until(), began + SECOND + OTHER_REASONS);
        assert_eq!(waiting.end(broken(), began + SECOND), Ok(()));
        assert!(waiting.awaited.is_empty() && waiting.refused.len() == 1);
    }
}
