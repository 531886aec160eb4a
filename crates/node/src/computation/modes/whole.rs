//! One short message that the nodes take whole: how it comes, and when what goes out. What is computed of it
//! is a mode's ([`Whole`]): [`siv`](super::siv), [`ccm`](super::ccm), [`gcm_siv`](super::gcm_siv).
//!
//! The message stays shared while its tag is computed: on encryption it comes under masks, on decryption it
//! is the public ciphertext plus shared keystream. The nodes themselves fill up its last block, so a client
//! can have no other tag than that of a message. On encryption the tag is computed when the whole message is
//! fixed; then the client gets the tag, and keystream. On decryption the tag that belongs to the message is
//! compared on shares, by a random multiple of the difference, and is never opened; bytes that a short tag
//! does not have are set to zero there. The keystream stays shared until the tag has fitted. A
//! client that alters a ciphertext learns that it was altered, and no keystream.

use std::collections::VecDeque;

use polyclave_api::{CHAINED, End, Message, Reason, Refusal, Step};
use polyclave_cipher::Cipher;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::evaluate::release;
use polyclave_protocol::protocol::Owner;
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::{Answer, Mode, StepError, misplaced, unauthentic, whole};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::{BLOCK, Term};

/// What a mode computes of a message.
pub(super) trait Whole: Send {
    /// Blocks that do not depend on the message, and that of the tag.
    fn blocks_at_start(&self) -> u64;

    /// Blocks that are computed for each block of the message when it is taken in.
    fn blocks_to_push(&self) -> u64 {
        1
    }

    /// Begins. Returns the nonce, if the nodes draw it.
    fn begin(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError>;

    /// What the last block is filled up with, behind so many bytes of the message.
    fn filled_up(&self, bytes: usize) -> [u8; BLOCK];

    /// Takes in the next block of the message.
    fn push(&mut self, block: AnyShared, at: &mut Computation<'_>) -> Result<(), StepError>;

    /// The tag of the message: the first bytes of a block.
    fn tag(&mut self, at: &mut Computation<'_>) -> Result<AnyShared, StepError>;

    /// Whether keystream depends on the tag. Then the nodes open it. They see it in the ciphertext, too.
    fn counts_from_tag(&self) -> bool;

    /// Keystream for `count` blocks from block number `first` on. `tag` is there if it depends on it.
    fn keystream(
        &self,
        tag: &[u8],
        first: usize,
        count: usize,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError>;
}

pub(super) fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Malformed, message)
}

/// The bytes of a message, and how many have come: in steps, each of whole blocks except for the last.
struct Arrival {
    bytes: usize,
    /// Admitted.
    come: usize,
    /// Blocks that the mode has.
    pushed: usize,
}

impl Arrival {
    fn of(message: &Message) -> Arrival {
        Arrival { bytes: message.bytes as usize, come: 0, pushed: 0 }
    }

    fn is_complete(&self) -> bool {
        self.come >= self.bytes
    }

    /// Whether the mode has all of it.
    fn is_pushed(&self) -> bool {
        self.pushed >= self.bytes.div_ceil(BLOCK).max(1)
    }

    /// Admits ciphertext. Returns how many blocks it has.
    fn admit(&mut self, bytes: usize) -> Result<u64, Refusal> {
        let rest = self.bytes - self.come;
        let is_last = bytes == rest;
        if bytes == 0 || bytes > CHAINED.min(rest) || !(is_last || bytes.is_multiple_of(BLOCK)) {
            return Err(malformed(format!(
                "a piece of {bytes} bytes of a message of which {rest} are still to come; pieces are whole blocks, except for the last, of at most {CHAINED} bytes"
            )));
        }
        self.come += bytes;
        Ok(bytes.div_ceil(BLOCK) as u64)
    }

    /// Admits a message's bytes under a mask, filled up to whole blocks; an empty message has one of filling
    /// only. Returns how many blocks there are.
    fn admit_masked(&mut self, masks: &mut Masks, data: &[u8], next: u32) -> Result<u64, Refusal> {
        let blocks = masks.admit(data, next)?;
        let bytes = data.len().min(self.bytes - self.come);
        self.come += bytes;
        let filling = data.len() - bytes;
        let most = if self.bytes == 0 { BLOCK } else { BLOCK - 1 };
        if filling > most || self.is_complete() != (next == 0) {
            return Err(malformed(format!(
                "{} bytes under a mask do not fit a message of {}",
                data.len(),
                self.bytes
            )));
        }
        Ok(blocks)
    }

    /// Gives the mode the next block: `block` plus `public`. Filling takes the place of what is not of the
    /// message.
    fn push(
        &mut self,
        mode: &mut dyn Whole,
        block: AnyShared,
        public: &[u8],
        at: &mut Computation<'_>,
    ) -> Result<(), StepError> {
        let kept = BLOCK.min(self.bytes.saturating_sub(BLOCK * self.pushed));
        self.pushed += 1;
        match (kept, public) {
            // All of an empty message is filling.
            (0, _) => Ok(()),
            (BLOCK, []) => mode.push(block, at),
            _ => {
                let mut other = mode.filled_up(kept);
                other.iter_mut().zip(public).for_each(|(other, byte)| *other ^= byte);
                let block = at.beginning(kept, &block, Term::Public(other))?;
                mode.push(block, at)
            }
        }
    }
}

/// Encrypts one message.
pub(crate) struct Encrypt {
    mode: Box<dyn Whole>,
    arrival: Arrival,
    tag_bytes: usize,
    masks: Masks,
    /// Whether the whole message was admitted.
    is_whole: bool,
    /// The tag, when the whole message is fixed; empty if keystream does not depend on it.
    tag: Option<Vec<u8>>,
    /// Bytes of keystream that were asked for.
    asked: usize,
    /// Blocks of keystream that were computed.
    computed: usize,
}

impl Encrypt {
    pub(crate) fn new(
        (message, cipher): (&Message, &Cipher),
        tag_bytes: u8,
        mask: u32,
    ) -> Result<Encrypt, Refusal> {
        let tag_bytes = usize::from(tag_bytes);
        let mode = whole(message, tag_bytes, cipher)?;
        let (arrival, masks) = (Arrival::of(message), Masks::new(BLOCK, CHAINED, mask)?);
        Ok(Encrypt { mode, arrival, tag_bytes, masks, is_whole: false, tag: None, asked: 0, computed: 0 })
    }

    /// Computes the tag. Returns this node's part of it for the client.
    fn close(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let tag = self.mode.tag(at)?;
        self.tag = Some(match self.mode.counts_from_tag() {
            false => Vec::new(),
            true => {
                let opened = release(&mut at.protocol, &tag, Owner::All, at.net)?;
                let unopened = || polyclave_protocol::Error::System("the tag was not opened".into());
                opened.map(|cells| cells.accept().to_blocks()).ok_or_else(unopened)?
            }
        });
        Ok(at.protocol.reveal_bytes_to_client(&tag, self.tag_bytes, at.net)?)
    }
}

impl Mode for Encrypt {
    fn blocks_at_start(&self) -> u64 {
        self.mode.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let nonce = self.mode.begin(at)?;
        Ok((nonce, self.masks.draw(at)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let arrival = &mut self.arrival;
        match step {
            Step::Masked { data, next, end: End::No } if !self.is_whole => {
                let blocks = arrival.admit_masked(&mut self.masks, data, *next)?;
                self.is_whole = arrival.is_complete();
                // All of an empty message is filling.
                Ok(if arrival.bytes == 0 { 0 } else { blocks * self.mode.blocks_to_push() })
            }
            Step::Keystream { bytes } if self.is_whole => {
                let bytes = *bytes as usize;
                let rest = arrival.bytes - self.asked;
                if bytes == 0 || bytes > rest || (bytes < rest && !bytes.is_multiple_of(BLOCK)) {
                    return Err(misplaced(step));
                }
                self.asked += bytes;
                Ok(bytes.div_ceil(BLOCK) as u64)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match (&step, &self.tag) {
            (Step::Masked { data, .. }, None) => {
                let mask = self.masks.take()?;
                let circuit = at.block_circuit(BlockCircuit::Beginning(BLOCK))?;
                for (i, masked) in data.chunks(BLOCK).enumerate() {
                    let block = at.protocol.unmask(&mask, BLOCK * i, masked, &circuit.inputs()[0])?;
                    self.arrival.push(&mut *self.mode, block, &[], at)?;
                }
                let tag = if self.arrival.is_pushed() { self.close(at)? } else { Vec::new() };
                Ok(Answer { mask: self.masks.draw(at)?, ..Answer::data(tag) })
            }
            (Step::Keystream { bytes }, Some(tag)) => {
                let bytes = *bytes as usize;
                let (first, count) = (self.computed, bytes.div_ceil(BLOCK));
                self.computed += count;
                let keystream = self.mode.keystream(tag, first, count, at)?;
                Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes, at.net)?))
            }
            (other, _) => Err(StepError::Refused(misplaced(other))),
        }
    }
}

/// Decrypts one message.
pub(crate) struct Decrypt {
    mode: Box<dyn Whole>,
    arrival: Arrival,
    tag: Vec<u8>,
    /// The keystream of each piece, until the client may have it.
    keystream: Withheld,
    checked: bool,
}

impl Decrypt {
    pub(crate) fn new((message, cipher): (&Message, &Cipher), tag: &[u8]) -> Result<Decrypt, Refusal> {
        let mode = whole(message, tag.len(), cipher)?;
        if message.nonce.is_none() && message.mode.nonce_bytes().is_some() {
            return Err(malformed(format!("a ciphertext of {} without its nonce", message.mode)));
        }
        let (arrival, keystream) = (Arrival::of(message), Withheld::default());
        Ok(Decrypt { mode, arrival, tag: tag.to_vec(), keystream, checked: false })
    }
}

impl Mode for Decrypt {
    fn blocks_at_start(&self) -> u64 {
        self.mode.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        self.mode.begin(at)?;
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        match step {
            Step::Absorb { ciphertext } if !self.checked => {
                Ok((1 + self.mode.blocks_to_push()) * self.arrival.admit(ciphertext.len())?)
            }
            Step::Check { tag } if !self.checked && self.arrival.is_complete() && *tag == self.tag => {
                self.checked = true;
                Ok(0)
            }
            Step::Keystream { bytes } if self.checked => self.keystream.admit(*bytes).map(|()| 0),
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match step {
            Step::Absorb { ciphertext } => {
                let (first, count) = (self.arrival.pushed, ciphertext.len().div_ceil(BLOCK));
                let keystream = self.mode.keystream(&self.tag, first, count, at)?;
                for (i, piece) in ciphertext.chunks(BLOCK).enumerate() {
                    let block = at.protocol.lanes(&keystream, i..i + 1);
                    self.arrival.push(&mut *self.mode, block, piece, at)?;
                }
                self.keystream.add(keystream, ciphertext.len());
                Ok(Answer::data(Vec::new()))
            }
            Step::Check { .. } => {
                let right = self.mode.tag(at)?;
                match at.begins_with(&right, &self.tag)? {
                    true => Ok(Answer::data(Vec::new())),
                    false => Err(StepError::Refused(unauthentic())),
                }
            }
            Step::Keystream { .. } => self.keystream.reveal(at),
            other => Err(StepError::Refused(misplaced(&other))),
        }
    }
}

/// Keystream that stays shared until the message has authenticated, piece by piece.
#[derive(Default)]
struct Withheld {
    pieces: VecDeque<(AnyShared, usize)>,
    /// How many of them were asked for.
    asked: usize,
    revealed: usize,
}

impl Withheld {
    fn add(&mut self, keystream: AnyShared, bytes: usize) {
        self.pieces.push_back((keystream, bytes));
    }

    /// Admits the request for the next piece, which must be as long as its ciphertext was.
    fn admit(&mut self, bytes: u32) -> Result<(), Refusal> {
        let waiting = self.asked - self.revealed;
        match self.pieces.get(waiting) {
            Some((_, due)) if *due == bytes as usize => {
                self.asked += 1;
                Ok(())
            }
            _ => Err(misplaced(&Step::Keystream { bytes })),
        }
    }

    fn reveal(&mut self, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let nothing = || StepError::Refused(misplaced(&Step::Keystream { bytes: 0 }));
        let (keystream, bytes) = self.pieces.pop_front().ok_or_else(nothing)?;
        self.revealed += 1;
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api as api;
    use polyclave_cipher::catalog;

    use super::*;

    /// Blocks at the beginning, and for ciphertext of so many bytes.
    fn charged(mode: api::Mode, cipher: &str, bytes: u32) -> (u64, u64) {
        let cipher = catalog::find(cipher).expect("the catalog has it");
        let nonce = mode.nonce_bytes().map(|_| vec![1; 12]);
        let message = Message { mode, nonce, additional: Vec::new(), bytes };
        let mut machine = Decrypt::new((&message, &cipher), &[1; BLOCK]).expect("it fits");
        let absorbed = match bytes {
            0 => 0,
            _ => {
                machine.admit(&Step::Absorb { ciphertext: vec![1; bytes as usize] }).expect("it belongs here")
            }
        };
        (machine.blocks_at_start(), absorbed)
    }

    #[test]
    fn blocks_are_charged_as_they_are_computed() {
        use api::Mode::{Ccm, GcmSiv, Siv};
        assert_eq!(charged(Ccm, "aes-128", 33), (2, 6), "E(A_0) and B_0; each block twice");
        assert_eq!(charged(Siv, "aes-128", 33), (1, 6), "the code of zeros; each block twice");
        assert_eq!(charged(Siv, "aes-128", 0), (2, 0), "a block of filling");
        assert_eq!(charged(GcmSiv, "aes-128", 33), (4 + 1, 3), "keys and the tag; each block once");
        assert_eq!(charged(GcmSiv, "aes-256", 0), (6 + 1, 0));
    }
}
