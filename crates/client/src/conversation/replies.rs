//! What the nodes reply, and when that is enough.
//!
//! Of nodes that do not correct each other every one has to reply, and a refusal of any is the outcome. Of others it is enough that
//! so many replied that an answer can be put together, which the protocol's code tells; whoever is silent, garbles its replies or
//! refuses is left behind. A node that computes says so every second, and is waited for as long as it does, but for
//! [`LONGEST`] at most. Nobody is left behind for having said nothing while nodes may still wait for each other: not after a
//! refusal, which may be what they wait for. What refusals tell is judged in [`judgement`](super::judgement).

use std::time::{Duration, Instant};

use polyclave_protocol::net::{self, Net};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, MOST_MESSAGE, Refusal, Reply};

use super::Conversation;
use super::judgement::most_telling;
use crate::client::ANSWER;
use crate::{Error, Result};

/// The longest wait for one reply, whatever nodes say of their work: one that only claims to work cannot hold a client for ever.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// After one refusal, how long the others' reasons are waited for.
const OTHER_REASONS: Duration = Duration::from_millis(300);
/// All that serve have to agree at the beginning: after a refusal the others are waited for so long, since it may be a lie.
const OTHERS_BEGIN: Duration = Duration::from_secs(3);
/// And after one of the leading node, without which the others wait much longer for nothing.
const OTHERS_ARE_LED: Duration = Duration::from_secs(1);
/// A reply that has begun takes no longer, however it trickles.
const BEGUN: Duration = Duration::from_secs(10);
/// At the end, late replies are waited for so long, for the connections to be used again.
pub(crate) const LATE: Duration = Duration::from_millis(200);

/// Replies to one message, in the order in which they came.
pub(super) type Replies = [(Party, Reply)];

impl Conversation<'_> {
    /// Puts the replies to the oldest message together that has no answer yet.
    pub(super) fn settle<T>(&mut self, put_together: &dyn Fn(&Self, &Replies) -> Result<T>) -> Result<T> {
        if self.client.scheme.guarantees_output() {
            return self.settle_with_most(put_together).map_err(|e| self.client.named(e));
        }
        let replies = self.replies().map_err(|e| self.client.named(e))?;
        put_together(self, &replies)
    }

    /// Why nodes ended the conversation while this client had something else to do, such as to wait for its input: a refusal
    /// among what they had sent.
    pub(super) fn last_words(&mut self) -> Option<Error> {
        let mut refused = Vec::new();
        self.net.set_deadline(Some(Instant::now() + BEGUN));
        while let Some(party) = self.net.arrived().iter().next() {
            let Ok(bytes) = wire::receive_bytes(&mut self.net, party) else { break };
            if let Ok(Reply::Refused(refusal)) = wire::decode(&bytes, party) {
                refused.push((party, refusal));
            }
        }
        self.net.set_deadline(None);
        most_telling(&refused).map(|(party, refusal)| self.refused(*party, refusal))
    }

    /// One reply of each node; a refusal of any is the outcome. Read as they come, since one that hangs must not hide what the
    /// others say of it.
    fn replies(&mut self) -> Result<Vec<(Party, Reply)>> {
        let mut replies = Vec::new();
        let mut refused: Vec<(Party, Refusal)> = Vec::new();
        let mut awaited = self.serving;
        let mut patience = Patience::new(self.net.parties(), ANSWER, LONGEST);
        let mut reasons_until = None;
        while !awaited.is_empty() {
            let (silent, until) = patience.ends(awaited);
            let until = reasons_until.unwrap_or(until);
            let left = until.saturating_duration_since(Instant::now());
            // Not asked when the time is over: claims to work may come without end.
            let heard = if left.is_zero() { Ok(None) } else { self.net.wait(awaited, left) };
            let party = match heard {
                Ok(Some(party)) => party,
                Ok(None) | Err(_) if !refused.is_empty() => break,
                Ok(None) => {
                    let waited = patience.waited(silent);
                    return Err(polyclave_protocol::Error::Timeout { peer: silent, waited }.into());
                }
                Err(e) => return Err(e.into()),
            };
            let reply =
                wire::receive_bytes(&mut self.net, party).and_then(|bytes| wire::decode(&bytes, party));
            match reply {
                Ok(Reply::Working { done, of }) => {
                    patience.heard(party);
                    self.client.tell_work(done, of);
                    continue;
                }
                Ok(Reply::Refused(refusal)) => {
                    refused.push((party, refusal));
                    reasons_until = Some(Instant::now() + OTHER_REASONS);
                }
                Ok(reply) => replies.push((party, reply)),
                Err(_) if !refused.is_empty() => break,
                Err(e) => return Err(e.into()),
            }
            awaited = awaited.without([party].into_iter().collect());
        }
        replies.sort_by_key(|(party, _)| *party);
        self.refused = refused;
        match most_telling(&self.refused) {
            Some((party, refusal)) => Err(self.refused(*party, refusal)),
            None => Ok(replies),
        }
    }

    fn settle_with_most<T>(&mut self, put_together: &dyn Fn(&Self, &Replies) -> Result<T>) -> Result<T> {
        let least = self.client.scheme.quorum();
        let (mut replies, mut refused, mut apart) = (Vec::new(), Vec::new(), None);
        let mut awaited = self.there;
        let began = Instant::now();
        // Each claim to work of one node too many to be all of cheaters gives all of them more time.
        let (mut overdue, mut working) = (began + ANSWER, PartySet::default());
        let mut at_most = began + LONGEST;
        let mut turns: Vec<Party> = self.there.iter().collect();
        while !awaited.is_empty() {
            if self.there.len() < least {
                // The others may say the same.
                at_most = at_most.min(Instant::now() + OTHER_REASONS);
            }
            let until = overdue.min(at_most);
            let within = until.saturating_duration_since(Instant::now());
            let party = if within.is_zero() { None } else { self.next(awaited, &mut turns, within)? };
            let reply = party.and_then(|party| Some((party, receive(&mut self.net, party)?)));
            let lost = self.net.lost();
            let gone = match (party, &reply) {
                (None, _) if Instant::now() >= overdue.min(began + LONGEST) => awaited,
                (Some(party), None) => lost.and([party].into_iter().collect()),
                _ => lost,
            };
            self.leave_behind(gone);
            if party.is_none() {
                break;
            }
            awaited = awaited.without(gone);
            let Some((party, reply)) = reply else { continue };
            let is_late = std::mem::take(&mut self.owed[party.index()]);
            let one: PartySet = [party].into_iter().collect();
            match wire::decode(&reply, party) {
                Ok(Reply::Refused(refusal)) => {
                    refused.push((party, refusal));
                    self.there = self.there.without(one);
                    awaited = awaited.without(one);
                    if let Some(patience) = self.patience_after_refusal(party) {
                        at_most = at_most.min(Instant::now() + patience);
                    }
                }
                Ok(Reply::Working { .. }) if is_late > 0 => self.owed[party.index()] = is_late,
                Ok(Reply::Working { done, of }) => {
                    self.client.tell_work(done, of);
                    working = working.and(one);
                    if working.len() > self.client.cluster().threshold() {
                        (overdue, working) = (Instant::now() + ANSWER, PartySet::default());
                    }
                }
                Ok(_) if is_late > 0 => self.owed[party.index()] = is_late - 1,
                Ok(reply) => {
                    replies.push((party, reply));
                    awaited = awaited.without(one);
                    if replies.len() >= least {
                        match put_together(self, &replies) {
                            Ok(answer) => {
                                awaited.iter().for_each(|late| self.owed[late.index()] += 1);
                                return Ok(answer);
                            }
                            Err(e) => apart = Some(e),
                        }
                    }
                }
                Err(_) => {
                    self.leave_behind(one);
                    awaited = awaited.without(one);
                }
            }
        }
        let failed = self.not_settled(&refused, apart);
        self.refused = refused;
        Err(failed)
    }

    /// A node of which something has come: of several the one whose turn was longest ago, so that none that sends without end hides
    /// what the others send.
    fn next(
        &mut self,
        awaited: PartySet,
        turns: &mut Vec<Party>,
        within: Duration,
    ) -> polyclave_protocol::Result<Option<Party>> {
        let mut next = None;
        for party in turns.iter().filter(|party| awaited.contains(**party)) {
            next = self.net.wait_for_any([*party].into_iter().collect(), Duration::ZERO)?;
            if next.is_some() {
                break;
            }
        }
        if next.is_none() {
            next = self.net.wait_for_any(awaited.without(self.net.lost()), within)?;
        }
        if let Some(at) = turns.iter().position(|party| Some(*party) == next) {
            let party = turns.remove(at);
            turns.push(party);
        }
        Ok(next)
    }

    /// How long the others are waited for that may go on without the one that refused. Once all have agreed to begin, they do, and
    /// are waited for as before.
    fn patience_after_refusal(&self, party: Party) -> Option<Duration> {
        match self.leader() {
            _ if self.has_begun => None,
            Some(leader) if leader == party => Some(OTHERS_ARE_LED),
            _ => Some(OTHERS_BEGIN),
        }
    }

    /// These nodes do not answer as they should.
    fn leave_behind(&mut self, nodes: PartySet) {
        for node in nodes.iter().filter(|node| self.there.contains(*node)) {
            self.client.suspect(node);
            self.caught = self.caught.and([node].into_iter().collect());
        }
        self.there = self.there.without(nodes);
    }

    /// Takes in what is late, as far as it comes soon.
    pub(super) fn settle_debts(&mut self) -> PartySet {
        let until = Instant::now() + LATE;
        let owing =
            |owed: &[usize]| -> PartySet { Party::all(owed.len()).filter(|p| owed[p.index()] > 0).collect() };
        while !owing(&self.owed).is_empty() {
            let within = until.saturating_duration_since(Instant::now());
            let Ok(Some(party)) = self.net.wait_for_any(owing(&self.owed), within) else { break };
            match receive(&mut self.net, party).map(|reply| wire::decode(&reply, party)) {
                Some(Ok(Reply::Working { .. })) => {}
                Some(_) => self.owed[party.index()] -= 1,
                None => break,
            }
        }
        self.there.without(owing(&self.owed)).without(self.net.lost())
    }
}

/// How long nodes are waited for, all of which have to reply.
struct Patience {
    began: Instant,
    /// By party: when it was last heard of.
    heard: Vec<Instant>,
    silence: Duration,
    longest: Duration,
}

impl Patience {
    fn new(parties: usize, silence: Duration, longest: Duration) -> Patience {
        let began = Instant::now();
        Patience { began, heard: vec![began; parties], silence, longest }
    }

    fn heard(&mut self, node: Party) {
        self.heard[node.index()] = Instant::now();
    }

    /// Of these the node that was silent for longest, and until when it is waited for.
    fn ends(&self, awaited: PartySet) -> (Party, Instant) {
        let silent = awaited.iter().min_by_key(|node| self.heard[node.index()]).unwrap_or(Party(0));
        (silent, (self.heard[silent.index()] + self.silence).min(self.began + self.longest))
    }

    fn waited(&self, node: Party) -> Duration {
        self.heard[node.index()].elapsed().max(self.silence)
    }
}

/// Sends the same to some nodes; one that cannot be reached any more is lost.
pub(crate) fn send_to_each(net: &mut TlsNet, to: PartySet, bytes: &[u8]) -> polyclave_protocol::Result<()> {
    let (head, body) = bytes.split_at(4);
    for part in [head, body] {
        let to = to.without(net.lost());
        let out: Vec<&[u8]> =
            Party::all(net.parties()).map(|p| if to.contains(p) { part } else { &[][..] }).collect();
        let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        net.gather(&out, &mut nothing, net::Patience::of(1), &mut |_, _| true)?;
    }
    Ok(())
}

/// A message of one node, which is lost if it sends none that is one.
pub(crate) fn receive(net: &mut TlsNet, from: Party) -> Option<Vec<u8>> {
    net.set_deadline(Some(Instant::now() + BEGUN));
    let mut len = [0; 4];
    let whole = receive_exactly(net, from, &mut len).and_then(|()| {
        let len = u32::from_le_bytes(len) as usize;
        let mut bytes = vec![0; (1..=MOST_MESSAGE).contains(&len).then_some(len)?];
        receive_exactly(net, from, &mut bytes).map(|()| bytes)
    });
    net.set_deadline(None);
    whole
}

fn receive_exactly(net: &mut TlsNet, from: Party, bytes: &mut [u8]) -> Option<()> {
    let out = vec![&[][..]; net.parties()];
    let mut bytes = Some(bytes);
    let mut into: Vec<&mut [u8]> = Party::all(net.parties())
        .map(|p| if p == from { bytes.take().unwrap_or_default() } else { &mut [][..] })
        .collect();
    let gathered = net.gather(&out, &mut into, net::Patience::of(1), &mut |_, _| false).ok()?;
    gathered.arrived.contains(from).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_is_waited_for_who_is_silent_is_not_and_nobody_for_ever() {
        let (silence, longest) = (Duration::from_secs(60), Duration::from_secs(900));
        let mut patience = Patience::new(3, silence, longest);
        let began = patience.began;
        let all = PartySet::all(3);
        for second in 1..=2000 {
            for node in [0, 2] {
                patience.heard[node] = began + Duration::from_secs(second);
            }
            let (silent, until) = patience.ends(all);
            assert_eq!((silent, until), (Party(1), began + silence));
            let working = all.without([Party(1)].into_iter().collect());
            let until = patience.ends(working).1;
            assert_eq!(until, began + longest.min(Duration::from_secs(second + 60)));
        }
    }
}
