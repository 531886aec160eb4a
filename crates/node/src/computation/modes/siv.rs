//! SIV (RFC 5297): the tag V is a code of the additional data and the message, and the counters begin with
//! it. There is no nonce to misuse: equal messages with equal additional data have equal ciphertexts, and
//! nothing else shows. How a message comes and what goes out when: [`whole`](super::whole).
//!
//! A key is two keys of AES. Under the first S2V computes V from CMACs, one block after the other; under the
//! second counter mode encrypts. V is part of the ciphertext, which nodes see in every mode. So they see
//! which messages are equal, as everybody does who sees the ciphertexts. The nodes need V for the counters:
//! on encryption it is opened among them, on decryption it came with the ciphertext.
//!
//! Cost: two blocks for each block of the message, one of them after the other; one for each block of
//! additional data, one more for V, and for each string 32 lookups.

use polyclave_api::{Message, Reason, Refusal};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;

use super::StepError;
use super::code::{Chain, blocks_of_cmac, cmac, filled_up, subkeys};
use super::whole::{Whole, malformed};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::{BLOCK, Term};
use crate::computation::pieces::run;

/// What is added to one of the last blocks of the message.
struct Added {
    block: usize,
    term: AnyShared,
}

/// S2V of one message (RFC 5297, section 2.4).
pub(super) struct Siv {
    additional: Vec<Vec<u8>>,
    bytes: usize,
    chain: Chain,
    added: Vec<Added>,
    /// Blocks of the message in the chain.
    chained: usize,
}

impl Siv {
    /// For a message that was checked.
    pub(super) fn new(message: &Message) -> Siv {
        let (additional, bytes) = (message.additional.clone(), message.bytes as usize);
        Siv { additional, bytes, chain: Chain::default(), added: Vec::new(), chained: 0 }
    }

    /// Blocks of the message.
    fn blocks(&self) -> usize {
        self.bytes.div_ceil(BLOCK).max(1)
    }

    /// The next link of the chain.
    fn link(&mut self, block: Term<'_>, at: &mut Computation<'_>) -> Result<(), StepError> {
        let more = self.added.iter().find(|added| added.block == self.chained);
        self.chain.push(block, more.map(|added| &added.term), at)?;
        self.chained += 1;
        Ok(())
    }
}

impl Whole for Siv {
    fn blocks_at_start(&self) -> u64 {
        let of_empty = u64::from(self.bytes == 0);
        1 + of_empty + self.additional.iter().map(|string| blocks_of_cmac(string.len())).sum::<u64>()
    }

    /// The codes of the additional data, and what they add to the last blocks of the message.
    fn begin(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let mut sum = cmac(&[0; BLOCK], at)?;
        for string in &self.additional {
            let doubled = doubled(&sum, at)?;
            let code = cmac(string, at)?;
            sum = at.beginning(BLOCK, &doubled, Term::Shared(&code))?;
        }
        let (bytes, last) = (self.bytes, self.blocks() - 1);
        let (whole, filled) = subkeys(at)?;
        if bytes < BLOCK {
            sum = doubled(&sum, at)?;
        }
        self.added = match bytes % BLOCK {
            rest if rest > 0 && bytes > BLOCK => {
                let circuit = at.block_circuit(BlockCircuit::Overlapping(rest))?;
                let mut both = run(&mut at.protocol, at.net, &circuit, 1, &[Input::Shared(&sum)])?;
                let (behind, before) = (both.remove(1), both.remove(0));
                let behind = at.beginning(BLOCK, &behind, Term::Shared(filled))?;
                vec![Added { block: last - 1, term: before }, Added { block: last, term: behind }]
            }
            _ => vec![Added { block: last, term: at.beginning(BLOCK, &sum, Term::Shared(whole))? }],
        };
        Ok(Vec::new())
    }

    fn filled_up(&self, bytes: usize) -> [u8; BLOCK] {
        filled_up(&vec![0; bytes])
    }

    fn push(&mut self, block: AnyShared, at: &mut Computation<'_>) -> Result<(), StepError> {
        self.link(Term::Shared(&block), at)
    }

    /// V.
    fn tag(&mut self, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        if self.bytes == 0 {
            self.link(Term::Public(filled_up(&[])), at)?;
        }
        if self.chained != self.blocks() {
            return Err(StepError::Refused(malformed("the message is not complete")));
        }
        std::mem::take(&mut self.chain).end()
    }

    fn counts_from_tag(&self) -> bool {
        true
    }

    /// The keystream that belongs to V, under the second key (section 2.5).
    fn keystream(
        &self,
        v: &[u8],
        first: usize,
        count: usize,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        let missing = || StepError::Refused(Refusal::new(Reason::NotForThis, "the key was not made for siv"));
        let second = at.key.second.as_ref().ok_or_else(missing)?;
        let broken = |_| StepError::Refused(malformed("a tag of siv has 16 bytes"));
        let q = u128::from_be_bytes(v.try_into().map_err(broken)?) & !(1 << 63 | 1 << 31);
        let counters: Vec<u8> =
            (first..first + count).flat_map(|i| q.wrapping_add(i as u128).to_be_bytes()).collect();
        let counters = at.circuits.blocks(&counters)?;
        let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
        Ok(at.one_under(second, &circuit, count, &[Input::Public(&counters)])?)
    }
}

fn doubled(block: &AnyShared, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
    let circuit = at.block_circuit(BlockCircuit::Doubled)?;
    Ok(run(&mut at.protocol, at.net, &circuit, 1, &[Input::Shared(block)])?.remove(0))
}
