//! CCM (SP 800-38C, RFC 3610): counter mode, and the CBC-MAC of nonce, lengths, additional data and message
//! under the same key.
//!
//! The message stays shared while its code is computed: on encryption it comes under masks, on decryption it
//! is the public ciphertext plus shared keystream. The nodes themselves set to zero what follows a message in
//! its last block. On encryption the client gets the keystream of a piece in the answer to the step that
//! fixes the piece, and last the tag: the code plus E(A_0), of which only the bytes of the tag go out. On
//! decryption the nodes compare the first bytes of the tag on shares and set the others to zero there. The
//! keystream stays shared until the tag has fitted.
//!
//! A client with the right to encrypt sees E_K of counter blocks, and of a chain that it does not know. The
//! first byte of a counter block and of the first block of a code differ (appendix A.3), and a block of a
//! chain equals one of those with a probability of the order of q^2 / 2^128 for q blocks (Jonsson, "On the
//! security of CTR + CBC-MAC", SAC 2002; cited from memory). That the client chooses later blocks when it has
//! seen keystream of earlier ones gives it nothing: keystream tells nothing of the chain.
//!
//! Cost: two blocks for each block of the message, one of them after the other, and one for each block of
//! additional data.

use std::collections::VecDeque;

use polyclave_api::{self as api, CHAINED, End, MAX_CHAINED, Reason, Refusal, Step};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::code::{Arrival, Chain};
use super::{Answer, Mode, StepError, misplaced, refuse_long_additional, unauthentic};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::{BLOCK, Term};

/// Bytes of a nonce of the nodes, as RFC 5116 has it (section 5.3).
const NONCE: usize = 12;
/// Bytes of the nonce and of the message's length together (appendix A.1).
const NONCE_AND_LENGTH: usize = 15;

/// One message.
struct Message {
    nonce: Vec<u8>,
    additional: Vec<u8>,
    tag: usize,
    arrival: Arrival,
    chain: Chain,
    /// E(A_0), which covers the tag.
    tag_mask: Option<AnyShared>,
    /// Blocks of the message that were computed.
    computed: u64,
}

impl Message {
    fn new(nonce: &[u8], additional: &[u8], bytes: u32, tag: u8) -> Result<Message, Refusal> {
        refuse_long_additional(additional.len())?;
        let refused = |message: String| Err(Refusal::new(Reason::Malformed, message));
        if !api::Mode::Ccm.nonce_bytes().contains(&nonce.len()) {
            return refused(format!("a nonce of {} bytes; ccm takes 7 to 13", nonce.len()));
        }
        if !api::Mode::Ccm.takes_tag(usize::from(tag)) {
            return refused(format!("a tag of {tag} bytes; ccm has tags of 8, 10, 12, 14 or 16 here"));
        }
        let of_length = NONCE_AND_LENGTH - nonce.len();
        // A length of eight bytes holds any.
        if u64::from(bytes).checked_shr(8 * of_length as u32).is_some_and(|beyond| beyond != 0) {
            return refused(format!(
                "a message of {bytes} bytes; with a nonce of {} bytes ccm has room for {of_length} bytes of its length",
                nonce.len()
            ));
        }
        Ok(Message {
            nonce: nonce.to_vec(),
            additional: additional.to_vec(),
            tag: usize::from(tag),
            arrival: Arrival::of(bytes, MAX_CHAINED)?,
            chain: Chain::default(),
            tag_mask: None,
            computed: 0,
        })
    }

    /// A block of flags, the nonce, and a number (appendix A.2.1 and A.3).
    fn block(&self, flags: u8, number: u64) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[8..].copy_from_slice(&number.to_be_bytes());
        block[0] = flags | (NONCE_AND_LENGTH - self.nonce.len() - 1) as u8;
        block[1..=self.nonce.len()].copy_from_slice(&self.nonce);
        block
    }

    /// The blocks before those of the message (appendix A.2.1 and A.2.2).
    fn beginning(&self) -> Vec<u8> {
        let has_data = if self.additional.is_empty() { 0 } else { 0x40 };
        let flags = has_data | (((self.tag - 2) / 2) << 3) as u8;
        let mut blocks = self.block(flags, self.arrival.bytes as u64).to_vec();
        if !self.additional.is_empty() {
            // A length below 2^16 - 2^8, as all lengths here are.
            blocks.extend((self.additional.len() as u16).to_be_bytes());
            blocks.extend(&self.additional);
            blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
        }
        blocks
    }

    fn blocks_at_start(&self) -> u64 {
        1 + (self.beginning().len() / BLOCK) as u64
    }

    fn begin(&mut self, at: &mut Computation<'_>) -> Result<(), StepError> {
        self.tag_mask = Some(self.keystream(0, 1, at)?);
        for block in self.beginning().as_chunks().0 {
            self.chain.push(Term::Public(*block), None, at)?;
        }
        Ok(())
    }

    /// The encryption of counter blocks.
    fn keystream(&self, first: u64, count: u64, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let blocks: Vec<u8> = (first..first + count).flat_map(|number| self.block(0, number)).collect();
        let blocks = at.circuits.blocks(&blocks)?;
        let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
        Ok(at.one(&circuit, count as usize, &[Input::Public(&blocks)])?)
    }

    /// The keystream of the next blocks of the message.
    fn next_keystream(&mut self, count: usize, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let keystream = self.keystream(1 + self.computed, count as u64, at)?;
        self.computed += count as u64;
        Ok(keystream)
    }

    /// Code and cover, the tag among their first bytes.
    fn close(&mut self, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let ended = || StepError::Refused(Refusal::new(Reason::Malformed, "the message has ended"));
        let code = std::mem::take(&mut self.chain).end()?;
        let tag_mask = self.tag_mask.take().ok_or_else(ended)?;
        Ok(at.beginning(BLOCK, &code, Term::Shared(&tag_mask))?)
    }
}

/// Encrypts one message.
pub(crate) struct Encrypt {
    message: Message,
    /// Whether the client gave the nonce.
    has_nonce: bool,
    /// `None` for an empty message.
    masks: Option<Masks>,
    /// Bytes of the message in the step that was admitted last.
    due: usize,
    closed: bool,
}

impl Encrypt {
    pub(crate) fn new(
        nonce: Option<&[u8]>,
        additional: &[u8],
        (bytes, tag): (u32, u8),
        mask: u32,
    ) -> Result<Encrypt, Refusal> {
        let message = Message::new(nonce.unwrap_or(&[0; NONCE]), additional, bytes, tag)?;
        if (mask == 0) != (bytes == 0) {
            let text = format!("a mask of {mask} bytes for a message of {bytes}");
            return Err(Refusal::new(Reason::Malformed, text));
        }
        let masks = (mask > 0).then(|| Masks::new(BLOCK, CHAINED, mask)).transpose()?;
        Ok(Encrypt { message, has_nonce: nonce.is_some(), masks, due: 0, closed: false })
    }
}

impl Mode for Encrypt {
    fn blocks_at_start(&self) -> u64 {
        self.message.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let mut of_nodes = Vec::new();
        if !self.has_nonce {
            of_nodes = at.derived::<NONCE>("polyclave 2026 ccm nonce").to_vec();
            self.message.nonce.clone_from(&of_nodes);
        }
        self.message.begin(at)?;
        let mask =
            self.masks.as_mut().map_or(Ok(Vec::new()), |masks| masks.draw(&mut at.protocol, at.net))?;
        Ok((of_nodes, mask))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let arrival = &mut self.message.arrival;
        match (step, &mut self.masks) {
            _ if self.closed => Err(misplaced(step)),
            (Step::Masked { data, next, end: End::No }, Some(masks)) if !arrival.is_complete() => {
                let (blocks, bytes) = arrival.admit_masked(masks, data, *next)?;
                self.due = bytes;
                Ok(2 * blocks)
            }
            (Step::Tag, _) if arrival.is_complete() => {
                self.closed = true;
                Ok(0)
            }
            (other, _) => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let message = &mut self.message;
        match (&step, &mut self.masks) {
            (Step::Masked { data, .. }, Some(masks)) => {
                let mask = masks.take()?;
                let keystream = message.next_keystream(data.len() / BLOCK, at)?;
                for (i, masked) in data.chunks(BLOCK).enumerate() {
                    let kept = BLOCK.min(self.due - BLOCK * i);
                    let circuit = at.block_circuit(BlockCircuit::Beginning(kept))?;
                    let block = at.protocol.unmask(&mask, BLOCK * i, masked, &circuit.inputs()[0])?;
                    let block = match kept {
                        BLOCK => block,
                        _ => at.beginning(kept, &block, Term::Public([0; BLOCK]))?,
                    };
                    message.chain.push(Term::Shared(&block), None, at)?;
                }
                let data = at.protocol.reveal_bytes_to_client(&keystream, self.due, at.net)?;
                Ok(Answer { mask: masks.draw(&mut at.protocol, at.net)?, ..Answer::data(data) })
            }
            (Step::Tag, _) => {
                let tag = message.close(at)?;
                Ok(Answer::data(at.protocol.reveal_bytes_to_client(&tag, message.tag, at.net)?))
            }
            (other, _) => Err(StepError::Refused(misplaced(other))),
        }
    }
}

/// Decrypts one message.
pub(crate) struct Decrypt {
    message: Message,
    /// The keystream of each piece, until the client may have it.
    keystream: Withheld,
    checked: bool,
}

impl Decrypt {
    pub(crate) fn new(nonce: &[u8], additional: &[u8], (bytes, tag): (u32, u8)) -> Result<Decrypt, Refusal> {
        let message = Message::new(nonce, additional, bytes, tag)?;
        Ok(Decrypt { message, keystream: Withheld::default(), checked: false })
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
        let message = &mut self.message;
        match step {
            Step::Absorb { ciphertext } if !self.checked => {
                Ok(2 * message.arrival.admit(ciphertext.len(), CHAINED)?)
            }
            Step::Check { tag }
                if !self.checked && message.arrival.is_complete() && tag.len() == message.tag =>
            {
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
                let count = ciphertext.len().div_ceil(BLOCK);
                let keystream = self.message.next_keystream(count, at)?;
                for (i, piece) in ciphertext.chunks(BLOCK).enumerate() {
                    let mut public = [0; BLOCK];
                    public[..piece.len()].copy_from_slice(piece);
                    let block = at.protocol.lanes(&keystream, i..i + 1);
                    let block = at.beginning(piece.len(), &block, Term::Public(public))?;
                    self.message.chain.push(Term::Shared(&block), None, at)?;
                }
                self.keystream.add(keystream, ciphertext.len());
                Ok(Answer::data(Vec::new()))
            }
            Step::Check { tag } => {
                let right = self.message.close(at)?;
                match at.begins_with(&right, &tag)? {
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
pub(super) struct Withheld {
    pieces: VecDeque<(AnyShared, usize)>,
    /// How many of them were asked for.
    asked: usize,
    revealed: usize,
}

impl Withheld {
    pub(super) fn add(&mut self, keystream: AnyShared, bytes: usize) {
        self.pieces.push_back((keystream, bytes));
    }

    /// Admits the request for the next piece, which must be as long as its ciphertext was.
    pub(super) fn admit(&mut self, bytes: u32) -> Result<(), Refusal> {
        let waiting = self.asked - self.revealed;
        match self.pieces.get(waiting) {
            Some((_, due)) if *due == bytes as usize => {
                self.asked += 1;
                Ok(())
            }
            _ => Err(misplaced(&Step::Keystream { bytes })),
        }
    }

    pub(super) fn reveal(&mut self, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let nothing = || StepError::Refused(misplaced(&Step::Keystream { bytes: 0 }));
        let (keystream, bytes) = self.pieces.pop_front().ok_or_else(nothing)?;
        self.revealed += 1;
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SP 800-38C, appendix C, examples 1 to 3, as far as tags here have 8 bytes and more: the blocks before
    /// the message.
    #[test]
    fn the_first_blocks_are_those_of_the_standard() {
        let nonce: Vec<u8> = (0x10..0x1c).collect();
        let additional: Vec<u8> = (0..20).collect();
        let message = Message::new(&nonce, &additional, 24, 8).expect("it fits");
        let expected = "5a101112131415161718191a1b0000180014000102030405060708090a0b0c0d0e0f101112130000000000000000000000";
        assert_eq!(hex::encode(message.beginning()), &expected[..96]);
        assert_eq!(hex::encode(message.block(0, 1)), "02101112131415161718191a1b000001");
        assert_eq!(message.blocks_at_start(), 4);
    }

    #[test]
    fn lengths_that_ccm_does_not_have_are_refused() {
        let refused =
            |nonce: usize, bytes: u32, tag: u8| Message::new(&vec![0; nonce], &[], bytes, tag).is_err();
        assert!(refused(6, 0, 16) && refused(14, 0, 16));
        assert!([0, 4, 6, 7, 9, 15, 17].iter().all(|tag| refused(12, 0, *tag)));
        assert!((7..=13).all(|nonce| !refused(nonce, 65_535, 8)));
        assert!(refused(13, 65_536, 16) && !refused(12, 65_536, 16) && refused(12, 65_537, 16));
    }
}
