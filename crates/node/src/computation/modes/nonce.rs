//! The counter blocks of a message of GCM (SP 800-38D, sections 6.2, 6.5 and 7.1).
//!
//! A nonce of 12 bytes is the first counter block J0, with the number 1 behind it. Of any other nonce J0 is
//! the hash under H. If the nodes opened J0, or any bits of the blocks after it, each nonce would give an
//! equation for H, and with H tags are forged. So J0 and all counter blocks stay shared, and the nodes add on
//! shares.
//!
//! # Adding on shares
//!
//! The block of number i is J0 with i added to its last 32 bits, modulo 2^32. Numbers are small: i < 2^w.
//! With b_t for bit t of J0, from the last, and c_t(i) for the carry into bit t, the sum is J0 + i + sum of
//! c_t(i) x_t, where + is XOR and x_t is the block with only bit t.
//!
//! * c_0 = 0 and c_(t+1)(i) = b_t c_t(i) if bit t of i is 0, else b_t + c_t(i) + b_t c_t(i). For t < w it
//!   depends on the last t bits of i only. So 2^t products give all of level t, and 2^w all.
//! * Above bit w the carry runs on through ones: c_t(i) = c_w(i) p_t, where p_t is the product of b_w ..
//!   b_(t-1). So these bits of the sum change by c_w(i) times the sum of p_t x_t, one element: one product
//!   for each i.
//!
//! All of this is arithmetic on elements of GF(2^128) that are 0 or 1, under the protocol's own
//! multiplication. The sums become shares of bytes as in [`as_blocks`](Computation::as_blocks), where all
//! that is opened is uniform.
//!
//! Cost: w + 6 rounds and 2^w + the number of blocks + 65 products, and a mask of 16 bytes a block.

use polyclave_api::{self as api, CHAINED, Reason, Refusal, XAES_NONCE};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::{Element, Elements, ServiceSession};

use super::StepError;
use super::gcm::{BLOCK, counters, hash_key, hashed, lengths, padded};
use super::xaes::MessageKey;
use crate::computation::Computation;
use crate::computation::block_circuits::COUNTER_BITS;

/// Bytes of a nonce that needs no hash.
pub(super) const PLAIN: usize = 12;

/// Blocks that become bytes at once: a stock need not have more than masks for a step of a client's input.
const AT_ONCE: usize = CHAINED / BLOCK;

/// A nonce as the nodes use it.
pub(super) enum Nonce {
    Plain([u8; PLAIN]),
    /// Until its hash was computed.
    Other(Vec<u8>),
    Hashed(Hashed),
    /// One that chooses a key, until that was derived.
    Extended([u8; XAES_NONCE]),
    Chosen(Box<MessageKey>),
}

/// The hash of a nonce: J0.
pub(super) struct Hashed {
    j0: Elements,
    /// Its last bits, from the last, each as 0 or 1.
    bits: Elements,
}

impl Nonce {
    pub(super) fn new(bytes: &[u8]) -> Result<Nonce, Refusal> {
        let wrong = |message| Refusal::new(Reason::Malformed, message);
        api::Mode::Gcm.check_nonce(bytes.len()).map_err(wrong)?;
        Ok(<[u8; PLAIN]>::try_from(bytes).map_or_else(|_| Nonce::Other(bytes.to_vec()), Nonce::Plain))
    }

    /// Whether its counter blocks stay shared.
    pub(super) fn hides_counters(&self) -> bool {
        matches!(self, Nonce::Other(_) | Nonce::Hashed(_))
    }

    /// The encryption of the first counter blocks, from J0 on.
    pub(super) fn first(&mut self, count: u64, at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        match self {
            Nonce::Other(bytes) => {
                let blocks = [padded(bytes), lengths(0, bytes.len() as u64).to_vec()].concat();
                let j0 = hashed(hash_key(at)?, None, &blocks, at)?;
                let bits = at.counter_bits(&j0)?;
                *self = Nonce::Hashed(Hashed { j0, bits });
            }
            Nonce::Extended(nonce) => {
                let (key, blocks) = MessageKey::derive(nonce, count, at)?;
                *self = Nonce::Chosen(Box::new(key));
                return Ok(blocks);
            }
            Nonce::Plain(_) | Nonce::Hashed(_) | Nonce::Chosen(_) => {}
        }
        self.encrypted(0, count, at)
    }

    /// The encryption of counter blocks, of which J0 is number 0. Those of a message that has begun.
    pub(super) fn encrypted(
        &self,
        first: u64,
        count: u64,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        match self {
            Nonce::Plain(nonce) => Ok(at.encrypt(&counters(nonce, 1 + first, count), &[])?),
            Nonce::Hashed(hashed) => {
                let sums = hashed.plus(first, count, at)?;
                let circuit = &at.circuits.of_cipher()?.encrypt;
                let mut parts = Vec::new();
                for from in (0..sums.count()).step_by(AT_ONCE) {
                    let part = sums.part(from..sums.count().min(from + AT_ONCE));
                    let blocks = at.as_blocks(&part, &circuit.inputs()[0])?;
                    parts.push(at.one(circuit, part.count(), &[Input::Shared(&blocks)])?);
                }
                Ok(at.protocol.join_lanes(&parts.iter().collect::<Vec<_>>()))
            }
            Nonce::Chosen(key) => key.encrypted(first, count, at),
            Nonce::Other(_) | Nonce::Extended(_) => {
                let message = "the message has not begun";
                Err(StepError::Refused(Refusal::new(Reason::Malformed, message)))
            }
        }
    }
}

/// The block with only this bit, counted from the last.
fn bit(t: usize) -> Element {
    (1u128 << t).to_be_bytes()
}

/// As many copies of one element.
fn copies(element: &Elements, count: usize) -> Elements {
    Elements::join(&vec![element; count])
}

impl Hashed {
    fn bit(&self, t: usize) -> Elements {
        self.bits.part(t..t + 1)
    }

    /// J0 plus each of some numbers.
    fn plus(&self, first: u64, count: u64, at: &mut Computation<'_>) -> Result<Elements, StepError> {
        let numbers: Vec<u64> = (first..first + count).collect();
        let width = (u64::BITS - (first + count - 1).leading_zeros()) as usize;
        let public: Vec<Element> = numbers.iter().map(|i| u128::from(*i).to_be_bytes()).collect();
        let mut sums = at.protocol.arithmetic().add_public(&copies(&self.j0, numbers.len()), &public);
        if width == 0 {
            return Ok(sums);
        }
        // Carries into bit t for all t last bits of a number; of no bits there is none.
        let mut carries = self.bit(0).weighted_sums(&[[0; BLOCK]]);
        for t in 0..width {
            if t > 0 {
                let of_each: Vec<Elements> = numbers
                    .iter()
                    .map(|i| {
                        let last = (i & ((1 << t) - 1)) as usize;
                        carries.part(last..last + 1).weighted_sums(&[bit(t)])
                    })
                    .collect();
                sums = sums.add(&Elements::join(&of_each.iter().collect::<Vec<_>>()));
            }
            let b = copies(&self.bit(t), carries.count());
            let both = at.protocol.arithmetic().multiply_elements(&b, &carries, at.net)?;
            let either = both.add(&b).add(&carries);
            carries = Elements::join(&[&both, &either]);
        }
        let of_each: Vec<Elements> =
            numbers.iter().map(|i| carries.part(*i as usize..*i as usize + 1)).collect();
        let carried = Elements::join(&of_each.iter().collect::<Vec<_>>());
        let above = copies(&self.incremented(width, at)?, numbers.len());
        Ok(sums.add(&at.protocol.arithmetic().multiply_elements(&carried, &above, at.net)?))
    }

    /// What adding 2^width changes: the sum of p_t x_t for t from `width` on. The products p_t in a
    /// logarithmic number of rounds.
    fn incremented(&self, width: usize, at: &mut Computation<'_>) -> Result<Elements, StepError> {
        let mut changed =
            at.protocol.arithmetic().add_public(&self.bit(0).weighted_sums(&[[0; BLOCK]]), &[bit(width)]);
        let mut runs = self.bits.part(width..COUNTER_BITS - 1);
        let mut reach = 1;
        while reach < runs.count() {
            let (kept, late) = (runs.part(0..reach), runs.part(reach..runs.count()));
            let early = runs.part(0..runs.count() - reach);
            let longer = at.protocol.arithmetic().multiply_elements(&late, &early, at.net)?;
            runs = Elements::join(&[&kept, &longer]);
            reach *= 2;
        }
        if runs.count() > 0 {
            let weights: Vec<Element> = (width + 1..COUNTER_BITS).map(bit).collect();
            changed = changed.add(&runs.weighted_sums(&weights));
        }
        Ok(changed)
    }
}
