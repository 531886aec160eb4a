//! CCM (SP 800-38C, RFC 3610): counter mode, and the CBC-MAC of nonce, lengths, additional data and message
//! under the same key. How a message comes and what goes out when: [`whole`](super::whole).
//!
//! The nodes themselves set to zero what follows a message in its last block. The tag is the code plus
//! E(A_0).
//!
//! A client with the right to encrypt sees E_K of counter blocks, and of a chain that it does not know. The
//! first byte of a counter block and of the first block of a code differ (appendix A.3), and a block of a
//! chain equals one of those with a probability of the order of q^2 / 2^128 for q blocks (Jonsson, "On the
//! security of CTR + CBC-MAC", SAC 2002; cited from memory).
//!
//! Cost: two blocks for each block of the message, one of them after the other, and one for each block of
//! additional data.

use polyclave_api::{Message, Refusal};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;

use super::StepError;
use super::code::Chain;
use super::whole::{Whole, malformed};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::{BLOCK, Term};

/// Bytes of a nonce of the nodes, as RFC 5116 has it (section 5.3).
const NONCE: usize = 12;
/// Bytes of the nonce and of the message's length together (appendix A.1).
const NONCE_AND_LENGTH: usize = 15;

/// One message.
pub(super) struct Ccm {
    nonce: Vec<u8>,
    /// Whether the client gave the nonce.
    has_nonce: bool,
    additional: Vec<u8>,
    bytes: u32,
    tag: usize,
    chain: Chain,
    /// E(A_0).
    tag_mask: Option<AnyShared>,
}

impl Ccm {
    /// For a message that was checked.
    pub(super) fn new(message: &Message, tag: usize) -> Result<Ccm, Refusal> {
        let bytes = message.bytes;
        let nonce = message.nonce.clone().unwrap_or_else(|| vec![0; NONCE]);
        let of_length = NONCE_AND_LENGTH.saturating_sub(nonce.len());
        // A length of eight bytes holds any.
        if u64::from(bytes).checked_shr(8 * of_length as u32).is_some_and(|beyond| beyond != 0) {
            return Err(malformed(format!(
                "a message of {bytes} bytes; with a nonce of {} bytes ccm has room for {of_length} bytes of its length",
                nonce.len()
            )));
        }
        let (has_nonce, additional) = (message.nonce.is_some(), message.additional.concat());
        Ok(Ccm { nonce, has_nonce, additional, bytes, tag, chain: Chain::default(), tag_mask: None })
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
        let mut blocks = self.block(flags, self.bytes.into()).to_vec();
        if !self.additional.is_empty() {
            // A length below 2^16 - 2^8, as all lengths here are.
            blocks.extend((self.additional.len() as u16).to_be_bytes());
            blocks.extend(&self.additional);
            blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
        }
        blocks
    }

    /// The encryption of counter blocks.
    fn counted(&self, first: u64, count: usize, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let numbers = first..first + count as u64;
        let blocks: Vec<u8> = numbers.flat_map(|number| self.block(0, number)).collect();
        let blocks = at.circuits.blocks(&blocks)?;
        let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
        Ok(at.one(&circuit, count, &[Input::Public(&blocks)])?)
    }
}

impl Whole for Ccm {
    fn blocks_at_start(&self) -> u64 {
        1 + (self.beginning().len() / BLOCK) as u64
    }

    fn begin(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let mut drawn = Vec::new();
        if !self.has_nonce {
            drawn = at.derived::<NONCE>("polyclave 2026 ccm nonce").to_vec();
            self.nonce.clone_from(&drawn);
        }
        self.tag_mask = Some(self.counted(0, 1, at)?);
        for block in self.beginning().as_chunks().0 {
            self.chain.push(Term::Public(*block), None, at)?;
        }
        Ok(drawn)
    }

    fn filled_up(&self, _: usize) -> [u8; BLOCK] {
        [0; BLOCK]
    }

    fn push(&mut self, block: AnyShared, at: &mut Computation<'_>) -> Result<(), StepError> {
        self.chain.push(Term::Shared(&block), None, at)
    }

    fn tag(&mut self, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let ended = || StepError::Refused(malformed("the message has ended"));
        let code = std::mem::take(&mut self.chain).end()?;
        let tag_mask = self.tag_mask.take().ok_or_else(ended)?;
        Ok(at.beginning(BLOCK, &code, Term::Shared(&tag_mask))?)
    }

    fn counts_from_tag(&self) -> bool {
        false
    }

    fn keystream(
        &self,
        _: &[u8],
        first: usize,
        count: usize,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        self.counted(1 + first as u64, count, at)
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Mode;

    use super::*;

    fn message(nonce: Vec<u8>, additional: Vec<u8>, bytes: u32) -> Message {
        Message { mode: Mode::Ccm, nonce: Some(nonce), additional: vec![additional], bytes }
    }

    /// SP 800-38C, appendix C, examples 1 to 3, as far as tags here have 8 bytes and more: the blocks before
    /// the message.
    #[test]
    fn the_first_blocks_are_those_of_the_standard() {
        let ccm = Ccm::new(&message((0x10..0x1c).collect(), (0..20).collect(), 24), 8).expect("it fits");
        let expected = "5a101112131415161718191a1b0000180014000102030405060708090a0b0c0d0e0f101112130000000000000000000000";
        assert_eq!(hex::encode(ccm.beginning()), &expected[..96]);
        assert_eq!(hex::encode(ccm.block(0, 1)), "02101112131415161718191a1b000001");
        assert_eq!(ccm.blocks_at_start(), 4);
    }

    #[test]
    fn messages_whose_length_has_no_room_beside_the_nonce_are_refused() {
        let refused = |nonce, bytes| Ccm::new(&message(vec![0; nonce], Vec::new(), bytes), 16).is_err();
        assert!((7..=13).all(|nonce| !refused(nonce, 65_535)));
        assert!(refused(13, 65_536) && !refused(12, 65_536));
    }
}
