//! One request with the nodes that serve it: the same bytes to each, and one answer out of all of theirs.

use std::time::Duration;

use polyclave_protocol::net::Net;
use polyclave_protocol::service::Element;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, KeyInfo, Operation, Reason, Reply, Request, Step, VERSION};
use zeroize::Zeroizing;

use crate::client::{ANSWER, Client};
use crate::{Error, Result};

/// After one refusal, how long the others' reasons are waited for.
const OTHER_REASONS: Duration = Duration::from_millis(300);
/// When the nodes have too much to do: doubled each time.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Serving sets that are tried before giving up.
const MOST_TRIES: usize = 6;

/// A request that the nodes have accepted.
pub(crate) struct Conversation<'c> {
    client: &'c Client,
    net: TlsNet,
    serving: PartySet,
}

/// What the nodes said when they accepted.
pub(crate) struct Accepted {
    pub(crate) key: Option<KeyInfo>,
    pub(crate) start: Vec<u8>,
    /// By node.
    pub(crate) masks: Vec<Vec<u8>>,
    /// By node.
    pub(crate) blinds: Vec<Vec<u8>>,
}

/// What the nodes answered to a step, by node.
pub(crate) struct Answers {
    pub(crate) data: Vec<Vec<u8>>,
    pub(crate) masks: Vec<Vec<u8>>,
}

/// A request with a fresh id.
pub(crate) fn request(operation: Operation, serving: PartySet, first: Option<Step>) -> Result<Request> {
    let mut id = [0; 16];
    random_bytes(&mut id)?;
    Ok(Request { version: VERSION, id, serving, operation, first })
}

impl<'c> Conversation<'c> {
    /// Has enough nodes accept a request; or all, where it takes all. If nodes fail before they have accepted, others are
    /// asked: nothing has happened yet.
    pub(crate) fn begin(
        client: &'c Client,
        operation: &Operation,
        first: Option<&Step>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        let nodes = client.cluster().nodes();
        let takes_all = !matches!(operation, Operation::Use { .. });
        let needed = if takes_all { nodes } else { client.combine.least_servers() };
        let mut lost = PartySet::all(0);
        let suspects = client.suspects();
        let mut last = None;
        for attempt in 0..MOST_TRIES {
            let candidates: PartySet = PartySet::all(nodes).iter().filter(|p| !lost.contains(*p)).collect();
            let trusted: PartySet = candidates.iter().filter(|p| !suspects.contains(*p)).collect();
            let serving = choose(trusted, needed, attempt).or_else(|| choose(candidates, needed, attempt));
            let Some(serving) = serving else { break };
            let (lines, failed): (Vec<_>, Vec<_>) =
                client.lines(serving).into_iter().partition(|(_, line)| line.is_ok());
            if let Some((_, Err(e))) = failed.first() {
                let why = failed.iter().map(|(p, _)| client.node_name(*p)).collect::<Vec<_>>().join(", ");
                last = Some(format!("{why} did not answer ({e})"));
                lost = lost.iter().chain(failed.iter().map(|(p, _)| *p)).collect();
                client.keep(client.net(lines.into_iter().filter_map(|(p, l)| Some((p, l.ok()?))).collect()));
                continue;
            }
            let lines = lines.into_iter().filter_map(|(party, line)| Some((party, line.ok()?))).collect();
            let mut conversation = Conversation { client, net: client.net(lines), serving };
            let sent = conversation.send(&request(operation.clone(), serving, first.cloned())?);
            match sent.and_then(|()| conversation.accepted()) {
                Ok(accepted) => return Ok((conversation, accepted)),
                Err(e) if e.others_might() && !takes_all && attempt + 1 < MOST_TRIES => {
                    if e.is_busy() {
                        std::thread::sleep(BACK_OFF * (1 << attempt));
                    }
                    last = Some(e.to_string());
                }
                Err(e) => return Err(e),
            }
        }
        let why = last.unwrap_or_default();
        Err(Error::TooFewNodes { reached: nodes - lost.len(), nodes, needed, why })
    }

    /// Asks all nodes for something that they answer when it is done.
    pub(crate) fn ask_all(client: &'c Client, operation: &Operation) -> Result<Conversation<'c>> {
        let serving = PartySet::all(client.cluster().nodes());
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        for (party, line) in client.lines(serving) {
            match line {
                Ok(line) => lines.push((party, line)),
                Err(e) => missing.push(format!("{} did not answer ({e})", client.node_name(party))),
            }
        }
        if !missing.is_empty() {
            let (reached, nodes) = (lines.len(), serving.len());
            return Err(Error::TooFewNodes { reached, nodes, needed: nodes, why: missing.join("; ") });
        }
        let mut conversation = Conversation { client, net: client.net(lines), serving };
        conversation.send(&request(operation.clone(), serving, None)?)?;
        Ok(conversation)
    }

    fn accepted(&mut self) -> Result<Accepted> {
        let (mut key, mut start, mut masks, mut blinds) = (None, None, Vec::new(), Vec::new());
        for (node, reply) in self.replies()? {
            let Reply::Accepted { key: of, start: from, mask, blind } = reply else {
                return Err(unexpected(self.client.node_name(node)));
            };
            if masks.is_empty() {
                (key, start) = (of, Some(from));
            } else if key != of || start.as_ref() != Some(&from) {
                return Err(Error::Answers("they serve with different keys or sessions".into()));
            }
            masks.push(mask);
            blinds.push(blind);
        }
        Ok(Accepted { key, start: start.unwrap_or_default(), masks, blinds })
    }

    /// Sends a step; its answer comes in its turn.
    pub(crate) fn step(&mut self, step: &Step) -> Result<()> {
        self.send(step)
    }

    fn send<T: serde::Serialize>(&mut self, message: &T) -> Result<()> {
        let bytes = wire::encode(message)?;
        let (head, body) = bytes.split_at(4);
        for part in [head, body] {
            let to = |p: Party| if self.serving.contains(p) { part } else { &[][..] };
            let out: Vec<&[u8]> = Party::all(self.net.parties()).map(to).collect();
            let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
            self.net.exchange(&out, &mut nothing)?;
        }
        Ok(())
    }

    /// One reply of each node; a refusal of any is the outcome. Read as they come, since one that hangs must not hide what the
    /// others say of it.
    fn replies(&mut self) -> Result<Vec<(Party, Reply)>> {
        let mut replies = Vec::new();
        let mut refused: Option<(bool, Party, wire::Refusal)> = None;
        let mut awaited = self.serving;
        while !awaited.is_empty() {
            let patience = if refused.is_some() { OTHER_REASONS } else { ANSWER };
            let party = match self.net.wait(awaited, patience) {
                Ok(Some(party)) => party,
                Ok(None) | Err(_) if refused.is_some() => break,
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
                Ok(Reply::Refused(refusal)) => {
                    // The one that says what is wrong, rather than that another node did not want to; the first of them.
                    let vague = matches!(refusal.reason, Reason::Disagreement | Reason::Unavailable);
                    if refused.as_ref().is_none_or(|before| (vague, party) < (before.0, before.1)) {
                        refused = Some((vague, party, refusal));
                    }
                }
                Ok(reply) => replies.push((party, reply)),
                Err(_) if refused.is_some() => break,
                Err(e) => return Err(e.into()),
            }
        }
        replies.sort_by_key(|(party, _)| *party);
        match refused {
            Some((_, _, refusal)) if refusal.reason == Reason::Unauthentic => {
                Err(Error::Unauthentic(refusal.message))
            }
            Some((_, party, refusal)) => {
                Err(Error::Refused { node: self.client.node_name(party).into(), refusal })
            }
            None => Ok(replies),
        }
    }

    /// The answers to the oldest step that has none yet.
    pub(crate) fn answers(&mut self) -> Result<Answers> {
        let mut answers = Answers { data: Vec::new(), masks: Vec::new() };
        for (node, reply) in self.replies()? {
            let Reply::Data { data, mask } = reply else {
                return Err(unexpected(self.client.node_name(node)));
            };
            answers.data.push(data);
            answers.masks.push(mask);
        }
        Ok(answers)
    }

    /// What the nodes say when they have made or deleted a key.
    pub(crate) fn done(mut self) -> Result<Option<KeyInfo>> {
        let mut done: Option<Option<KeyInfo>> = None;
        for (node, reply) in self.replies()? {
            let Reply::Done(key) = reply else { return Err(unexpected(self.client.node_name(node))) };
            match &done {
                // A deletion that is repeated finds the key at some nodes only.
                Some(before) if before.is_some() && key.is_some() && *before != key => {
                    return Err(Error::Answers("they tell of different keys".into()));
                }
                Some(Some(_)) => {}
                _ => done = Some(key),
            }
        }
        self.client.keep(self.net);
        Ok(done.flatten())
    }

    /// Bytes out of what all nodes sent of them, as many as these are.
    pub(crate) fn bytes(&self, shares: &[Vec<u8>], expected: usize) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = self.combined(shares)?;
        match bytes.len() == expected {
            true => Ok(bytes),
            false => Err(Error::Answers(format!("{} bytes where {expected} were due", bytes.len()))),
        }
    }

    /// Bytes out of what all nodes sent of them.
    pub(crate) fn combined(&self, shares: &[Vec<u8>]) -> Result<Zeroizing<Vec<u8>>> {
        let shares: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
        self.client.combine.bytes(self.serving, &shares).map_err(apart)
    }

    /// One element out of what all nodes sent of it.
    pub(crate) fn element(&self, shares: &[Vec<u8>]) -> Result<Element> {
        let shares: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
        match self.client.combine.elements(self.serving, &shares).map_err(apart)?.as_slice() {
            [element] => Ok(*element),
            other => Err(Error::Answers(format!("{} elements where one was due", other.len()))),
        }
    }

    /// The same of all nodes, which each has to have sent.
    pub(crate) fn equal(&self, copies: &[Vec<u8>]) -> Result<Vec<u8>> {
        match copies {
            [first, rest @ ..] if rest.iter().all(|copy| copy == first) => Ok(first.clone()),
            _ => Err(Error::Answers("they opened different values".into())),
        }
    }

    /// Ends a conversation in order; its connections can be used again.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.send(&Step::Finish)?;
        self.client.keep(self.net);
        Ok(())
    }
}

/// What the nodes sent cannot be put together.
fn apart(error: polyclave_protocol::Error) -> Error {
    match error {
        polyclave_protocol::Error::CheckFailed { .. } => Error::Answers(
            "one of them, or somebody on the way, changed its part of the answer; it was not used. See each node's log"
                .into(),
        ),
        other => other.into(),
    }
}

fn unexpected(node: &str) -> Error {
    Error::Answers(format!("node {node} answered to another question"))
}

/// The `attempt`-th choice of so many nodes: the first ones first, then others in turn.
fn choose(candidates: PartySet, needed: usize, attempt: usize) -> Option<PartySet> {
    let candidates: Vec<Party> = candidates.iter().collect();
    if candidates.len() < needed {
        return None;
    }
    let turn = candidates.iter().cycle().skip(attempt % candidates.len());
    Some(turn.take(needed).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_answer_is_not_told_as_a_failed_connection_and_not_asked_for_again() {
        let error = apart(polyclave_protocol::Error::CheckFailed { what: "what the nodes sent to a client" });
        assert!(matches!(error, Error::Answers(_)) && !error.may_pass() && !error.others_might());
        assert!(error.to_string().contains("do not fit together: one of them, or somebody on the way"));
    }

    #[test]
    fn every_node_is_left_out_in_its_turn() {
        let five = PartySet::all(5);
        let sets: Vec<PartySet> = (0..5).filter_map(|attempt| choose(five, 3, attempt)).collect();
        assert!(sets.iter().all(|set| set.len() == 3));
        assert!(five.iter().all(|p| sets.iter().any(|set| !set.contains(p))));
        assert_eq!(choose(PartySet::all(2), 3, 0), None);
    }
}
