//! GCM (SP 800-38D) with the hash key shared, one message at a time, in pieces.
//!
//! The ciphertext is public among the nodes. So its hash is a linear map of the shared powers of H, and the
//! tag is the hash plus E(J0), shared too. On encryption keystream and tag are revealed to the client; of a
//! message that is short, and comes under a mask that its client deals, the nodes open the ciphertext among
//! themselves. On decryption the nodes open a random multiple of the difference of the tags. The client gets
//! keystream only if it was zero, and only for what was authenticated. (The client keeps or re-reads the
//! ciphertext in between, so nodes hold nothing of its size.)
//!
//! # Rounds
//!
//! E(J0) and the first keystream are blocks of one evaluation. Where blocks go through circuits, the
//! ciphertext comes out of them, too, so opening it takes no message of its own. On decryption of a short
//! message all keystream is, and stays shared until the tag has fitted. Blocks are hashed when there are more
//! than the hash takes without a product, or at the end: so the hash of a short message takes no round.
//!
//! On encryption the nodes derive the nonce from the session id, unless the key was made for nonces of its
//! clients. Nonces of another length than 12 bytes cost more: [`nonce`](super::nonce). Messages with a key of
//! their own are the same, but for where key and powers come from: [`xaes`](super::xaes).
//!
//! # Short tags
//!
//! A client may cut tags to 12 bytes and more. Then the nodes compare only the bytes that are there, and must
//! not open the others: the difference of a message's tag and the right one is linear in powers of H, and
//! whoever learns its last bytes for chosen messages learns H. A random multiple of the whole difference
//! would say "wrong" of a tag whose first bytes are right. And cutting an element is not linear over
//! GF(2^128). So the nodes turn the tag into shares of bytes ([`as_blocks`](Computation::as_blocks): all that
//! is opened is uniform), set the bytes that are not compared to zero on shares, and open a random multiple
//! of what is left.

use polyclave_api::{self as api, MAX_CHAINED, MESSAGE, OPENED, Reason, Refusal, Step, XAES_NONCE};
use polyclave_cipher::Cipher;
use polyclave_protocol::any::{AnyMask, AnyShared};
use polyclave_protocol::ghash::{Ghash, GhashKey};
use polyclave_protocol::service::{Element, Elements, ServiceSession};

use super::nonce::{Nonce, PLAIN};
use super::{Answer, Mode, StepError, misplaced, piece, refuse_long_additional, unauthentic, xaes};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
pub(super) use crate::computation::blocks::BLOCK;

/// The most blocks of a message: the counter has 32 bits and starts at 2 (section 5.2.1.1).
const MAX_BLOCKS: u64 = (1 << 32) - 2;
/// Blocks that the hash takes in one call.
const HASHED_AT_ONCE: usize = 16384;
/// Bytes that are hashed without a product, if they are all of a message.
pub(super) const HASHED_FREELY: usize = 128 * BLOCK;
/// The most blocks of a message whose keystream is computed, on decryption, before its tag has fitted.
const SHORT: u64 = (OPENED / BLOCK) as u64;

/// Counter blocks of a message, from number `first`. The first counter block J0 has number 1.
pub(super) fn counters(nonce: &[u8; 12], first: u64, count: u64) -> Vec<u8> {
    let mut blocks = Vec::with_capacity(count as usize * BLOCK);
    for number in first..first + count {
        blocks.extend_from_slice(nonce);
        blocks.extend_from_slice(&(number as u32).to_be_bytes());
    }
    blocks
}

/// E(J0), shared, and the ciphertext of a message that is under a mask that its client deals. The nodes open
/// it, all the same. The rest of its last block stays under the mask.
pub(super) fn encrypted(
    nonce: &[u8; PLAIN],
    masked: &[u8],
    at: &mut Computation<'_>,
) -> Result<(Elements, Vec<u8>), StepError> {
    let (mask, text) = under_dealt_mask(masked, at)?;
    let counters = counters(nonce, 1, 1 + (text.len() / BLOCK) as u64);
    let (first, mut ciphertext) = at.encrypt_and_open_sum(&counters, (&mask, &text))?;
    ciphertext.truncate(masked.len());
    Ok((tag_mask(&first, at)?, ciphertext))
}

/// The mask that a client has dealt for a message, and the masked message in whole blocks.
fn under_dealt_mask(masked: &[u8], at: &mut Computation<'_>) -> Result<(AnyMask, Vec<u8>), StepError> {
    let undealt = || Refusal::new(Reason::Malformed, "a message under a mask that nobody has dealt");
    let seeds = at.dealt.take().ok_or_else(|| StepError::Refused(undealt()))?;
    let text = padded(masked);
    Ok((at.protocol.dealt_mask(&seeds, text.len())?, text))
}

/// Checks the length of a message that goes in one step.
pub(super) fn admit_message(bytes: usize, most: usize) -> Result<(), Refusal> {
    if bytes == 0 || bytes > most {
        let message = format!("a message of {bytes} bytes in one step; 1 to {most} are allowed");
        return Err(Refusal::new(Reason::Malformed, message));
    }
    Ok(())
}

/// E(J0), shared. It masks the tag.
pub(super) fn tag_mask(first: &AnyShared, at: &mut Computation<'_>) -> Result<Elements, StepError> {
    let j0 = at.protocol.lanes(first, 0..1);
    Ok(at.protocol.elements(&j0, at.net)?)
}

/// The hash of further blocks. They are taken in pieces of which the first is short.
pub(super) fn hashed(
    key: &GhashKey,
    so_far: Option<Elements>,
    blocks: &[u8],
    at: &mut Computation<'_>,
) -> Result<Elements, StepError> {
    let mut hash = Ghash::resume(key, so_far);
    let most = HASHED_AT_ONCE * BLOCK;
    let (first, rest) = blocks.split_at(blocks.len() % most);
    for part in [first].into_iter().chain(rest.chunks(most)).filter(|part| !part.is_empty()) {
        hash.update(at.protocol.arithmetic(), part, at.net)?;
    }
    Ok(hash.finish())
}

/// A copy filled with zeros to whole blocks.
pub(super) fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(BLOCK), 0);
    padded
}

/// The last block of the hash: both lengths in bits.
pub(super) fn lengths(additional: u64, ciphertext: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(&(8 * additional).to_be_bytes());
    block[8..].copy_from_slice(&(8 * ciphertext).to_be_bytes());
    block
}

/// Whether a tag equals the sum of a hash and its cover. Nothing else about them is revealed.
pub(super) fn fits(
    hash: &Elements,
    tag_mask: &Elements,
    tag: &Element,
    at: &mut Computation<'_>,
) -> Result<bool, StepError> {
    let arithmetic = at.protocol.arithmetic();
    let difference = arithmetic.add_public(&hash.add(tag_mask), &[*tag]);
    Ok(arithmetic.is_zero(&difference, at.net)?)
}

/// The same for the first bytes of a tag.
pub(super) fn begins_so(
    hash: &Elements,
    tag_mask: &Elements,
    tag: &[u8],
    at: &mut Computation<'_>,
) -> Result<bool, StepError> {
    if let Ok(whole) = Element::try_from(tag) {
        return fits(hash, tag_mask, &whole, at);
    }
    let circuit = at.block_circuit(BlockCircuit::Beginning(tag.len()))?;
    let block = at.as_blocks(&hash.add(tag_mask), &circuit.inputs()[0])?;
    Ok(at.begins_with(&block, tag)?)
}

fn only_for_aes(what: &str) -> Refusal {
    Refusal::new(Reason::Malformed, format!("{what} are for keys of AES"))
}

/// One message: its nonce, its hash so far, and the keystream that was given out.
struct Message {
    mode: api::Mode,
    additional: u64,
    nonce: Nonce,
    /// Whether the nodes have the circuits of single blocks.
    is_aes: bool,
    /// Whole blocks that are not hashed yet.
    pending: Vec<u8>,
    hash: Option<Elements>,
    /// E(J0), from the first evaluation until it is used.
    tag_mask: Option<Elements>,
    has_begun: bool,
    /// Bytes of ciphertext.
    absorbed: u64,
    /// Bytes of keystream that were given out.
    given: u64,
}

impl Message {
    fn new(nonce: &[u8], additional: &[u8], cipher: &Cipher) -> Result<Self, Refusal> {
        let nonce = Nonce::new(nonce)?;
        let is_aes = cipher.name.starts_with("aes-");
        if nonce.hides_counters() && !is_aes {
            return Err(only_for_aes("nonces of another length than 12 bytes"));
        }
        Message::with(api::Mode::Gcm, nonce, additional, is_aes)
    }

    /// With a key of its own, which is one of AES.
    fn with_own_key(nonce: [u8; XAES_NONCE], additional: &[u8]) -> Result<Self, Refusal> {
        Message::with(api::Mode::Xaes, Nonce::Extended(nonce), additional, true)
    }

    fn with(mode: api::Mode, nonce: Nonce, additional: &[u8], is_aes: bool) -> Result<Self, Refusal> {
        refuse_long_additional(additional.len())?;
        Ok(Message {
            mode,
            additional: additional.len() as u64,
            nonce,
            is_aes,
            pending: padded(additional),
            hash: None,
            tag_mask: None,
            has_begun: false,
            absorbed: 0,
            given: 0,
        })
    }

    /// Blocks that are computed in any case.
    fn blocks_at_start(&self) -> u64 {
        let with_own_key = matches!(self.nonce, Nonce::Extended(_));
        1 + if with_own_key { xaes::OF_KEY + 1 } else { 0 }
    }

    /// The first evaluation: E(J0), and keystream for so many blocks, if there are any.
    fn begin(&mut self, count: u64, at: &mut Computation<'_>) -> Result<Option<AnyShared>, StepError> {
        if self.has_begun {
            return (count > 0).then(|| self.nonce.encrypted(1, count, at)).transpose();
        }
        self.has_begun = true;
        let blocks = self.nonce.first(1 + count, at)?;
        self.tag_mask = Some(tag_mask(&blocks, at)?);
        let count = count as usize;
        Ok((count > 0).then(|| at.protocol.lanes(&blocks, 1..1 + count)))
    }

    /// The first evaluation, and the ciphertext of the whole message, which is under a mask that its client
    /// deals. The nodes open it.
    fn encrypted(&mut self, masked: &[u8], at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        if let Nonce::Plain(nonce) = &self.nonce {
            let (tag_mask, ciphertext) = encrypted(nonce, masked, at)?;
            (self.has_begun, self.tag_mask) = (true, Some(tag_mask));
            return Ok(ciphertext);
        }
        let (mask, text) = under_dealt_mask(masked, at)?;
        let keystream = self.begin((text.len() / BLOCK) as u64, at)?;
        let keystream = keystream.ok_or_else(|| StepError::Refused(no_keystream()))?;
        let mut ciphertext = at.protocol.open_sum(&keystream, (&mask, &text), at.net)?;
        ciphertext.truncate(masked.len());
        Ok(ciphertext)
    }

    /// Takes in the next blocks of the hash.
    fn hash(&mut self, blocks: &[u8], at: &mut Computation<'_>) -> Result<(), StepError> {
        self.pending.extend_from_slice(blocks);
        if self.pending.len() > HASHED_FREELY { self.hash_pending(false, at) } else { Ok(()) }
    }

    fn hash_pending(&mut self, is_last: bool, at: &mut Computation<'_>) -> Result<(), StepError> {
        if matches!(self.nonce, Nonce::Extended(_)) {
            self.begin(0, at)?;
        }
        let (blocks, so_far) = (std::mem::take(&mut self.pending), self.hash.take());
        self.hash = Some(match &mut self.nonce {
            Nonce::Chosen(key) => key.hashed(so_far, &blocks, is_last, at)?,
            _ => hashed(hash_key(at)?, so_far, &blocks, at)?,
        });
        Ok(())
    }

    fn admit_absorb(&mut self, len: usize) -> Result<u64, Refusal> {
        piece(len)?;
        if !self.absorbed.is_multiple_of(BLOCK as u64) {
            return Err(Refusal::new(Reason::Malformed, "the message ended with a part of a block"));
        }
        self.absorbed += len as u64;
        self.refuse_long(self.absorbed)?;
        Ok(0)
    }

    /// Refuses a message that is longer than the counters allow.
    fn refuse_long(&self, bytes: u64) -> Result<(), Refusal> {
        if self.nonce.hides_counters() && bytes > MAX_CHAINED as u64 {
            let message = format!(
                "a message with a nonce of another length than 12 bytes has at most {MAX_CHAINED} bytes, because its counters are secret"
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        if bytes.div_ceil(BLOCK as u64) > MAX_BLOCKS {
            return Err(Refusal::new(Reason::Malformed, "the message is longer than gcm allows"));
        }
        Ok(())
    }

    /// Admits a whole message of so many bytes at most. Returns how many blocks of keystream it takes.
    fn admit_whole(&mut self, bytes: usize, most: usize) -> Result<u64, Refusal> {
        admit_message(bytes, most)?;
        self.admit_absorb(bytes)?;
        self.admit_keystream(bytes as u32, bytes as u64)
    }

    fn admit_keystream(&mut self, bytes: u32, most: u64) -> Result<u64, Refusal> {
        piece(bytes as usize)?;
        if !self.given.is_multiple_of(BLOCK as u64) {
            return Err(Refusal::new(Reason::Malformed, "the keystream ended with a part of a block"));
        }
        let after = self.given + u64::from(bytes);
        if after > most {
            return Err(Refusal::new(
                Reason::Malformed,
                format!("keystream of {after} bytes where {most} are allowed"),
            ));
        }
        self.refuse_long(after)?;
        self.given = after;
        Ok(u64::from(bytes).div_ceil(BLOCK as u64))
    }

    /// The keystream of the step that was admitted last.
    fn keystream(&mut self, bytes: u32, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let (first, count) = self.blocks_of(bytes);
        let keystream = match self.has_begun {
            true => self.nonce.encrypted(1 + first, count, at)?,
            false => self.begin(count, at)?.ok_or_else(|| StepError::Refused(no_keystream()))?,
        };
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes as usize, at.net)?))
    }

    /// Of the keystream that was admitted last: its first block of the message, and how many they are.
    fn blocks_of(&self, bytes: u32) -> (u64, u64) {
        ((self.given - u64::from(bytes)) / BLOCK as u64, u64::from(bytes).div_ceil(BLOCK as u64))
    }

    /// Takes out the complete hash and the cover, for their only use.
    fn close(&mut self, at: &mut Computation<'_>) -> Result<(Elements, Elements), StepError> {
        if !self.has_begun {
            self.begin(0, at)?;
        }
        self.pending.extend(lengths(self.additional, self.absorbed));
        self.hash_pending(true, at)?;
        let ended = || StepError::Refused(Refusal::new(Reason::Malformed, "the message has ended"));
        Ok((self.hash.take().ok_or_else(ended)?, self.tag_mask.take().ok_or_else(ended)?))
    }
}

fn no_keystream() -> Refusal {
    Refusal::new(Reason::Malformed, "keystream of no bytes")
}

/// The powers of the hash key. They exist: a key without them was not made for GCM, which was checked before.
pub(super) fn hash_key<'k>(at: &Computation<'k>) -> Result<&'k GhashKey, StepError> {
    let missing = || StepError::Refused(Refusal::new(Reason::NotForThis, "the key was not made for gcm"));
    at.key.hash_key.as_ref().ok_or_else(missing)
}

/// Encrypts one message.
pub(crate) struct Encrypt {
    message: Message,
    /// Whether the client gave the nonce.
    has_nonce: bool,
    closed: bool,
}

impl Encrypt {
    /// With the nonce of a client whose key takes one, or with one of the nodes.
    pub(crate) fn new(nonce: Option<&[u8]>, additional: &[u8], cipher: &Cipher) -> Result<Self, Refusal> {
        let nonce_of_nodes = [0; PLAIN];
        let message = Message::new(nonce.unwrap_or(&nonce_of_nodes), additional, cipher)?;
        Ok(Encrypt { message, has_nonce: nonce.is_some(), closed: false })
    }

    /// A message with a key of its own.
    pub(crate) fn with_own_key(nonce: Option<[u8; XAES_NONCE]>, additional: &[u8]) -> Result<Self, Refusal> {
        let message = Message::with_own_key(nonce.unwrap_or([0; XAES_NONCE]), additional)?;
        Ok(Encrypt { message, has_nonce: nonce.is_some(), closed: false })
    }

    /// A nonce of the nodes.
    fn drawn(&self, at: &Computation<'_>) -> (Nonce, Vec<u8>) {
        if let Nonce::Extended(_) = self.message.nonce {
            let nonce: [u8; XAES_NONCE] = at.derived("polyclave 2026 xaes nonce");
            return (Nonce::Extended(nonce), nonce.to_vec());
        }
        let nonce: [u8; PLAIN] = at.derived("polyclave 2026 gcm nonce");
        (Nonce::Plain(nonce), nonce.to_vec())
    }
}

impl Mode for Encrypt {
    fn blocks_at_start(&self) -> u64 {
        self.message.blocks_at_start()
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let mut of_nodes = Vec::new();
        if !self.has_nonce {
            (self.message.nonce, of_nodes) = self.drawn(at);
        }
        Ok((of_nodes, Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let message = &mut self.message;
        match step {
            _ if self.closed => Err(misplaced(step)),
            Step::Keystream { bytes } => message.admit_keystream(*bytes, MAX_BLOCKS * BLOCK as u64),
            // The tag covers only what was encrypted here.
            Step::Absorb { ciphertext } if message.absorbed + ciphertext.len() as u64 <= message.given => {
                message.admit_absorb(ciphertext.len())
            }
            Step::Seal { ciphertext, last: true }
                if message.absorbed + ciphertext.len() as u64 == message.given =>
            {
                self.closed = true;
                message.admit_absorb(ciphertext.len())
            }
            Step::Tag if message.absorbed == message.given => {
                self.closed = true;
                Ok(0)
            }
            Step::Message { masked } if message.given == 0 => {
                self.closed = true;
                message.admit_whole(masked.len(), MESSAGE)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match step {
            Step::Keystream { bytes } => self.message.keystream(bytes, at),
            Step::Absorb { ciphertext } => {
                self.message.hash(&padded(&ciphertext), at)?;
                Ok(Answer::data(Vec::new()))
            }
            Step::Seal { ciphertext, .. } => {
                self.message.hash(&padded(&ciphertext), at)?;
                self.tag(at)
            }
            Step::Tag => self.tag(at),
            Step::Message { masked } => {
                let ciphertext = self.message.encrypted(&masked, at)?;
                self.message.hash(&padded(&ciphertext), at)?;
                Ok(Answer { opened: ciphertext, ..self.tag(at)? })
            }
            other => Err(StepError::Refused(misplaced(&other))),
        }
    }
}

impl Encrypt {
    fn tag(&mut self, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let (hash, tag_mask) = self.message.close(at)?;
        let tag = hash.add(&tag_mask);
        Ok(Answer::data(at.protocol.reveal_elements(&tag, at.net)?))
    }
}

/// Decrypts one message.
pub(crate) struct Decrypt {
    message: Message,
    /// Whether the tag was compared. If it does not match, the conversation is over.
    checked: bool,
    /// The keystream of a short message, which stays shared until the tag has fitted.
    withheld: Option<AnyShared>,
}

impl Decrypt {
    pub(crate) fn new(nonce: &[u8], additional: &[u8], cipher: &Cipher) -> Result<Decrypt, Refusal> {
        Ok(Decrypt { message: Message::new(nonce, additional, cipher)?, checked: false, withheld: None })
    }

    /// A message with a key of its own.
    pub(crate) fn with_own_key(nonce: [u8; XAES_NONCE], additional: &[u8]) -> Result<Decrypt, Refusal> {
        let message = Message::with_own_key(nonce, additional)?;
        Ok(Decrypt { message, checked: false, withheld: None })
    }

    /// The blocks of keystream that are computed with E(J0), when the whole ciphertext is there: all or none.
    fn withheld_blocks(&self) -> u64 {
        let blocks = self.message.absorbed.div_ceil(BLOCK as u64);
        if blocks <= SHORT { blocks } else { 0 }
    }
}

impl Mode for Decrypt {
    fn blocks_at_start(&self) -> u64 {
        self.message.blocks_at_start()
    }

    fn start(&mut self, _: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let computed = self.withheld_blocks();
        let message = &mut self.message;
        match step {
            Step::Absorb { ciphertext } if !self.checked => message.admit_absorb(ciphertext.len()),
            Step::Check { tag } if !self.checked => {
                let wrong = |message| Refusal::new(Reason::Malformed, message);
                message.mode.check_tag(tag.len()).map_err(wrong)?;
                if tag.len() < BLOCK && !message.is_aes {
                    return Err(only_for_aes("short tags"));
                }
                self.checked = true;
                Ok(computed)
            }
            Step::Open { ciphertext, last: true, .. } if !self.checked && message.absorbed == 0 => {
                self.checked = true;
                message.admit_whole(ciphertext.len(), OPENED)
            }
            Step::Keystream { bytes } if self.checked => {
                let blocks = message.admit_keystream(*bytes, message.absorbed)?;
                Ok(if computed > 0 { 0 } else { blocks })
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match step {
            Step::Absorb { ciphertext } => {
                self.message.hash(&padded(&ciphertext), at)?;
                Ok(Answer::data(Vec::new()))
            }
            Step::Check { tag } => self.check(&tag, at).map(|()| Answer::data(Vec::new())),
            Step::Open { ciphertext, tag, .. } => {
                self.message.hash(&padded(&ciphertext), at)?;
                self.check(&tag, at)?;
                self.keystream(ciphertext.len() as u32, at)
            }
            Step::Keystream { bytes } => self.keystream(bytes, at),
            other => Err(StepError::Refused(misplaced(&other))),
        }
    }
}

impl Decrypt {
    /// Compares the tag with that of all that was hashed.
    fn check(&mut self, tag: &[u8], at: &mut Computation<'_>) -> Result<(), StepError> {
        let keystream = self.message.begin(self.withheld_blocks(), at)?;
        let (hash, tag_mask) = self.message.close(at)?;
        match begins_so(&hash, &tag_mask, tag, at)? {
            true => {
                self.withheld = keystream;
                Ok(())
            }
            false => Err(StepError::Refused(unauthentic())),
        }
    }

    /// The keystream that was admitted last, after the tag has fitted.
    fn keystream(&mut self, bytes: u32, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let Some(keystream) = &self.withheld else { return self.message.keystream(bytes, at) };
        let (first, count) = self.message.blocks_of(bytes);
        let keystream = at.protocol.lanes(keystream, first as usize..(first + count) as usize);
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes as usize, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::catalog;

    use super::*;

    fn aes() -> Cipher {
        catalog::find("aes-128").expect("the catalog has it")
    }

    fn bytes(count: usize) -> Vec<u8> {
        vec![1; count]
    }

    #[test]
    fn blocks_are_charged_as_they_are_computed() {
        for (len, at_check, after) in [(33, 3, 0), (112, 7, 0), (113, 0, 8)] {
            let mut message = Decrypt::new(&[1; PLAIN], &[], &aes()).expect("it fits");
            assert_eq!(message.blocks_at_start(), 1, "E(J0)");
            assert_eq!(message.admit(&Step::Absorb { ciphertext: bytes(len) }), Ok(0));
            assert_eq!(message.admit(&Step::Check { tag: bytes(BLOCK) }), Ok(at_check), "{len}");
            assert_eq!(message.admit(&Step::Keystream { bytes: len as u32 }), Ok(after), "{len}");
        }
    }

    #[test]
    fn the_key_of_a_message_is_charged_with_it() {
        let mut message = Decrypt::with_own_key([1; XAES_NONCE], &[]).expect("it fits");
        assert_eq!(message.blocks_at_start(), 4, "its key, E(0) and E(J0)");
        assert_eq!(message.admit(&Step::Open { ciphertext: bytes(33), tag: [0; BLOCK], last: true }), Ok(3));
        let message = Encrypt::with_own_key(None, &[]).expect("it fits");
        assert_eq!(message.blocks_at_start(), 4);
        for len in [12, 15] {
            let mut message = Decrypt::with_own_key([1; XAES_NONCE], &[]).expect("it fits");
            let refusal = message.admit(&Step::Check { tag: bytes(len) }).expect_err("refused");
            assert!(refusal.message.contains("xaes has tags of 16 bytes"), "{refusal:?}");
        }
    }

    #[test]
    fn what_is_opened_in_one_step_is_short_and_charged_with_its_tag() {
        let open = |len: usize| {
            let mut message = Decrypt::new(&[1; PLAIN], &[], &aes()).expect("it fits");
            message.admit(&Step::Open { ciphertext: bytes(len), tag: [0; BLOCK], last: true })
        };
        assert_eq!([1, 16, 33, OPENED].map(open), [Ok(1), Ok(1), Ok(3), Ok(SHORT)]);
        assert!(open(0).is_err() && open(OPENED + 1).is_err());
        let mut message = Decrypt::new(&[1; PLAIN], &[], &aes()).expect("it fits");
        assert_eq!(message.admit(&Step::Open { ciphertext: bytes(20), tag: [0; BLOCK], last: true }), Ok(2));
        assert!(message.admit(&Step::Keystream { bytes: 4 }).is_err(), "all of it was given");
    }

    /// A message of 33 bytes whose keystream was given.
    fn given() -> Encrypt {
        let mut message = Encrypt::new(None, &[], &aes()).expect("it fits");
        assert_eq!(message.admit(&Step::Keystream { bytes: 33 }), Ok(3));
        message
    }

    #[test]
    fn the_rest_of_the_ciphertext_comes_with_the_request_for_the_tag_once() {
        let seal = |count, last| Step::Seal { ciphertext: bytes(count), last };
        let mut message = given();
        for other in [seal(32, true), seal(34, true), seal(33, false)] {
            assert!(message.admit(&other).is_err(), "{other:?}");
        }
        assert_eq!(message.admit(&seal(33, true)), Ok(0));
        for late in [seal(0, true), Step::Tag, Step::Keystream { bytes: 1 }] {
            assert!(message.admit(&late).is_err(), "{late:?}");
        }
        let mut message = given();
        assert_eq!(message.admit(&Step::Absorb { ciphertext: bytes(32) }), Ok(0));
        assert_eq!(message.admit(&seal(1, true)), Ok(0));
    }
}
