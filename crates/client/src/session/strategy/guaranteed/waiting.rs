//! What the replies to one message show so far: for which nodes the client still waits and how long, which
//! ones it gives up, and when it tries to combine what it has. It is told what arrives and when; it asks
//! nothing.

use std::time::{Duration, Instant};

use polyclave_api::{Refusal, Reply};
use polyclave_protocol::{Party, PartySet};

use crate::session::group::ANSWER;
use crate::session::replies::{LONGEST, OTHER_REASONS};

/// At the beginning all serving nodes have to agree. After a refusal, which may be a lie, or when a node is
/// gone, this is how long the client waits for the others.
const OTHERS_BEGIN: Duration = Duration::from_secs(3);
/// The same where that is the leading node: without it the others wait much longer for nothing.
const OTHERS_ARE_LED: Duration = Duration::from_secs(1);

/// What came while the client waited.
pub(super) enum Heard {
    /// Nothing until the time was over.
    Nothing,
    /// Something that is no reply, or its end.
    Garbage(Party),
    /// A reply, perhaps a late one to an earlier message.
    Reply(Party, Box<Reply>),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Wait,
    /// The replies may be enough.
    Combine,
    /// Nothing more is to be expected.
    End,
}

/// See the [module](self).
pub(super) struct Waiting {
    /// How many replies may be enough.
    least: usize,
    /// How many nodes may cheat.
    tolerated: usize,
    /// The node without which the others wait for nothing, until all have agreed to begin.
    leader: Option<Party>,
    has_begun: bool,
    /// The nodes that still take part.
    pub(super) there: PartySet,
    /// Nodes that did not answer as they should.
    pub(super) given_up: PartySet,
    pub(super) awaited: PartySet,
    /// By node: how many replies to earlier messages are still to come.
    pub(super) owed: Vec<usize>,
    began: Instant,
    /// When silence becomes a reason to give nodes up.
    overdue: Instant,
    /// How long to wait without that.
    at_most: Instant,
    /// Nodes that have claimed to work since `overdue` was set.
    working: PartySet,
    pub(super) replies: Vec<(Party, Reply)>,
    pub(super) refused: Vec<(Party, Refusal)>,
}

impl Waiting {
    /// Among the nodes `there`. `leader` is the node that leads them, until all have agreed to begin.
    pub(super) fn new(
        (least, tolerated): (usize, usize),
        there: PartySet,
        (leader, has_begun): (Option<Party>, bool),
        owed: Vec<usize>,
        now: Instant,
    ) -> Waiting {
        let (replies, refused) = (Vec::new(), Vec::new());
        let (awaited, working) = (there, PartySet::default());
        let (overdue, at_most) = (now + ANSWER, now + LONGEST);
        Waiting {
            least,
            tolerated,
            leader,
            has_begun,
            there,
            given_up: PartySet::default(),
            awaited,
            owed,
            began: now,
            overdue,
            at_most,
            working,
            replies,
            refused,
        }
    }

    /// Until when to wait for the next reply.
    pub(super) fn until(&mut self, now: Instant) -> Instant {
        if self.there.len() < self.least {
            // The others may say the same.
            self.at_most = self.at_most.min(now + OTHER_REASONS);
        }
        self.overdue.min(self.at_most)
    }

    /// Takes note of what came; `lost` are the nodes whose connections have ended.
    pub(super) fn note(&mut self, heard: Heard, lost: PartySet, now: Instant) -> NextStep {
        let (party, reply) = match heard {
            Heard::Nothing => {
                let is_overdue = now >= self.overdue.min(self.began + LONGEST);
                self.give_up(if is_overdue { self.awaited } else { lost });
                return NextStep::End;
            }
            Heard::Garbage(party) => {
                self.owed[party.index()] = 0;
                self.hurry(only(party), now);
                self.give_up(lost.and(only(party)));
                return self.or_end(NextStep::Wait);
            }
            Heard::Reply(party, reply) => (party, *reply),
        };
        // What it has sent before its connection ended counts.
        self.give_up(lost.without(only(party)));
        let late = std::mem::take(&mut self.owed[party.index()]);
        match reply {
            Reply::Refused(refusal) => self.note_refusal(party, refusal, now),
            Reply::Working { .. } if late > 0 => self.owed[party.index()] = late,
            Reply::Working { .. } => self.note_work(party, now),
            _ if late > 0 => self.owed[party.index()] = late - 1,
            reply => {
                self.replies.push((party, reply));
                self.awaited = self.awaited.without(only(party));
                if self.replies.len() >= self.least {
                    return NextStep::Combine;
                }
            }
        }
        self.or_end(NextStep::Wait)
    }

    /// This step, unless no node is awaited any more.
    pub(super) fn or_end(&self, step: NextStep) -> NextStep {
        if self.awaited.is_empty() { NextStep::End } else { step }
    }

    fn give_up(&mut self, nodes: PartySet) {
        let stayed = self.there.without(nodes);
        self.given_up = self.given_up.and(self.there.without(stayed));
        self.there = stayed;
        self.awaited = self.awaited.without(nodes);
    }

    /// Notes that these nodes are gone, or will not serve. Until all have agreed to begin, the others get a
    /// short time only. Once all have, the others may continue, and get the same time as before.
    pub(super) fn hurry(&mut self, without: PartySet, now: Instant) {
        if self.has_begun || self.there.without(without) == self.there {
            return;
        }
        let is_led = self.leader.is_none_or(|leader| !without.contains(leader));
        let patience = if is_led { OTHERS_BEGIN } else { OTHERS_ARE_LED };
        self.at_most = self.at_most.min(now + patience);
    }

    /// The others may continue without the node that refused.
    fn note_refusal(&mut self, party: Party, refusal: Refusal, now: Instant) {
        self.hurry(only(party), now);
        self.refused.push((party, refusal));
        self.there = self.there.without(only(party));
        self.awaited = self.awaited.without(only(party));
    }

    /// When more nodes claim to work than may cheat, all of them get more time.
    fn note_work(&mut self, party: Party, now: Instant) {
        self.working = self.working.and(only(party));
        if self.working.len() > self.tolerated {
            (self.overdue, self.working) = (now + ANSWER, PartySet::default());
        }
    }
}

fn only(party: Party) -> PartySet {
    [party].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use polyclave_api::Reason;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Four nodes, of which three are enough and one may cheat, led by the first.
    fn waiting(has_begun: bool, now: Instant) -> Waiting {
        Waiting::new((3, 1), PartySet::all(4), (Some(Party(0)), has_begun), vec![0; 4], now)
    }

    fn reply(party: u8) -> Heard {
        Heard::Reply(Party(party), Reply::Done(None).into())
    }

    fn working(party: u8) -> Heard {
        Heard::Reply(Party(party), Reply::Working { done: 0, of: 0 }.into())
    }

    fn refusal(party: u8) -> Heard {
        Heard::Reply(Party(party), Reply::Refused(Refusal::new(Reason::Denied, "no")).into())
    }

    #[test]
    fn as_many_replies_as_may_be_enough_are_combined_and_the_last_ends_the_wait() {
        let now = Instant::now();
        let (mut waiting, none) = (waiting(true, now), PartySet::default());
        let steps: Vec<NextStep> = (0..3).map(|party| waiting.note(reply(party), none, now)).collect();
        assert_eq!(steps, [NextStep::Wait, NextStep::Wait, NextStep::Combine]);
        assert_eq!(waiting.awaited, only(Party(3)));
        assert_eq!(waiting.note(reply(3), none, now), NextStep::Combine);
        assert_eq!(waiting.or_end(NextStep::Wait), NextStep::End);
    }

    /// Its connection ended before the request was sent, or while the others waited for it.
    #[test]
    fn nodes_are_not_waited_for_long_when_the_one_that_leads_them_is_gone() {
        let now = Instant::now();
        let none = PartySet::default();
        for (gone, has_begun, patience) in
            [(0, false, OTHERS_ARE_LED), (2, false, OTHERS_BEGIN), (0, true, ANSWER), (2, true, ANSWER)]
        {
            let mut unsent = waiting(has_begun, now);
            unsent.hurry(only(Party(gone)), now);
            assert_eq!(unsent.until(now), now + patience, "{gone} {has_begun}");
            let mut ended = waiting(has_begun, now);
            assert_eq!(ended.note(Heard::Garbage(Party(gone)), none, now), NextStep::Wait);
            assert_eq!(ended.until(now), now + patience, "{gone} {has_begun}");
        }
    }

    #[test]
    fn replies_to_earlier_messages_do_not_count() {
        let now = Instant::now();
        let (mut waiting, none) = (waiting(true, now), PartySet::default());
        waiting.owed[2] = 2;
        for owed in [2, 1, 1, 0, 0] {
            let heard = if owed == waiting.owed[2] && owed > 0 { working(2) } else { reply(2) };
            assert_eq!(waiting.note(heard, none, now), NextStep::Wait);
            assert_eq!(waiting.owed[2], owed);
        }
        assert_eq!(waiting.replies.len(), 1);
    }

    #[test]
    fn time_is_given_when_more_claim_to_work_than_may_cheat_and_not_for_ever() {
        let began = Instant::now();
        let (mut waiting, none) = (waiting(true, began), PartySet::default());
        for second in 1..50 {
            waiting.note(working(3), none, began + second * SECOND);
        }
        assert_eq!(waiting.until(began), began + ANSWER, "one may lie");
        for second in 50..2000 {
            for party in [1, 3] {
                waiting.note(working(party), none, began + second * SECOND);
            }
        }
        let last = began + 2000 * SECOND;
        assert_eq!(waiting.until(last), began + LONGEST);
        assert_eq!(waiting.note(Heard::Nothing, none, last), NextStep::End);
        assert!(waiting.there.is_empty(), "all that were awaited are given up");
    }

    #[test]
    fn after_a_refusal_the_others_have_a_while_to_begin_less_if_their_leader_refused() {
        let now = Instant::now();
        let none = PartySet::default();
        for (party, has_begun, patience) in
            [(0, false, OTHERS_ARE_LED), (2, false, OTHERS_BEGIN), (2, true, ANSWER)]
        {
            let mut waiting = waiting(has_begun, now);
            assert_eq!(waiting.note(refusal(party), none, now), NextStep::Wait);
            assert_eq!(waiting.until(now), now + patience);
            let ended = waiting.note(Heard::Nothing, none, now + patience);
            assert_eq!(ended, NextStep::End);
            // Who is silent only because another refused is not given up.
            assert_eq!(waiting.there.is_empty(), has_begun);
            assert!(!waiting.given_up.contains(Party(party)), "it has answered");
            let mut again = self::waiting(has_begun, now);
            let both = [refusal(1), refusal(2)].map(|heard| again.note(heard, none, now));
            assert_eq!((both, again.refused.len()), ([NextStep::Wait; 2], 2));
            assert_eq!(again.until(now), now + OTHER_REASONS, "too few are there");
        }
    }

    #[test]
    fn a_node_that_sends_garbage_or_is_gone_is_given_up() {
        let now = Instant::now();
        let mut waiting = waiting(true, now);
        assert_eq!(waiting.note(Heard::Garbage(Party(1)), PartySet::default(), now), NextStep::Wait);
        assert_eq!(waiting.note(reply(0), only(Party(2)), now), NextStep::Wait);
        assert_eq!(waiting.there, [Party(0), Party(3)].into_iter().collect());
        assert_eq!(waiting.given_up, [Party(1), Party(2)].into_iter().collect());
        waiting.owed[3] = 1;
        assert_eq!(waiting.note(Heard::Garbage(Party(3)), only(Party(0)), now), NextStep::End);
        assert_eq!((waiting.given_up, waiting.owed[3]), (PartySet::all(4), 0));
    }

    #[test]
    fn nodes_that_hang_up_while_nothing_comes_are_given_up() {
        let now = Instant::now();
        let mut waiting = waiting(true, now);
        assert_eq!(waiting.note(Heard::Nothing, only(Party(2)), now), NextStep::End);
        assert_eq!(waiting.given_up, only(Party(2)));
    }

    /// The refusal of a node that owes an earlier reply counts. A node that claims to work on an earlier
    /// message gets no time.
    #[test]
    fn what_comes_late_gives_no_time_and_a_refusal_is_never_late() {
        let now = Instant::now();
        let (mut waiting, none) = (waiting(true, now), PartySet::default());
        waiting.owed = vec![1; 4];
        for party in 0..4 {
            waiting.note(working(party), none, now + SECOND);
        }
        assert_eq!(waiting.until(now), now + ANSWER);
        waiting.note(refusal(1), only(Party(1)), now);
        assert_eq!((waiting.refused.len(), waiting.given_up, waiting.owed[1]), (1, none, 0));
    }
}
