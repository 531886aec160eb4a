//! Making, bringing, seeing and deleting keys.

use polyclave_field::Gf128;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::service::{ELEMENT_BYTES, Element};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::wire::{End, KeyInfo, NewKey, Operation, Refusal, Reply, Step};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::conversation::Conversation;
use crate::conversation::enough::is_own;
use crate::conversation::judgement::agreed;
use crate::{Error, Result};

impl Client {
    /// Makes a key that nobody holds. All nodes take part.
    pub fn generate(&self, key: NewKey) -> Result<KeyInfo> {
        let conversation = Conversation::ask_all(self, &Operation::Generate(key))?;
        conversation.done()?.ok_or_else(|| Error::Answers("they made a key and do not say which".into()))
    }

    /// Brings a key. All nodes take part.
    ///
    /// The nodes give a random mask in shares; it is checked (a node whose share is not that of the mask which the nodes hold is
    /// found out but for 2^-127), and the key is sent under it, the same to all.
    pub fn import(&self, new: NewKey, key: &[u8]) -> Result<KeyInfo> {
        let (mut conversation, accepted) = Conversation::begin(self, &Operation::Import(new), None)?;
        let mask = accepted.mask;
        if mask.len() != key.len() {
            let (given, taken) = (key.len(), mask.len());
            return Err(Error::Misuse(format!("a key of {given} bytes, where the cipher takes {taken}")));
        }
        let blind = accepted
            .blind
            .ok_or_else(|| Error::Answers("they sent no blinding of the mask's check".into()))?;
        let mut chi = [0; ELEMENT_BYTES];
        random_bytes(&mut chi)?;
        conversation.step(&Step::Chi { chi })?;
        let opened = conversation.opened()?;
        if !bool::from(opened.ct_eq(&combination(&mask, blind, chi))) {
            return Err(Error::Answers(
                "a node sent a share that does not belong to the mask; the key was not sent. See each node's log".into(),
            ));
        }
        let data = key.iter().zip(mask.iter()).map(|(k, m)| k ^ m).collect();
        conversation.step(&Step::Masked { data, next: 0, end: End::No })?;
        conversation.done()?.ok_or_else(|| Error::Answers("they took a key and do not say which".into()))
    }

    /// Deletes a key at all nodes; none if there was none.
    pub fn delete(&self, key: &str) -> Result<Option<KeyInfo>> {
        Conversation::ask_all(self, &Operation::Delete { key: key.into() })?.done()
    }

    /// One key: what more nodes than may lie say alike, where nodes correct each other; else what the first says that does not
    /// refuse. What more nodes refuse than can be missed is refused.
    pub fn info(&self, key: &str) -> Result<KeyInfo> {
        if self.scheme.guarantees_output() {
            return self.info_of_several(key);
        }
        let most = self.cluster().nodes() - self.scheme.quorum();
        let (mut last, mut refused) = (None, Vec::new());
        for party in Party::all(self.cluster().nodes()) {
            let one = [party].into_iter().collect();
            let answers =
                self.ask(one, &Operation::Show { key: key.into() }, first_key, |answers| !answers.is_empty());
            match answers.into_iter().next() {
                Some((_, Ok(info))) => {
                    for (one, refusal) in refused {
                        self.suspect(one);
                        let why = self.refused(one, Refusal::clone(&refusal)).to_string();
                        self.remark_left_out([one].into_iter().collect(), refusal.reason, &why);
                    }
                    return Ok(info);
                }
                Some((_, Err(Error::Refused { refusal, .. }))) if is_own(&refusal) => {
                    refused.push((party, refusal));
                }
                Some((_, Err(e))) if !e.may_pass() => return Err(e),
                Some((_, Err(e))) => last = Some(e),
                None => {}
            }
            if refused.len() > most {
                break;
            }
        }
        if let Some((party, refusal)) = refused.into_iter().next() {
            return Err(self.refused(party, refusal));
        }
        Err(last.unwrap_or_else(|| Error::Misuse("the cluster has no nodes".into())))
    }

    fn info_of_several(&self, key: &str) -> Result<KeyInfo> {
        let (nodes, tolerated) = (self.cluster().nodes(), self.cluster().threshold());
        let all = PartySet::all(nodes);
        let judged = |answers: &[(Party, Result<KeyInfo>)]| {
            let known: Vec<&KeyInfo> =
                answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).collect();
            let is_alike = |info: &&&KeyInfo| known.iter().filter(|other| other == info).count() > tolerated;
            let refused: Vec<(Party, Refusal)> = answers
                .iter()
                .filter_map(|(party, answer)| match answer {
                    Err(Error::Refused { refusal, .. }) => Some((*party, refusal.clone())),
                    _ => None,
                })
                .collect();
            let refusal = agreed(&refused, tolerated).cloned();
            match known.iter().find(is_alike) {
                Some(info) => Some(Ok((**info).clone())),
                None => refusal.map(|(party, refusal)| Err(self.refused(party, refusal))),
            }
        };
        let mut answers = Vec::new();
        // Those that are suspected need not be waited for if the others say enough.
        for which in [all.without(self.suspects()), all] {
            let show = Operation::Show { key: key.into() };
            answers = self.ask(which, &show, first_key, |answers| judged(answers).is_some());
            if let Some(outcome) = judged(&answers) {
                return outcome;
            }
        }
        let reached = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
        let failed = answers.into_iter().find_map(|(_, answer)| answer.err());
        match failed {
            Some(e) if reached <= tolerated => {
                Err(Error::TooFewNodes { reached, nodes, needed: tolerated + 1, why: e.to_string() })
            }
            _ => Err(Error::Contested(format!("they tell of different keys '{key}'"))),
        }
    }
}

fn first_key(reply: Reply) -> Option<KeyInfo> {
    match reply {
        Reply::Keys { keys, .. } => keys.into_iter().next(),
        _ => None,
    }
}

/// r_0 + sum of chi^j r_j, where r_1, r_2 .. are the mask's bytes cut into elements.
fn combination(mask: &Zeroizing<Vec<u8>>, blind: Element, chi: Element) -> Element {
    let chi = Gf128::from_bytes(chi);
    let (mut power, mut sum) = (chi, Gf128::from_bytes(blind));
    for chunk in mask.chunks(ELEMENT_BYTES) {
        let mut element = Zeroizing::new([0; ELEMENT_BYTES]);
        element[..chunk.len()].copy_from_slice(chunk);
        sum += power * Gf128::from_bytes(*element);
        power *= chi;
    }
    sum.to_bytes()
}
