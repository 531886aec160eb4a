//! One request with the nodes that serve it: the same bytes to each, and one answer out of all of theirs.

mod choice;
pub(crate) mod enough;
pub(crate) mod judgement;
pub(crate) mod replies;

use std::time::Duration;

use polyclave_protocol::net::Net;
use polyclave_protocol::service::{ELEMENT_BYTES, Element, ServiceConfig};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, KeyInfo, Operation, Refusal, Reply, Request, Step, VERSION};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::{Error, Result};
use choice::{CAUGHT, Choices};
use enough::is_own;
use replies::{Replies, send_to_each};

/// When the nodes have too much to do: doubled each time.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Serving sets that are tried before giving up.
const MOST_TRIES: usize = 6;

/// A request that the nodes have accepted.
pub(crate) struct Conversation<'c> {
    client: &'c Client,
    net: TlsNet,
    serving: PartySet,
    /// Those of them that answer as nodes do, where the others can do without one.
    there: PartySet,
    /// By node: replies that were not waited for.
    owed: Vec<usize>,
    /// Nodes that did not answer as nodes do.
    caught: PartySet,
    /// All that serve have agreed among themselves to begin.
    has_begun: bool,
    /// What speaks against nodes since others take them to be the cause, or they refuse: how much.
    against: Vec<(Party, u32)>,
    /// Who refused what was asked last, and why.
    refused: Vec<(Party, Refusal)>,
}

/// What the nodes said when they accepted.
pub(crate) struct Accepted {
    pub(crate) key: Option<KeyInfo>,
    pub(crate) start: Vec<u8>,
    /// Of the first input; empty where there is none.
    pub(crate) mask: Zeroizing<Vec<u8>>,
    /// Of the mask's check, where there is one.
    pub(crate) blind: Option<Element>,
}

/// One node's message about a value.
type Part<'r> = (Party, &'r [u8]);

/// What each node sent of the data, of the next mask, and of the initial block.
#[derive(Default)]
struct Parts<'r> {
    data: Vec<Part<'r>>,
    mask: Vec<Part<'r>>,
    initial: Vec<Part<'r>>,
}

/// A request with a fresh id.
pub(crate) fn request(operation: Operation, serving: PartySet, first: Option<Step>) -> Result<Request> {
    let mut id = [0; 16];
    random_bytes(&mut id)?;
    Ok(Request { version: VERSION, id, serving, operation, first })
}

/// What an answer tells the client, and the next mask.
type DataAndMask = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

impl<'c> Conversation<'c> {
    /// Has enough nodes accept a request; or all, where it takes all. If nodes fail before they have accepted, others are
    /// asked: nothing has happened yet.
    pub(crate) fn begin(
        client: &'c Client,
        operation: &Operation,
        first: Option<&Step>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        let takes_all = !matches!(operation, Operation::Use { .. });
        match client.scheme.guarantees_output() && !takes_all {
            true => Conversation::begin_with_most(client, operation, first),
            false => Conversation::begin_with_enough(client, operation, first, takes_all),
        }
    }

    /// Of nodes that correct each other all are asked that can be reached, then, if they cannot agree, all but one that is
    /// suspected, in turn. Every try is paid for from the key's budget by the nodes that it reaches, so for a while it is remembered
    /// without whom it went.
    fn begin_with_most(
        client: &'c Client,
        operation: &Operation,
        first: Option<&Step>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        let (nodes, needed) = (client.cluster().nodes(), client.scheme.quorum());
        let (mut lost, mut contested, mut last, mut why) =
            (PartySet::default(), PartySet::default(), None, None);
        let mut choices = Choices::without(client.suspects(), client.cluster().threshold());
        for attempt in 0..nodes + MOST_TRIES {
            let Some(serving) = choices.next(PartySet::all(nodes).without(lost), needed) else { break };
            let mut conversation = match Conversation::call(client, serving) {
                Ok(conversation) => conversation,
                Err((failed, told)) => {
                    why = Some(told);
                    lost = lost.and(failed);
                    continue;
                }
            };
            match conversation.ask(operation, first) {
                Ok(accepted) => {
                    conversation.remark_on_missing(why.as_deref());
                    client.trust(conversation.there);
                    contested.without(serving).iter().for_each(|node| client.suspect(node));
                    return Ok((conversation, accepted));
                }
                Err(e @ (Error::Contested(_) | Error::Connection { .. })) => {
                    conversation.caught.iter().for_each(|node| choices.suspect(node, CAUGHT));
                    conversation.against.iter().for_each(|(node, weight)| choices.suspect(*node, *weight));
                    contested = contested.and(serving);
                    why = Some(conversation.own_refusals().unwrap_or(e.to_string()));
                    last = Some(e);
                }
                Err(e) if e.is_busy() && attempt + 1 < MOST_TRIES => {
                    std::thread::sleep(BACK_OFF * (1 << attempt));
                    // None of them is to blame.
                    choices.allow_again(serving);
                    last = Some(e);
                }
                Err(e) => return Err(e),
            }
        }
        match last {
            Some(e) if lost.len() + needed <= nodes => Err(e),
            _ => {
                let why = why.unwrap_or_default();
                Err(Error::TooFewNodes { reached: nodes - lost.len(), nodes, needed, why })
            }
        }
    }

    /// What nodes said that refused for a reason of their own, if any did.
    fn own_refusals(&self) -> Option<String> {
        let own = self.refused.iter().filter(|(_, refusal)| is_own(refusal));
        let told: Vec<String> =
            own.map(|(node, refusal)| self.client.refused(*node, refusal.clone()).to_string()).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Connections with all of some nodes; or with whom there is none, and why.
    fn call(
        client: &'c Client,
        serving: PartySet,
    ) -> std::result::Result<Conversation<'c>, (PartySet, String)> {
        let (mut lines, mut failed) = (Vec::new(), Vec::new());
        for (party, line) in client.lines(serving) {
            match line {
                Ok(line) => lines.push((party, line)),
                Err(e) => failed.push((party, e)),
            }
        }
        let net = client.net(lines);
        if failed.is_empty() {
            let owed = vec![0; client.cluster().nodes()];
            let (there, has_begun, caught) = (serving, false, PartySet::default());
            let (against, refused) = (Vec::new(), Vec::new());
            return Ok(Conversation {
                client,
                net,
                serving,
                there,
                owed,
                caught,
                has_begun,
                against,
                refused,
            });
        }
        let why = client.why_not(&failed);
        client.keep(net);
        Err((failed.iter().map(|(p, _)| *p).collect(), why))
    }

    fn ask(&mut self, operation: &Operation, first: Option<&Step>) -> Result<Accepted> {
        self.send(&request(operation.clone(), self.serving, first.cloned())?)?;
        let accepted = self.accepted()?;
        self.has_begun = true;
        Ok(accepted)
    }

    /// Says which nodes do without, and what that means.
    fn remark_on_missing(&self, why: Option<&str>) {
        let missing = PartySet::all(self.client.cluster().nodes()).without(self.serving);
        if missing.is_empty() {
            return;
        }
        let names = missing.iter().map(|p| self.client.node_name(p)).collect::<Vec<_>>().join(", ");
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        self.client.remark(&format!(
            "{names} takes no part{why}. Correction is off: if another node sent something wrong it would be noticed, and there \
             would be no answer. The nodes go on with the material in stock, and make no more while one is missing"
        ));
    }

    /// Asks all nodes for something that they answer when it is done.
    pub(crate) fn ask_all(client: &'c Client, operation: &Operation) -> Result<Conversation<'c>> {
        let serving = PartySet::all(client.cluster().nodes());
        let nodes = serving.len();
        let mut conversation = Conversation::call(client, serving).map_err(|(failed, why)| {
            Error::TooFewNodes { reached: nodes - failed.len(), nodes, needed: nodes, why }
        })?;
        conversation.send(&request(operation.clone(), serving, None)?)?;
        Ok(conversation)
    }

    fn accepted(&mut self) -> Result<Accepted> {
        self.settle(&|this, replies| {
            let mut said = Vec::new();
            for (node, reply) in replies {
                let Reply::Accepted { key, start, mask, blind } = reply else {
                    this.refuse_unexpected(*node)?;
                    continue;
                };
                said.push((*node, (key, start), mask, blind));
            }
            let most = this.most(said.iter().map(|(_, of, ..)| *of));
            let (key, start) =
                most.ok_or_else(|| Error::Answers("they serve with different keys or sessions".into()))?;
            said.retain(|(_, of, ..)| *of == (key, start));
            let masks: Vec<Part<'_>> = said.iter().map(|(node, _, mask, _)| (*node, &mask[..])).collect();
            let blinds: Vec<Part<'_>> = said.iter().map(|(node, _, _, blind)| (*node, &blind[..])).collect();
            let has = |parts: &[Part<'_>]| {
                parts.iter().filter(|(_, part)| !part.is_empty()).count() * 2 > parts.len()
            };
            let mask = if has(&masks) { this.combined(&masks)? } else { Zeroizing::default() };
            let blind = if has(&blinds) { Some(this.element(&blinds)?) } else { None };
            Ok(Accepted { key: key.clone(), start: start.clone(), mask, blind })
        })
    }

    /// Sends a step; its answer comes in its turn.
    pub(crate) fn step(&mut self, step: &Step) -> Result<()> {
        self.send(step)
    }

    fn send<T: serde::Serialize>(&mut self, message: &T) -> Result<()> {
        let bytes = wire::encode(message)?;
        if !self.client.scheme.guarantees_output()
            && !self.net.is_alive()
            && let Some(refused) = self.last_words()
        {
            return Err(refused);
        }
        self.transmit(&bytes).map_err(|e| self.client.named(e.into()))
    }

    fn transmit(&mut self, bytes: &[u8]) -> polyclave_protocol::Result<()> {
        if self.client.scheme.guarantees_output() {
            return send_to_each(&mut self.net, self.there, bytes);
        }
        let (head, body) = bytes.split_at(4);
        for part in [head, body] {
            let to = |p: Party| if self.there.contains(p) { part } else { &[][..] };
            let out: Vec<&[u8]> = Party::all(self.net.parties()).map(to).collect();
            let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
            self.net.exchange(&out, &mut nothing)?;
        }
        Ok(())
    }

    /// So many bytes, as the answer to the oldest step that has none yet.
    pub(crate) fn bytes(&mut self, expected: usize) -> Result<Zeroizing<Vec<u8>>> {
        self.settle(&|this, replies| Ok(this.answer(replies, Some(expected), 0)?.0))
    }

    /// The same, of a length if there is to be something, and with the mask of the next input.
    pub(crate) fn bytes_and_mask(&mut self, expected: Option<usize>, mask: usize) -> Result<DataAndMask> {
        self.settle(&|this, replies| this.answer(replies, expected, mask))
    }

    /// The same for the first answer of CBC, and the initial block in front.
    pub(crate) fn initial_bytes_and_mask(
        &mut self,
        initial: usize,
        expected: Option<usize>,
        mask: usize,
    ) -> Result<(Zeroizing<Vec<u8>>, DataAndMask)> {
        self.settle(&|this, replies| {
            let initial = this.exactly(&this.data(replies)?.initial, initial)?;
            Ok((initial, this.answer(replies, expected, mask)?))
        })
    }

    /// One element, as the answer.
    pub(crate) fn tag(&mut self) -> Result<Element> {
        self.settle(&|this, replies| this.element(&this.data(replies)?.data))
    }

    /// What all nodes have opened.
    pub(crate) fn opened(&mut self) -> Result<Element> {
        self.settle(&|this, replies| {
            let data = this.data(replies)?.data;
            let most = this.most(data.iter().map(|(_, part)| *part));
            let element = most.and_then(|part| <[u8; ELEMENT_BYTES]>::try_from(part).ok());
            element.ok_or_else(|| Error::Answers("they opened different values".into()))
        })
    }

    /// That the step was taken.
    pub(crate) fn nothing(&mut self) -> Result<()> {
        self.settle(&|this, replies| this.data(replies).map(drop))
    }

    /// What the nodes say when they have made or deleted a key.
    pub(crate) fn done(mut self) -> Result<Option<KeyInfo>> {
        let done = self.settle(&|this, replies| {
            let mut keys = Vec::new();
            for (node, reply) in replies {
                match reply {
                    Reply::Done(key) => keys.push(key),
                    _ => this.refuse_unexpected(*node)?,
                }
            }
            // A deletion that is repeated finds the key at some nodes only.
            let found: Vec<&KeyInfo> = keys.iter().filter_map(|key| key.as_ref()).collect();
            if this.client.scheme.guarantees_output() {
                let tolerated = this.client.cluster().threshold();
                let agreed = |key: &&&KeyInfo| found.iter().filter(|other| other == key).count() > tolerated;
                let none = keys.len() - found.len() > tolerated;
                return match found.iter().find(agreed) {
                    Some(key) => Ok(Some((*key).clone())),
                    None if none => Ok(None),
                    None => Err(Error::Answers("they tell of different keys".into())),
                };
            }
            match found.as_slice() {
                [first, rest @ ..] if rest.iter().any(|key| key != first) => {
                    Err(Error::Answers("they tell of different keys".into()))
                }
                found => Ok(found.first().map(|key| (*key).clone())),
            }
        })?;
        self.keep();
        Ok(done)
    }

    /// Ends a conversation in order; its connections can be used again.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.send(&Step::Finish)?;
        self.keep();
        Ok(())
    }

    fn keep(mut self) {
        let settled = self.settle_debts();
        self.client.keep_some(self.net, settled);
    }

    /// What each node answered to a step.
    fn data<'r>(&self, replies: &'r Replies) -> Result<Parts<'r>> {
        let mut parts = Parts::default();
        for (node, reply) in replies {
            match reply {
                Reply::Data { data, mask, initial } => {
                    parts.data.push((*node, data));
                    parts.mask.push((*node, mask));
                    parts.initial.push((*node, initial));
                }
                _ => self.refuse_unexpected(*node)?,
            }
        }
        if parts.data.len() < self.client.scheme.quorum() {
            return Err(Error::Answers("too few of them answered to this question".into()));
        }
        Ok(parts)
    }

    fn answer(&self, replies: &Replies, expected: Option<usize>, mask: usize) -> Result<DataAndMask> {
        let parts = self.data(replies)?;
        let data = match expected {
            Some(expected) => self.exactly(&parts.data, expected)?,
            None => Zeroizing::default(),
        };
        let mask = if mask == 0 { Zeroizing::default() } else { self.exactly(&parts.mask, mask)? };
        Ok((data, mask))
    }

    /// An answer to another question: the end, unless the others can do without that node.
    fn refuse_unexpected(&self, node: Party) -> Result<()> {
        if self.client.scheme.guarantees_output() {
            return Ok(());
        }
        Err(Error::Answers(format!("node {} answered to another question", self.client.node_name(node))))
    }

    /// What all say alike; or so many as it takes, if nodes correct each other.
    fn most<T: PartialEq>(&self, said: impl Iterator<Item = T> + Clone) -> Option<T> {
        let needed = match self.client.scheme.guarantees_output() {
            true => self.client.scheme.quorum(),
            false => self.serving.len(),
        };
        said.clone().find(|one| said.clone().filter(|other| other == one).count() >= needed)
    }

    /// Bytes out of what the nodes sent of them, as many as these are.
    pub(crate) fn exactly(&self, parts: &[Part<'_>], expected: usize) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = self.combined(parts)?;
        match bytes.len() == expected {
            true => Ok(bytes),
            false => Err(Error::Answers(format!("{} bytes where {expected} were due", bytes.len()))),
        }
    }

    /// Bytes out of what the nodes sent of them.
    fn combined(&self, parts: &[Part<'_>]) -> Result<Zeroizing<Vec<u8>>> {
        let (serving, parts) = self.of_one_length(parts);
        self.client.scheme.combine(serving, &parts).map_err(apart)
    }

    /// One element out of what the nodes sent of it.
    fn element(&self, parts: &[Part<'_>]) -> Result<Element> {
        let (serving, parts) = self.of_one_length(parts);
        match self.client.scheme.combine_elements(serving, &parts).map_err(apart)?.as_slice() {
            [element] => Ok(*element),
            other => Err(Error::Answers(format!("{} elements where one was due", other.len()))),
        }
    }

    /// Messages in the order of the nodes, and whose they are; where nodes correct each other those of another length than most
    /// are as good as none.
    fn of_one_length<'r>(&self, parts: &[Part<'r>]) -> (PartySet, Vec<&'r [u8]>) {
        let mut parts = parts.to_vec();
        if self.client.scheme.guarantees_output() {
            let mut lengths: Vec<usize> = parts.iter().map(|(_, part)| part.len()).collect();
            lengths.sort_unstable();
            let due = lengths.get(lengths.len() / 2).copied();
            parts.retain(|(_, part)| Some(part.len()) == due);
        }
        parts.sort_by_key(|(node, _)| *node);
        (parts.iter().map(|(node, _)| *node).collect(), parts.into_iter().map(|(_, part)| part).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_answer_is_not_told_as_a_failed_connection_and_not_asked_for_again() {
        let error = apart(polyclave_protocol::Error::CheckFailed { what: "what the nodes sent to a client" });
        assert!(matches!(error, Error::Answers(_)) && !error.may_pass() && !error.others_might());
        assert!(error.to_string().contains("do not fit together: one of them, or somebody on the way"));
    }
}
