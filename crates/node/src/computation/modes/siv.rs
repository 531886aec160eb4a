//! SIV (RFC 5297): the tag V is a code of the additional data and the message, and the counters begin with
//! it. There is no nonce to misuse: equal messages with equal additional data have equal ciphertexts, and
//! nothing else shows.
//!
//! A key is two keys of AES. Under the first S2V computes V from CMACs, one block after the other; under the
//! second counter mode encrypts. V is part of the ciphertext, which nodes see in every mode. So they see
//! which messages are equal, as everybody does who sees the ciphertexts.
//!
//! The message stays shared while V is computed: on encryption it comes under masks, on decryption it is the
//! public ciphertext plus shared keystream. The nodes themselves fill up the last block, so a client can have
//! no other code than that of a message. On encryption V is opened among the nodes, which need it for the
//! counters, when the whole message is fixed; keystream follows. On decryption the V that came gives the
//! counters. The one that belongs to the message is compared with it on shares, by a random multiple of the
//! difference, and is never opened. The keystream stays shared until then. So whoever alters a ciphertext
//! learns that it was altered, and no keystream.
//!
//! Cost: two blocks for each block of the message, one of them after the other; one for each block of
//! additional data, one more for V, and for each string 32 lookups.

use polyclave_api::{CHAINED, End, MAX_CHAINED, MAX_STRINGS, Reason, Refusal, Step};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::evaluate::release;
use polyclave_protocol::protocol::{Input, Owner};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::ccm::Withheld;
use super::code::{Arrival, Chain, blocks_of_cmac, cmac, filled_up, subkeys};
use super::{Answer, Mode, StepError, misplaced, refuse_long_additional, unauthentic};
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
struct Message {
    additional: Vec<Vec<u8>>,
    arrival: Arrival,
    chain: Chain,
    added: Vec<Added>,
    /// Blocks of the message in the chain.
    chained: usize,
}

impl Message {
    fn new(additional: &[Vec<u8>], bytes: u32) -> Result<Message, Refusal> {
        if additional.len() > MAX_STRINGS {
            let message =
                format!("{} strings of additional data; {MAX_STRINGS} are allowed", additional.len());
            return Err(Refusal::new(Reason::Malformed, message));
        }
        refuse_long_additional(additional.iter().map(Vec::len).sum())?;
        let arrival = Arrival::of(bytes, MAX_CHAINED)?;
        let (chain, added) = (Chain::default(), Vec::new());
        Ok(Message { additional: additional.to_vec(), arrival, chain, added, chained: 0 })
    }

    fn blocks_at_start(&self) -> u64 {
        1 + self.additional.iter().map(|string| blocks_of_cmac(string.len())).sum::<u64>()
    }

    /// Blocks of the message.
    fn blocks(&self) -> usize {
        self.arrival.bytes.div_ceil(BLOCK).max(1)
    }

    /// Bytes of the message in one of its blocks.
    fn bytes_in(&self, block: usize) -> usize {
        BLOCK.min(self.arrival.bytes.saturating_sub(BLOCK * block))
    }

    /// The codes of the additional data, and what they add to the last blocks of the message.
    fn begin(&mut self, at: &mut Computation<'_>) -> Result<(), StepError> {
        let mut sum = cmac(&[0; BLOCK], at)?;
        for string in &self.additional {
            let doubled = doubled(&sum, at)?;
            let code = cmac(string, at)?;
            sum = at.beginning(BLOCK, &doubled, Term::Shared(&code))?;
        }
        let (bytes, last) = (self.arrival.bytes, self.blocks() - 1);
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
        Ok(())
    }

    /// Takes in the next block of the message: `block` plus `public`, of which the message's bytes count.
    fn push(&mut self, block: &AnyShared, public: &[u8], at: &mut Computation<'_>) -> Result<(), StepError> {
        let kept = self.bytes_in(self.chained);
        let filled;
        let block = match (kept, public) {
            (BLOCK, []) => block,
            _ => {
                let mut other = filled_up(&vec![0; kept]);
                other.iter_mut().zip(public).for_each(|(other, byte)| *other ^= byte);
                filled = at.beginning(kept, block, Term::Public(other))?;
                &filled
            }
        };
        let more = self.added.iter().find(|added| added.block == self.chained);
        self.chain.push(Term::Shared(block), more.map(|added| &added.term), at)?;
        self.chained += 1;
        Ok(())
    }

    /// V.
    fn close(&mut self) -> Result<AnyShared, StepError> {
        if self.chained != self.blocks() {
            return Err(StepError::Refused(Refusal::new(Reason::Malformed, "the message is not complete")));
        }
        std::mem::take(&mut self.chain).end()
    }
}

fn doubled(block: &AnyShared, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
    let circuit = at.block_circuit(BlockCircuit::Doubled)?;
    Ok(run(&mut at.protocol, at.net, &circuit, 1, &[Input::Shared(block)])?.remove(0))
}

/// The keystream that belongs to V, under the second key, from block number `first` on (section 2.5).
fn keystream(
    v: &[u8; BLOCK],
    first: usize,
    count: usize,
    at: &mut Computation<'_>,
) -> Result<AnyShared, StepError> {
    let missing = || StepError::Refused(Refusal::new(Reason::NotForThis, "the key was not made for siv"));
    let second = at.key.second.as_ref().ok_or_else(missing)?;
    let q = u128::from_be_bytes(*v) & !(1 << 63 | 1 << 31);
    let counters: Vec<u8> =
        (first..first + count).flat_map(|i| q.wrapping_add(i as u128).to_be_bytes()).collect();
    let counters = at.circuits.blocks(&counters)?;
    let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
    Ok(at.one_under(second, &circuit, count, &[Input::Public(&counters)])?)
}

/// Encrypts one message.
pub(crate) struct Encrypt {
    message: Message,
    masks: Masks,
    /// Whether the whole message was admitted.
    is_whole: bool,
    /// V, when the whole message is fixed.
    v: Option<[u8; BLOCK]>,
    /// Bytes of keystream that were given out.
    given: usize,
}

impl Encrypt {
    pub(crate) fn new(additional: &[Vec<u8>], bytes: u32, mask: u32) -> Result<Encrypt, Refusal> {
        let message = Message::new(additional, bytes)?;
        let masks = Masks::new(BLOCK, CHAINED, mask)?;
        Ok(Encrypt { message, masks, is_whole: false, v: None, given: 0 })
    }
}

impl Mode for Encrypt {
    fn blocks_at_start(&self) -> u64 {
        self.message.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        self.message.begin(at)?;
        Ok((Vec::new(), self.masks.draw(&mut at.protocol, at.net)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let arrival = &mut self.message.arrival;
        match step {
            Step::Masked { data, next, end: End::No } if !self.is_whole => {
                if arrival.bytes == 0 && data.len() != BLOCK {
                    return Err(misplaced(step));
                }
                let (blocks, _) = arrival.admit_masked(&mut self.masks, data, *next)?;
                self.is_whole = arrival.is_complete();
                Ok(blocks)
            }
            Step::Keystream { bytes } if self.is_whole => {
                let bytes = *bytes as usize;
                let rest = arrival.bytes - self.given;
                if bytes == 0 || bytes > rest || (bytes < rest && !bytes.is_multiple_of(BLOCK)) {
                    return Err(misplaced(step));
                }
                self.given += bytes;
                Ok(bytes.div_ceil(BLOCK) as u64)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match (&step, &self.v) {
            (Step::Masked { data, .. }, None) => {
                let mask = self.masks.take()?;
                let circuit = at.block_circuit(BlockCircuit::Beginning(BLOCK))?;
                for (i, masked) in data.chunks(BLOCK).enumerate() {
                    let block = at.protocol.unmask(&mask, BLOCK * i, masked, &circuit.inputs()[0])?;
                    self.message.push(&block, &[], at)?;
                }
                let mut data = Vec::new();
                if self.message.chained == self.message.blocks() {
                    let v = self.message.close()?;
                    let opened = release(&mut at.protocol, &v, Owner::All, at.net)?;
                    let opened = opened.map(|cells| cells.accept().to_blocks());
                    let unopened = || polyclave_protocol::Error::System("the tag was not opened".into());
                    self.v = Some(opened.and_then(|v| v.try_into().ok()).ok_or_else(unopened)?);
                    data = at.protocol.reveal_to_client(&v, at.net)?;
                }
                Ok(Answer { mask: self.masks.draw(&mut at.protocol, at.net)?, ..Answer::data(data) })
            }
            (Step::Keystream { bytes }, Some(v)) => {
                let bytes = *bytes as usize;
                let first = (self.given - bytes) / BLOCK;
                let keystream = keystream(v, first, bytes.div_ceil(BLOCK), at)?;
                Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes, at.net)?))
            }
            (other, _) => Err(StepError::Refused(misplaced(other))),
        }
    }
}

/// Decrypts one message.
pub(crate) struct Decrypt {
    message: Message,
    v: [u8; BLOCK],
    keystream: Withheld,
    checked: bool,
}

impl Decrypt {
    pub(crate) fn new(additional: &[Vec<u8>], bytes: u32, v: [u8; BLOCK]) -> Result<Decrypt, Refusal> {
        let message = Message::new(additional, bytes)?;
        Ok(Decrypt { message, v, keystream: Withheld::default(), checked: false })
    }
}

impl Mode for Decrypt {
    fn blocks_at_start(&self) -> u64 {
        self.message.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        self.message.begin(at)?;
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let arrival = &mut self.message.arrival;
        match step {
            Step::Absorb { ciphertext } if !self.checked => Ok(2 * arrival.admit(ciphertext.len(), CHAINED)?),
            Step::Check { tag } if !self.checked && arrival.is_complete() && tag[..] == self.v => {
                self.checked = true;
                Ok(u64::from(arrival.bytes == 0))
            }
            Step::Keystream { bytes } if self.checked => self.keystream.admit(*bytes).map(|()| 0),
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match step {
            Step::Absorb { ciphertext } => {
                let (first, count) = (self.message.chained, ciphertext.len().div_ceil(BLOCK));
                let keystream = keystream(&self.v, first, count, at)?;
                for (i, piece) in ciphertext.chunks(BLOCK).enumerate() {
                    let block = at.protocol.lanes(&keystream, i..i + 1);
                    self.message.push(&block, piece, at)?;
                }
                self.keystream.add(keystream, ciphertext.len());
                Ok(Answer::data(Vec::new()))
            }
            Step::Check { .. } => {
                if self.message.arrival.bytes == 0 {
                    self.push_filling(at)?;
                }
                let right = self.message.close()?;
                match at.begins_with(&right, &self.v)? {
                    true => Ok(Answer::data(Vec::new())),
                    false => Err(StepError::Refused(unauthentic())),
                }
            }
            Step::Keystream { .. } => self.keystream.reveal(at),
            other => Err(StepError::Refused(misplaced(&other))),
        }
    }
}

impl Decrypt {
    /// The only block of an empty message: filling.
    fn push_filling(&mut self, at: &mut Computation<'_>) -> Result<(), StepError> {
        let more = self.message.added.first().map(|added| &added.term);
        self.message.chain.push(Term::Public(filled_up(&[])), more, at)?;
        self.message.chained += 1;
        Ok(())
    }
}
