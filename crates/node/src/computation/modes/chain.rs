//! CBC encryption (SP 800-38A, section 6.2) and CMAC (SP 800-38B). Blocks are computed one after the other,
//! because each needs the one before. The chain stays shared; of CMAC only the last block is revealed.
//!
//! # Why the right to encrypt in CBC is not the right to E_K(x) for a chosen x
//!
//! CBC computes E_K(chain + block). A client that knows the chain before it chooses the block gets E_K(x): it
//! sends x + chain. So the client learns what a block is chained to only when that block is fixed, that is
//! when the nodes have compared it:
//!
//! * The initial block is random, shared and unknown to t nodes (a mask that masks nothing), because the
//!   standard asks for an unpredictable one. Nodes send their parts of it with the first answer.
//! * Under a mask that the client deals, the first step is part of the request: it is fixed before there is a
//!   session.
//! * The first block of a step is chained to the last block of the step before. Nodes send that last block
//!   with the next answer, or at once if the client asked for no further mask, since then no block can
//!   follow. This is delayed CBC (Fouque, Martinet and Poupard, Practical symmetric on-line encryption, FSE
//!   2003, cited from memory), which they prove secure against adversaries that choose block by block.
//!
//! Under a key that takes initial blocks of its clients none of this holds for the first block: there the
//! right to encrypt is the right to E_K(x). Such a key must be made so ([`polyclave_api::check_new_key`]
//! refuses the usages that this undoes).
//!
//! A client that works together with t nodes knows no more: the chain is shared. With more nodes, or with a
//! node that departs from a passive protocol, the key is lost anyway. CBC authenticates nothing.

use polyclave_api::{CHAINED, End, Reason, Refusal, Step};
use polyclave_cipher::Cells;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;

/// The mode that is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cbc,
    Cmac,
}

/// The state of the chain.
enum Link<S> {
    /// At its public beginning.
    Public(Cells),
    /// At a block that nobody knows.
    Shared(S),
    /// The message is complete.
    Ended,
}

pub(crate) struct Chain {
    kind: Kind,
    block: usize,
    masks: Masks,
    link: Option<Link<AnyShared>>,
    ended: bool,
    /// CBC: the client's initial block, if it has chosen one.
    chosen: Option<Vec<u8>>,
    /// CBC: this node's part of the initial block, until the first answer.
    initial: Vec<u8>,
    /// CBC: the last block of the step before, which the client does not have yet.
    held: Option<AnyShared>,
}

impl Chain {
    pub(crate) fn cbc(block: usize, mask: u32, chosen: Option<&[u8]>) -> Result<Self, Refusal> {
        if let Some(given) = chosen.map(<[u8]>::len).filter(|given| *given != block) {
            let message = format!("an initial block of {given} bytes; this key takes {block}");
            return Err(Refusal::new(Reason::Malformed, message));
        }
        Ok(Chain { chosen: chosen.map(<[u8]>::to_vec), ..Self::new(Kind::Cbc, block, mask)? })
    }

    pub(crate) fn cmac(block: usize, mask: u32) -> Result<Self, Refusal> {
        Self::new(Kind::Cmac, block, mask)
    }

    fn new(kind: Kind, block: usize, mask: u32) -> Result<Self, Refusal> {
        let masks = Masks::new(block, CHAINED, mask)?;
        let (chosen, initial) = (None, Vec::new());
        Ok(Chain { kind, block, masks, link: None, ended: false, chosen, initial, held: None })
    }

    /// Computes one block of the chain.
    fn push(
        &mut self,
        block: &AnyShared,
        subkey: Option<&AnyShared>,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        let link = self.link.replace(Link::Ended);
        let chain = match &link {
            Some(Link::Public(cells)) => Input::Public(cells),
            Some(Link::Shared(shared)) => Input::Shared(shared),
            Some(Link::Ended) | None => {
                return Err(StepError::Refused(Refusal::new(Reason::Malformed, "the message has ended")));
            }
        };
        let circuits = at.circuits.chained()?;
        let out = match subkey {
            Some(subkey) => {
                at.one(&circuits.last_of_cmac, 1, &[Input::Shared(block), chain, Input::Shared(subkey)])?
            }
            None => at.one(&circuits.chain, 1, &[Input::Shared(block), chain])?,
        };
        if subkey.is_none() {
            self.link = Some(Link::Shared(out.clone()));
        }
        Ok(out)
    }
}

impl Mode for Chain {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let zero = vec![0; self.block];
        self.link = Some(match (self.kind, &self.chosen) {
            (Kind::Cbc, Some(chosen)) => Link::Public(at.circuits.blocks(chosen)?),
            (Kind::Cbc, None) => {
                let (random, initial) = at.protocol.mask_input(self.block, at.net)?;
                self.initial = initial;
                Link::Shared(at.protocol.unmask(
                    &random,
                    0,
                    &zero,
                    &at.circuits.chained()?.chain.inputs()[1],
                )?)
            }
            (Kind::Cmac, _) => Link::Public(at.circuits.blocks(&zero)?),
        });
        Ok((Vec::new(), self.masks.draw(at)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let Step::Masked { data, next, end } = step else { return Err(misplaced(step)) };
        if self.ended || (self.kind == Kind::Cbc && *end != End::No) {
            return Err(misplaced(step));
        }
        self.ended = *end != End::No;
        if self.ended && *next != 0 {
            return Err(Refusal::new(Reason::Malformed, "a mask for after the end"));
        }
        self.masks.admit(data, *next)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let Step::Masked { data, end, next } = &step else {
            return Err(StepError::Refused(misplaced(&step)));
        };
        let mask = self.masks.take()?;
        let subkey = match (end, &at.key.subkeys) {
            (End::No, _) => None,
            (End::Whole, Some((k1, _))) => Some(k1),
            (End::Filled, Some((_, k2))) => Some(k2),
            (_, None) => return Err(StepError::Refused(misplaced(&step))),
        };
        let mut revealed = Vec::new();
        let count = data.len() / self.block;
        for (i, block) in data.chunks(self.block).enumerate() {
            let last = i + 1 == count;
            let port = match last && subkey.is_some() {
                true => &at.circuits.chained()?.last_of_cmac.inputs()[0],
                false => &at.circuits.chained()?.chain.inputs()[0],
            };
            let block = at.protocol.unmask(&mask, i * self.block, block, port)?;
            let out = self.push(&block, subkey.filter(|_| last), at)?;
            let message = match self.kind {
                Kind::Cbc => self.held.replace(out),
                Kind::Cmac => Some(out).filter(|_| last && self.ended),
            };
            if let Some(message) = message {
                revealed.extend(at.protocol.reveal_to_client(&message, at.net)?);
            }
        }
        // No block follows that the client could choose with this knowledge.
        if let Some(message) = self.held.take_if(|_| *next == 0) {
            revealed.extend(at.protocol.reveal_to_client(&message, at.net)?);
        }
        let (mask, initial) = (self.masks.draw(at)?, std::mem::take(&mut self.initial));
        Ok(Answer { mask, initial, ..Answer::data(revealed) })
    }
}
