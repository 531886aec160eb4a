//! What the nodes reply, and when that is enough.
//!
//! Of nodes that do not correct each other every one has to reply, and a refusal of any is the outcome. Of others it is enough that
//! so many replied that an answer can be put together, which the protocol's code tells; whoever is silent, garbles its replies or
//! refuses is left behind. A refusal counts if one more than may cheat agree on it.

use std::time::{Duration, Instant};

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, MOST_MESSAGE, Reason, Refusal, Reply};

use super::Conversation;
use crate::client::ANSWER;
use crate::{Error, Result};

/// After one refusal, how long the others' reasons are waited for.
const OTHER_REASONS: Duration = Duration::from_millis(300);
/// Where the others may go on without the one that refused, how long they are waited for.
const OTHERS_GO_ON: Duration = Duration::from_secs(3);
/// A reply that has begun takes no longer, however it trickles.
const BEGUN: Duration = Duration::from_secs(10);
/// At the end, late replies are waited for so long, for the connections to be used again.
const LATE: Duration = Duration::from_millis(200);

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
        match self.refusal(refused) {
            Some(refused) => Err(refused),
            None => Ok(replies),
        }
    }

    /// The refusal that says what is wrong, rather than that another node did not want to; the first of them.
    fn refusal(&self, refused: Vec<(Party, Refusal)>) -> Option<Error> {
        let (party, refusal) =
            refused.into_iter().min_by_key(|(party, refusal)| (is_vague(refusal), *party))?;
        Some(match refusal.reason {
            Reason::Unauthentic => Error::Unauthentic(refusal.message),
            _ => Error::Refused { node: self.client.node_name(party).into(), refusal },
        })
    }

    fn settle_with_most<T>(&mut self, put_together: &dyn Fn(&Self, &Replies) -> Result<T>) -> Result<T> {
        let least = self.client.combine.least_servers();
        let (mut replies, mut refused, mut apart) = (Vec::new(), Vec::new(), None);
        let mut awaited = self.there;
        let mut until = Instant::now() + ANSWER;
        while !awaited.is_empty() {
            let hopeless = self.there.len() < least;
            if hopeless {
                // The others may say the same.
                until = until.min(Instant::now() + OTHER_REASONS);
            }
            let within = until.saturating_duration_since(Instant::now());
            let party = self.net.wait_for_any(awaited, within)?;
            if hopeless && party.is_none() {
                break;
            }
            let reply = party.and_then(|party| Some((party, receive(&mut self.net, party)?)));
            let gone = match (party, &reply) {
                (None, _) => awaited,
                (Some(party), None) => self.net.lost().and([party].into_iter().collect()),
                _ => self.net.lost(),
            };
            self.leave_behind(gone);
            awaited = awaited.without(gone);
            let Some((party, reply)) = reply else { continue };
            let is_late = std::mem::take(&mut self.owed[party.index()]);
            let one: PartySet = [party].into_iter().collect();
            match wire::decode(&reply, party) {
                Ok(Reply::Refused(refusal)) => {
                    refused.push((party, refusal));
                    self.there = self.there.without(one);
                    awaited = awaited.without(one);
                    until = until.min(Instant::now() + OTHERS_GO_ON);
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
        Err(self.not_settled(refused, apart))
    }

    /// These nodes do not answer as they should.
    fn leave_behind(&mut self, nodes: PartySet) {
        for node in nodes.iter().filter(|node| self.there.contains(*node)) {
            self.client.suspect(node);
            self.caught = self.caught.and([node].into_iter().collect());
        }
        self.there = self.there.without(nodes);
    }

    fn not_settled(&mut self, refused: Vec<(Party, Refusal)>, apart: Option<Error>) -> Error {
        let tolerated = self.client.cluster().threshold();
        let plain: Vec<_> = refused.iter().filter(|(_, refusal)| !is_vague(refusal)).cloned().collect();
        self.blamed.extend(refused.iter().filter_map(|(_, refusal)| refusal.blames));
        if plain.len() <= tolerated {
            // It stands alone with it.
            self.blamed.extend(plain.iter().map(|(party, _)| *party));
        }
        // More than may lie say so: it is left out next time.
        for node in PartySet::all(self.owed.len()).iter() {
            if self.blamed.iter().filter(|blamed| **blamed == node).count() > tolerated {
                self.client.suspect(node);
            }
        }
        let is_certain = plain.len() > tolerated;
        match self.refusal(if is_certain { plain } else { refused }) {
            Some(e) if is_certain => e,
            Some(e) => Error::Contested(e.to_string()),
            None => match apart {
                Some(e) => Error::Contested(e.to_string()),
                None => {
                    let gone = self.caught.iter().map(|p| self.client.node_name(p)).collect::<Vec<_>>();
                    Error::Contested(format!("{} did not answer as nodes do", gone.join(", ")))
                }
            },
        }
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

/// Whether a refusal says no more than that other nodes did not, or could not, serve.
fn is_vague(refusal: &Refusal) -> bool {
    matches!(refusal.reason, Reason::Disagreement | Reason::Unavailable)
}

/// A message of one node, which is lost if it sends none that is one.
fn receive(net: &mut TlsNet, from: Party) -> Option<Vec<u8>> {
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
