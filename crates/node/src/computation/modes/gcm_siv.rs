//! GCM-SIV (RFC 8452): each nonce has keys of its own, the tag is a code of nonce, additional data and
//! message, and the counters begin with it. A nonce that comes twice shows which messages are equal, and
//! nothing else. How a message comes and what goes out when: [`whole`](super::whole).
//!
//! The key encrypts numbers and nonces, which are public. The halves of these blocks are the keys of one
//! message; the nodes derive them on shares (section 4), and expand the message's key. POLYVAL is GHASH with
//! all bytes in the opposite order, under the key times x (appendix A). The tag is the encryption of
//! POLYVAL's value plus the nonce. It is part of the ciphertext, which nodes see in every mode, and they need
//! it for the counters: on encryption it is opened among them, on decryption it came with the ciphertext.
//!
//! Whatever nonce a client chooses, it gets keystream of the message that it gave, and no other. But with the
//! nonce of an old message it can guess that message, and see by the tag whether it was right. So to choose a
//! nonce takes what it takes for GCM: a key that was made for that, and the right to decrypt. A key for it is
//! for nothing else, because any other use could give these halves away (`api/src/modes/facts.rs`).
//!
//! Cost: for each message 4 blocks (AES-128) or 6 (AES-256), a key schedule and one more block; two products
//! for each block of message and additional data; one block for each block of the message.

use polyclave_api::{Message, Refusal};
use polyclave_cipher::Cipher;
use polyclave_cipher::modes::gcm_siv::{blocks, numbered};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::ghash::hash_once;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::{Element, Elements, ServiceSession};

use super::StepError;
use super::gcm::{BLOCK, padded};
use super::whole::{Whole, malformed};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::Term;
use crate::computation::pieces::run;

/// Bytes of a nonce.
const NONCE: usize = 12;
/// x in GF(2^128), in the order of bits of GHASH.
const X: Element = [0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// One message.
pub(super) struct GcmSiv {
    nonce: Option<[u8; NONCE]>,
    additional: Vec<u8>,
    bytes: usize,
    /// Blocks of which its keys are made.
    of_keys: usize,
    keys: Option<Keys>,
    /// The blocks of the message.
    message: Vec<AnyShared>,
}

/// The keys of one message.
struct Keys {
    /// The key of GHASH.
    hash: Elements,
    /// Round keys.
    message: AnyShared,
}

impl GcmSiv {
    /// For a message that was checked.
    pub(super) fn new(message: &Message, cipher: &Cipher) -> Result<GcmSiv, Refusal> {
        let wrong = |_| malformed("nonces of gcm-siv have 12 bytes");
        let nonce = message.nonce.as_deref().map(<[u8; NONCE]>::try_from).transpose().map_err(wrong)?;
        let (additional, bytes) = (message.additional.concat(), message.bytes as usize);
        let of_keys = blocks(cipher);
        Ok(GcmSiv { nonce, additional, bytes, of_keys, keys: None, message: Vec::new() })
    }

    fn keys(&self) -> Result<&Keys, StepError> {
        self.keys.as_ref().ok_or_else(|| StepError::Refused(malformed("the message has not begun")))
    }

    /// The blocks of the hash that everybody knows, in their order: the additional data in front, the lengths
    /// behind (section 4).
    fn public(&self) -> [Vec<u8>; 2] {
        let lengths = [self.additional.len(), self.bytes].map(|bytes| (8 * bytes as u64).to_le_bytes());
        [padded(&self.additional), lengths.concat()]
    }
}

/// Blocks that everybody knows, their bytes in the opposite order, as shared elements.
fn shared(blocks: &[u8], like: &Elements, at: &mut Computation<'_>) -> Elements {
    let mut reversed: Vec<Element> = blocks.as_chunks::<BLOCK>().0.to_vec();
    reversed.iter_mut().for_each(|block| block.reverse());
    let zero = like.weighted_sums(&[[0; BLOCK]]);
    let zeros = Elements::join(&vec![&zero; reversed.len()]);
    at.protocol.arithmetic().add_public(&zeros, &reversed)
}

/// Shared blocks, their bytes in the opposite order, as elements; none of no blocks. One round.
fn reversed(blocks: &[AnyShared], at: &mut Computation<'_>) -> Result<Option<Elements>, StepError> {
    if blocks.is_empty() {
        return Ok(None);
    }
    let all = at.protocol.join_lanes(&blocks.iter().collect::<Vec<_>>());
    let circuit = at.block_circuit(BlockCircuit::Reversed(false))?;
    let reversed = run(&mut at.protocol, at.net, &circuit, blocks.len(), &[Input::Shared(&all)])?.remove(0);
    Ok(Some(at.protocol.elements(&reversed, at.net)?))
}

impl Whole for GcmSiv {
    fn blocks_at_start(&self) -> u64 {
        self.of_keys as u64 + 1
    }

    /// They are hashed.
    fn blocks_to_push(&self) -> u64 {
        0
    }

    fn begin(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let nonce = self.nonce.unwrap_or_else(|| at.derived("polyclave 2026 gcm-siv nonce"));
        let drawn = if self.nonce.replace(nonce).is_none() { nonce.to_vec() } else { Vec::new() };
        let count = self.of_keys;
        let numbered = at.circuits.blocks(&numbered(&at.circuits.cipher, &nonce))?;
        let encrypt = at.block_circuit(BlockCircuit::Encrypted)?;
        let encrypted = at.one(&encrypt, count, &[Input::Public(&numbered)])?;
        let parts: Vec<AnyShared> = (0..count).map(|i| at.protocol.lanes(&encrypted, i..i + 1)).collect();
        let parts: Vec<Input<'_, AnyShared>> = parts.iter().map(Input::Shared).collect();
        let circuit = at.block_circuit(BlockCircuit::KeysOfGcmSiv)?;
        let mut keys = run(&mut at.protocol, at.net, &circuit, 1, &parts)?;
        let (key, hash) = (keys.remove(1), keys.remove(0));
        let schedule = &at.circuits.of_cipher()?.key_schedule;
        let message = run(&mut at.protocol, at.net, schedule, 1, &[Input::Shared(&key)])?.remove(0);
        let hash = at.protocol.elements(&hash, at.net)?.weighted_sums(&[X]);
        self.keys = Some(Keys { hash, message });
        Ok(drawn)
    }

    fn filled_up(&self, _: usize) -> [u8; BLOCK] {
        [0; BLOCK]
    }

    fn push(&mut self, block: AnyShared, _: &mut Computation<'_>) -> Result<(), StepError> {
        self.message.push(block);
        Ok(())
    }

    fn tag(&mut self, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let (Some(keys), Some(nonce)) = (&self.keys, self.nonce) else {
            return Err(StepError::Refused(malformed("the message has not begun")));
        };
        let [before, behind] = self.public().map(|blocks| shared(&blocks, &keys.hash, at));
        let message = reversed(&self.message, at)?;
        let all: Vec<&Elements> = [&before].into_iter().chain(&message).chain([&behind]).collect();
        let hash = hash_once(&keys.hash, &Elements::join(&all), at.protocol.arithmetic(), at.net)?;
        let circuit = at.block_circuit(BlockCircuit::Reversed(true))?;
        let hash = at.as_blocks(&hash, &circuit.inputs()[0])?;
        let sum = run(&mut at.protocol, at.net, &circuit, 1, &[Input::Shared(&hash)])?.remove(0);
        let mut padded = [0; BLOCK];
        padded[..NONCE].copy_from_slice(&nonce);
        let sum = at.beginning(BLOCK, &sum, Term::Public(padded))?;
        let encrypt = at.block_circuit(BlockCircuit::Encrypted)?;
        Ok(at.one_under(&keys.message, &encrypt, 1, &[Input::Shared(&sum)])?)
    }

    fn counts_from_tag(&self) -> bool {
        true
    }

    fn keystream(
        &self,
        tag: &[u8],
        first: usize,
        count: usize,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        let broken = |_| StepError::Refused(malformed("a tag of gcm-siv has 16 bytes"));
        let mut block: [u8; BLOCK] = tag.try_into().map_err(broken)?;
        block[BLOCK - 1] |= 0x80;
        let (number, rest) = block.split_at(4);
        let number = u32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        let numbers = (first..first + count).map(|i| number.wrapping_add(i as u32).to_le_bytes());
        let counters: Vec<u8> = numbers.flat_map(|number| [&number[..], rest].concat()).collect();
        let counters = at.circuits.blocks(&counters)?;
        let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
        Ok(at.one_under(&self.keys()?.message, &circuit, count, &[Input::Public(&counters)])?)
    }
}
