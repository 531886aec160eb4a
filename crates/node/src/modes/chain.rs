//! CBC encryption (SP 800-38A, section 6.2) and CMAC (SP 800-38B): one block after the other, since each waits for the one
//! before. The chain stays shared; of CMAC only the last block is revealed.
//!
//! CBC authenticates nothing.

use polyclave_cipher::Cells;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceProtocol;
use polyclave_transport::wire::{End, Reason, Refusal, Step};

use super::blocks::Masks;
use super::{Answer, Fault, Mode, misplaced};
use crate::computation::Computation;

/// The most bytes of one step: every block takes as long as a whole chunk of a parallel mode, and peers wait.
const MOST: usize = 2048;

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cbc,
    Cmac,
}

/// Where the chain is.
enum Link<S> {
    /// At its public beginning.
    Public(Cells),
    /// At a block that nobody knows.
    Shared(S),
    /// The message is complete.
    Ended,
}

pub(crate) struct Chain<P: ServiceProtocol> {
    kind: Kind,
    block: usize,
    masks: Masks<P>,
    link: Option<Link<P::Shared>>,
    ended: bool,
}

impl<P: ServiceProtocol> Chain<P> {
    pub(crate) fn cbc(block: usize, mask: u32) -> Result<Self, Refusal> {
        Self::new(Kind::Cbc, block, mask)
    }

    pub(crate) fn cmac(block: usize, mask: u32) -> Result<Self, Refusal> {
        Self::new(Kind::Cmac, block, mask)
    }

    fn new(kind: Kind, block: usize, mask: u32) -> Result<Self, Refusal> {
        Ok(Chain { kind, block, masks: Masks::new(block, MOST, mask)?, link: None, ended: false })
    }

    /// Puts one block through.
    fn push(
        &mut self,
        block: &P::Shared,
        subkey: Option<&P::Shared>,
        at: &mut Computation<'_, P>,
    ) -> Result<P::Shared, Fault> {
        let link = self.link.replace(Link::Ended);
        let chain = match &link {
            Some(Link::Public(cells)) => Input::Public(cells),
            Some(Link::Shared(shared)) => Input::Shared(shared),
            Some(Link::Ended) | None => {
                return Err(Fault::Refused(Refusal::new(Reason::Malformed, "the message has ended")));
            }
        };
        let circuits = at.circuits;
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

impl<P: ServiceProtocol> Mode<P> for Chain<P> {
    fn start(&mut self, at: &mut Computation<'_, P>) -> Result<(Vec<u8>, Vec<u8>), Fault> {
        let mut first = vec![0; self.block];
        if self.kind == Kind::Cbc {
            first.copy_from_slice(&at.derived::<16>("polyclave 2026 cbc initial block")[..self.block]);
        }
        self.link = Some(Link::Public(at.circuits.blocks(&first)?));
        let told = if self.kind == Kind::Cbc { first } else { Vec::new() };
        Ok((told, self.masks.draw(&mut at.protocol, at.net)?))
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

    fn run(&mut self, step: Step, at: &mut Computation<'_, P>) -> Result<Answer, Fault> {
        let Step::Masked { data, end, .. } = &step else { return Err(Fault::Refused(misplaced(&step))) };
        let mask = self.masks.take()?;
        let subkey = match (end, &at.key.subkeys) {
            (End::No, _) => None,
            (End::Whole, Some((k1, _))) => Some(k1),
            (End::Filled, Some((_, k2))) => Some(k2),
            (_, None) => return Err(Fault::Refused(misplaced(&step))),
        };
        let mut revealed = Vec::new();
        let count = data.len() / self.block;
        for (i, block) in data.chunks(self.block).enumerate() {
            let last = i + 1 == count;
            let port = match last && subkey.is_some() {
                true => &at.circuits.last_of_cmac.inputs()[0],
                false => &at.circuits.chain.inputs()[0],
            };
            let block = at.protocol.unmask(&mask, i * self.block, block, port)?;
            let out = self.push(&block, subkey.filter(|_| last), at)?;
            if self.kind == Kind::Cbc || (last && self.ended) {
                revealed.extend(at.protocol.reveal_to_client(&out, at.net)?);
            }
        }
        Ok(Answer { data: revealed, mask: self.masks.draw(&mut at.protocol, at.net)? })
    }
}
