//! One request with the nodes that serve it: the client sends the same bytes to each, and combines their
//! answers into one.

use std::time::Duration;

use polyclave_api::{self as api, KeyInfo, Operation, Refusal, Reply, Step};
use polyclave_config::Cluster;
use polyclave_protocol::dealt::DealtMask;
use polyclave_protocol::net::Net;
use polyclave_protocol::service::{ELEMENT_BYTES, Element, ServiceConfig};
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use zeroize::Zeroizing;

use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::load::Busy;
use crate::session::replies::Replies;
use crate::session::strategy::PutTogether;
use crate::{Error, Result};

/// The pause when the nodes are busy. It doubles each time.
pub(crate) const BACK_OFF: Duration = Duration::from_millis(50);
/// The most serving sets that are tried.
pub(crate) const MAX_TRIES: usize = 6;

/// A request that the nodes have accepted.
pub(crate) struct Conversation<'c> {
    pub(crate) workers: Workers<'c>,
    pub(crate) net: TlsNet,
    pub(crate) serving: PartySet,
    /// Those of them that still answer correctly, where the others can continue without a node.
    pub(crate) there: PartySet,
    /// By node: the number of replies that were not waited for.
    pub(crate) owed: Vec<usize>,
    /// Nodes that did not answer as a node must.
    pub(crate) caught: PartySet,
    /// Whether all serving nodes have agreed among themselves to begin.
    pub(crate) has_begun: bool,
    /// Nodes that refused, or that others blame, each with the weight of the suspicion.
    pub(crate) against: Vec<(Party, u32)>,
    /// The nodes that refused the last message, with their reasons.
    pub(crate) refused: Vec<(Party, Refusal)>,
    _busy: Busy,
}

/// A conversation between two steps: the nodes owe no answer and wait for the client.
pub(crate) struct Paused {
    /// The nodes with which it goes on.
    pub(crate) cluster: Cluster,
    net: TlsNet,
    serving: PartySet,
    there: PartySet,
    owed: Vec<usize>,
    caught: PartySet,
    against: Vec<(Party, u32)>,
}

impl Paused {
    /// Goes on, with the workers with which it began.
    pub(crate) fn resume(self, workers: Workers<'_>) -> Conversation<'_> {
        let Paused { net, serving, there, owed, caught, against, .. } = self;
        Conversation {
            workers,
            net,
            serving,
            there,
            owed,
            caught,
            has_begun: true,
            against,
            refused: Vec::new(),
            _busy: workers.group.begin_request(),
        }
    }
}

/// What the nodes said when they accepted the request.
pub(crate) struct Accepted {
    pub(crate) key: Option<KeyInfo>,
    pub(crate) start: Vec<u8>,
    /// Whether this client has dealt the mask of its first input.
    pub(crate) is_dealt: bool,
    /// The nodes' mask of the first input; empty if there is none.
    pub(crate) mask: Zeroizing<Vec<u8>>,
    /// The blinding of the mask's check, if there is one.
    pub(crate) blind: Option<Element>,
}

/// One node's message about a value.
pub(crate) type Part<'r> = (Party, &'r [u8]);

/// What each node sent: parts of the data, of the next mask, and of the initial block; and what the nodes
/// opened.
#[derive(Default)]
struct Parts<'r> {
    data: Vec<Part<'r>>,
    mask: Vec<Part<'r>>,
    initial: Vec<Part<'r>>,
    opened: Vec<Part<'r>>,
}

/// The data of an answer, and the next mask.
type DataAndMask = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

impl<'c> Conversation<'c> {
    /// Begins a request: all nodes must accept it. For the use of a key the strategy chooses the nodes
    /// instead.
    pub(crate) fn begin(
        workers: Workers<'c>,
        operation: &Operation,
        first: First<'_>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        // All nodes serve an approved request, so that its approval is used once.
        if operation.describe().only_uses() && workers.caller.approvals.given().is_none() {
            return workers.group.strategy.begin(workers, operation, first);
        }
        let mut conversation = Conversation::call_all(workers)?;
        let accepted = conversation.ask(operation, first)?;
        Ok((conversation, accepted))
    }

    /// Connects to all of some nodes. The error says which nodes cannot be reached, and why.
    pub(crate) fn call(
        workers: Workers<'c>,
        serving: PartySet,
    ) -> std::result::Result<Conversation<'c>, (PartySet, String)> {
        let (mut lines, mut failed) = (Vec::new(), Vec::new());
        for (party, line) in workers.lines(serving) {
            match line {
                Ok(line) => lines.push((party, line)),
                Err(e) => failed.push((party, e)),
            }
        }
        let net = workers.net(lines);
        if failed.is_empty() {
            let owed = vec![0; workers.group.cluster.nodes()];
            let (there, has_begun, caught) = (serving, false, PartySet::default());
            let (against, refused) = (Vec::new(), Vec::new());
            return Ok(Conversation {
                workers,
                net,
                serving,
                there,
                owed,
                caught,
                has_begun,
                against,
                refused,
                _busy: workers.group.begin_request(),
            });
        }
        let why = workers.why_not(&failed);
        workers.keep(net);
        Err((failed.iter().map(|(p, _)| *p).collect(), why))
    }

    pub(crate) fn ask(&mut self, operation: &Operation, first: First<'_>) -> Result<Accepted> {
        let caller = self.workers.caller;
        let (step, dealt) = first.with_request(&self.workers.group.config.components())?;
        let commitments = dealt.as_ref().map(DealtMask::commitments).unwrap_or_default();
        let (first_of_request, approval) = ((step, commitments), caller.approvals.given());
        let (operation, serving) = (operation.clone(), self.serving);
        self.send(&caller.request(&self.net, operation, serving, first_of_request, approval)?)?;
        if let Some(dealt) = &dealt {
            self.send_seeds(dealt)?;
        }
        let accepted = Accepted { is_dealt: dealt.is_some(), ..self.accepted()? };
        self.has_begun = true;
        Ok(accepted)
    }

    /// Sends the first input under the mask of the nodes, if it has not gone with the request.
    pub(crate) fn send_first(&mut self, first: First<'_>, accepted: &Accepted) -> Result<()> {
        match first {
            First::Masked(masked) if !accepted.is_dealt => self.step(&masked.under(&accepted.mask)?),
            _ => Ok(()),
        }
    }

    /// Sends each node its seeds of a mask that this client deals.
    fn send_seeds(&mut self, dealt: &DealtMask) -> Result<()> {
        let message = |party: Party| -> Zeroizing<Vec<u8>> {
            let seeds = dealt.seeds_of(party);
            Zeroizing::new([&(seeds.len() as u32).to_le_bytes()[..], &seeds].concat())
        };
        let messages: Vec<Zeroizing<Vec<u8>>> = Party::all(self.net.parties()).map(message).collect();
        let Err(error) = self.send_to_each(|party| &messages[party.index()]) else { return Ok(()) };
        // A node can have refused the request meanwhile.
        let error = self.last_words().unwrap_or_else(|| self.workers.named(error.into()));
        Err(self.workers.caller.unless_halted(error))
    }

    /// Sends each node a message that begins with its length.
    pub(crate) fn send_to_each<'m>(
        &mut self,
        message: impl Fn(Party) -> &'m [u8],
    ) -> polyclave_protocol::Result<()> {
        let there = self.there;
        let messages: Vec<(&[u8], &[u8])> = Party::all(self.net.parties())
            .map(|party| if there.contains(party) { message(party).split_at(4) } else { Default::default() })
            .collect();
        let (heads, bodies): (Vec<&[u8]>, Vec<&[u8]>) = messages.into_iter().unzip();
        for out in [heads, bodies] {
            let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
            self.net.exchange(&out, &mut nothing)?;
        }
        Ok(())
    }

    /// Connections with all nodes.
    pub(crate) fn call_all(workers: Workers<'c>) -> Result<Conversation<'c>> {
        let nodes = workers.group.cluster.nodes();
        Conversation::call(workers, PartySet::all(nodes)).map_err(|(failed, why)| Error::TooFewNodes {
            reached: nodes - failed.len(),
            nodes,
            needed: nodes,
            why,
        })
    }

    /// Sends what all nodes confirm when it is done.
    pub(crate) fn tell(&mut self, operation: &Operation) -> Result<()> {
        let caller = self.workers.caller;
        self.send(&caller.request(
            &self.net,
            operation.clone(),
            self.serving,
            (None, Vec::new()),
            caller.approvals.given(),
        )?)
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
            Ok(Accepted { key: key.clone(), start: start.clone(), is_dealt: false, mask, blind })
        })
    }

    /// Sends a step. Its answer comes after those of earlier steps.
    pub(crate) fn step(&mut self, step: &Step) -> Result<()> {
        self.send(step)
    }

    fn send<T: serde::Serialize>(&mut self, message: &T) -> Result<()> {
        let bytes = api::encode(message)?;
        if self.workers.caller.halt.is_halted() {
            return Err(Error::Ended);
        }
        self.workers.group.strategy.send(self, &bytes).map_err(|e| self.workers.caller.unless_halted(e))
    }

    /// Combines the replies to the oldest message that has no answer yet.
    fn settle<T>(&mut self, put_together: &dyn Fn(&Conversation<'_>, &Replies) -> Result<T>) -> Result<T> {
        let mut outcome = None;
        let put_together: &mut PutTogether<'_> = &mut |this, replies| {
            outcome = Some(put_together(this, replies)?);
            Ok(())
        };
        self.workers
            .group
            .strategy
            .settle(self, put_together)
            .map_err(|e| self.workers.caller.unless_halted(e))?;
        outcome.ok_or_else(|| Error::Answers("they contain no answer".into()))
    }

    /// The answer to the oldest open step, as this many bytes.
    pub(crate) fn bytes(&mut self, expected: usize) -> Result<Zeroizing<Vec<u8>>> {
        self.settle(&|this, replies| Ok(this.answer(replies, Some(expected), 0)?.0))
    }

    /// The same, however many bytes there are.
    pub(crate) fn bytes_of_any_length(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.settle(&|this, replies| this.combined(&this.data(replies)?.data))
    }

    /// The same, with the mask of the next input. The data have the expected length, if any are expected.
    pub(crate) fn bytes_and_mask(&mut self, expected: Option<usize>, mask: usize) -> Result<DataAndMask> {
        self.settle(&|this, replies| this.answer(replies, expected, mask))
    }

    /// The same for the first answer of CBC, with the initial block in front.
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

    /// An answer that is one element.
    pub(crate) fn tag(&mut self) -> Result<Element> {
        self.settle(&|this, replies| this.element(&this.data(replies)?.data))
    }

    /// The answer to a whole message: its ciphertext of so many bytes, and its tag. The nodes have opened the
    /// ciphertext, so all of them say the same.
    pub(crate) fn ciphertext_and_tag(&mut self, bytes: usize) -> Result<(Vec<u8>, Element)> {
        self.settle(&|this, replies| {
            let parts = this.data(replies)?;
            let most = this.most(parts.opened.iter().map(|(_, part)| *part));
            let apart = || this.different_ciphertexts(&parts.opened);
            let ciphertext = most.filter(|ciphertext| ciphertext.len() == bytes).ok_or_else(apart)?;
            Ok((ciphertext.to_vec(), this.element(&parts.data)?))
        })
    }

    /// The error if nodes tell different ciphertexts. It names the one that stands alone, if one does.
    fn different_ciphertexts(&self, opened: &[Part<'_>]) -> Error {
        let is_alone = |(_, part): &&Part<'_>| opened.iter().filter(|(_, other)| other == part).count() == 1;
        let alone: Vec<Party> = opened.iter().filter(is_alone).map(|(node, _)| *node).collect();
        Error::Answers(match alone[..] {
            [one] => {
                let node = self.workers.group.node_name(one);
                format!(
                    "{node} tells another ciphertext than the others, and none was used. See each node's log"
                )
            }
            _ => "they tell different ciphertexts, and none was used. See each node's log".into(),
        })
    }

    /// The element that all nodes have opened.
    pub(crate) fn opened(&mut self) -> Result<Element> {
        self.settle(&|this, replies| {
            let data = this.data(replies)?.data;
            let most = this.most(data.iter().map(|(_, part)| *part));
            let element = most.and_then(|part| <[u8; ELEMENT_BYTES]>::try_from(part).ok());
            element.ok_or_else(|| Error::Answers("they opened different values".into()))
        })
    }

    /// Waits until the nodes have taken the step; its answer has no data.
    pub(crate) fn nothing(&mut self) -> Result<()> {
        self.settle(&|this, replies| this.data(replies).map(drop))
    }

    /// Waits until the nodes have made or deleted a key. Returns its properties.
    pub(crate) fn done(mut self) -> Result<Option<KeyInfo>> {
        let done = self.settle(&|this, replies| {
            let mut keys = Vec::new();
            for (node, reply) in replies {
                match reply {
                    Reply::Done(key) => keys.push(key.as_ref()),
                    _ => this.refuse_unexpected(*node)?,
                }
            }
            this.workers.group.strategy.done(&keys)
        })?;
        self.keep();
        Ok(done)
    }

    /// Lets it wait for a step, without its client.
    pub(crate) fn pause(self) -> Paused {
        let cluster = self.workers.group.cluster.clone();
        let Conversation { net, serving, there, owed, caught, against, .. } = self;
        Paused { cluster, net, serving, there, owed, caught, against }
    }

    /// Ends a conversation in order. Its connections can be used again.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.send(&Step::Finish)?;
        self.keep();
        Ok(())
    }

    fn keep(mut self) {
        let settled = self.settle_debts();
        self.workers.keep_some(self.net, settled);
    }

    /// The parts that each node sent in answer to a step.
    fn data<'r>(&self, replies: &'r Replies) -> Result<Parts<'r>> {
        let mut parts = Parts::default();
        for (node, reply) in replies {
            match reply {
                Reply::Data { data, mask, initial, opened } => {
                    parts.data.push((*node, data));
                    parts.mask.push((*node, mask));
                    parts.initial.push((*node, initial));
                    parts.opened.push((*node, opened));
                }
                _ => self.refuse_unexpected(*node)?,
            }
        }
        if parts.data.len() < self.workers.group.config.quorum() {
            return Err(Error::Answers("too few of them answered this question".into()));
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

    /// Handles a reply to another question.
    fn refuse_unexpected(&self, node: Party) -> Result<()> {
        self.workers.group.strategy.refuse_unexpected(self.workers, node)
    }

    /// The value that as many nodes sent as the strategy demands.
    fn most<T: PartialEq>(&self, said: impl Iterator<Item = T> + Clone) -> Option<T> {
        let needed = self.workers.group.strategy.alike(self.serving.len());
        said.clone().find(|one| said.clone().filter(|other| other == one).count() >= needed)
    }

    /// Combines the nodes' parts into bytes, which must have the expected length.
    pub(crate) fn exactly(&self, parts: &[Part<'_>], expected: usize) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = self.combined(parts)?;
        match bytes.len() == expected {
            true => Ok(bytes),
            false => Err(Error::Answers(format!("{} bytes instead of {expected}", bytes.len()))),
        }
    }

    /// Combines the nodes' parts into bytes.
    fn combined(&self, parts: &[Part<'_>]) -> Result<Zeroizing<Vec<u8>>> {
        let (serving, parts) = self.of_one_length(parts);
        self.workers.group.config.combine(serving, &parts).map_err(|e| self.workers.named(apart(e)))
    }

    /// Combines the nodes' parts into one element.
    fn element(&self, parts: &[Part<'_>]) -> Result<Element> {
        let (serving, parts) = self.of_one_length(parts);
        let combined = self.workers.group.config.combine_elements(serving, &parts);
        match combined.map_err(|e| self.workers.named(apart(e)))?.as_slice() {
            [element] => Ok(*element),
            other => Err(Error::Answers(format!("{} elements instead of one", other.len()))),
        }
    }

    /// The parts in the order of the nodes, and the set of these nodes, without parts that do not fit.
    fn of_one_length<'r>(&self, parts: &[Part<'r>]) -> (PartySet, Vec<&'r [u8]>) {
        let mut parts = parts.to_vec();
        self.workers.group.strategy.drop_misfits(&mut parts);
        parts.sort_by_key(|(node, _)| *node);
        (parts.iter().map(|(node, _)| *node).collect(), parts.into_iter().map(|(_, part)| part).collect())
    }
}

/// The error if the nodes' parts cannot be combined.
fn apart(error: polyclave_protocol::Error) -> Error {
    match error {
        polyclave_protocol::Error::CheckFailed { .. } => Error::Answers(
            "one of them, or somebody on the way, changed its part of the answer; it was not used. See each node's log"
                .into(),
        ),
        polyclave_protocol::Error::OneOfTwo { first, second, .. } => Error::Answers(format!(
            "{first} or {second} changed its part of the answer, and it cannot be found out which of the two; it was not used. See their logs"
        )),
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
        let (first, second) = (Party(0), Party(2));
        let error = apart(polyclave_protocol::Error::OneOfTwo { first, second, what: "what it sent" });
        assert!(matches!(error, Error::Answers(_)) && !error.may_pass());
        assert!(error.to_string().contains("party 1 or party 3 changed its part"), "{error}");
    }
}
