//! What the nodes reply, and when that is enough.
//!
//! Of nodes that do not correct each other every one has to reply, and a refusal of any is the outcome. Of others it is enough that
//! so many replied that an answer can be put together, which the protocol's code tells; whoever is silent, garbles its replies or
//! refuses is left behind. Nobody is left behind for having said nothing while nodes may still wait for each other: not after a
//! refusal, which may be what they wait for. What refusals tell is judged in [`judgement`](super::judgement).

use std::time::{Duration, Instant};

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, MOST_MESSAGE, Refusal, Reply};

use super::Conversation;
use super::judgement::most_telling;
use crate::Result;
use crate::client::ANSWER;

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
        if self.client.combine.corrects() {
            return self.settle_with_most(put_together);
        }
        let replies = self.replies()?;
        put_together(self, &replies)
    }

    /// One reply of each node; a refusal of any is the outcome. Read as they come, since one that hangs must not hide what the
    /// others say of it.
    fn replies(&mut self) -> Result<Vec<(Party, Reply)>> {
        let mut replies = Vec::new();
        let mut refused: Vec<(Party, Refusal)> = Vec::new();
        let mut awaited = self.serving;
        while !awaited.is_empty() {
            let patience = if refused.is_empty() { ANSWER } else { OTHER_REASONS };
            let party = match self.net.wait(awaited, patience) {
                Ok(Some(party)) => party,
                Ok(None) | Err(_) if !refused.is_empty() => break,
                Ok(None) => {
                    let silent = awaited.iter().next().unwrap_or(self.net.me());
                    return Err(polyclave_protocol::Error::Timeout { peer: silent, waited: ANSWER }.into());
                }
                Err(e) => return Err(e.into()),
            };
            awaited = awaited.iter().filter(|p| *p != party).collect();
            let reply =
                wire::receive_bytes(&mut self.net, party).and_then(|bytes| wire::decode(&bytes, party));
            match reply {
                Ok(Reply::Refused(refusal)) => refused.push((party, refusal)),
                Ok(reply) => replies.push((party, reply)),
                Err(_) if !refused.is_empty() => break,
                Err(e) => return Err(e.into()),
            }
        }
        replies.sort_by_key(|(party, _)| *party);
        match most_telling(&refused) {
            Some((party, refusal)) => Err(self.refused(*party, refusal)),
            None => Ok(replies),
        }
    }

    fn settle_with_most<T>(&mut self, put_together: &dyn Fn(&Self, &Replies) -> Result<T>) -> Result<T> {
        let least = self.client.combine.least_servers();
        let (mut replies, mut refused, mut apart) = (Vec::new(), Vec::new(), None);
        let mut awaited = self.there;
        let overdue = Instant::now() + ANSWER;
        let mut until = overdue;
        while !awaited.is_empty() {
            if self.there.len() < least {
                // The others may say the same.
                until = until.min(Instant::now() + OTHER_REASONS);
            }
            let within = until.saturating_duration_since(Instant::now());
            let party = self.net.wait_for_any(awaited, within)?;
            let reply = party.and_then(|party| Some((party, receive(&mut self.net, party)?)));
            let lost = self.net.lost();
            let gone = match (party, &reply) {
                (None, _) if Instant::now() >= overdue => awaited,
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
                    until = until.min(Instant::now() + self.patience_after_refusal(party));
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
        Err(self.not_settled(&refused, apart))
    }

    /// How long the others are waited for that may go on without the one that refused. Once all have agreed to begin, they do.
    fn patience_after_refusal(&self, party: Party) -> Duration {
        match self.leader() {
            _ if self.has_begun => ANSWER,
            Some(leader) if leader == party => OTHERS_ARE_LED,
            _ => OTHERS_BEGIN,
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
            match receive(&mut self.net, party) {
                Some(_) => self.owed[party.index()] -= 1,
                None => break,
            }
        }
        self.there.without(owing(&self.owed)).without(self.net.lost())
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
        net.gather(&out, &mut nothing, Patience::of(1), &mut |_, _| true)?;
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
    let gathered = net.gather(&out, &mut into, Patience::of(1), &mut |_, _| false).ok()?;
    gathered.arrived.contains(from).then_some(())
}
