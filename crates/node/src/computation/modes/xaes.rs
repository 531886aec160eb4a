//! XAES-256-GCM (C2SP): each message has a key of its own, which the first half of a nonce of 24 bytes
//! chooses. Under this key, and with the other half as its nonce, the message is one of [`gcm`](super::gcm).
//!
//! The message's key is K_x of the specification: two codes of CMAC under the key in use, of a counter, the
//! letter X and the first half of the nonce. This is SP 800-108 in counter mode, so the nodes derive it on
//! shares as they [derive keys](crate::computation::derive), expand it, and open nothing of it.
//!
//! Nonces are random over all of their 24 bytes. So 2^80 messages of nodes meet a nonce twice with
//! probability 2^-32, where GCM allows 2^32 messages. The key in use encrypts nothing but counter and nonces,
//! two blocks a message. A key for it is for nothing else, because any other use could give codes away
//! (`api/src/modes/facts.rs`).
//!
//! A client that chooses nonces can have the keystream of an old message, as with GCM.
//!
//! Cost: for each message 2 blocks, a key schedule and E(0), beside what GCM takes. For m blocks of message,
//! additional data and lengths m - 1 products in a logarithmic number of rounds, if m is at most 129, and
//! else the powers of a key of GCM.

use polyclave_api::{Derivation, XAES_NONCE};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::ghash::{GhashKey, hash_public_once};
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::{Elements, ServiceSession};

use super::StepError;
use super::gcm::{BLOCK, HASHED_FREELY, counters, hashed};
use super::nonce::PLAIN;
use crate::computation::Computation;
use crate::computation::derive::derive;
use crate::computation::pieces::run;

/// Blocks that are encrypted for the key of a message.
pub(super) const OF_KEY: u64 = 2;

/// What is in front of the first half of the nonce, behind the counter: X and a zero.
const LABEL: [u8; 2] = *b"X\0";

/// The key of one message, and the rest of its nonce.
pub(super) struct MessageKey {
    nonce: [u8; PLAIN],
    round_keys: AnyShared,
    /// H: the encryption of zeros.
    hash: Elements,
    /// The powers of H, from the first time that they are needed.
    powers: Option<GhashKey>,
}

impl MessageKey {
    /// Derives the key. Returns with it the encryption of `count` counter blocks, from J0 on.
    pub(super) fn derive(
        nonce: &[u8; XAES_NONCE],
        count: u64,
        at: &mut Computation<'_>,
    ) -> Result<(MessageKey, AnyShared), StepError> {
        let (chooses, rest) = nonce.split_at(XAES_NONCE - PLAIN);
        let after = [&LABEL[..], chooses].concat();
        let how = Derivation::Counter { before: Vec::new(), counter_bits: 16, after };
        let key = derive(&how, at.key, (at.circuits, at.circuits), &mut at.protocol, at.net)?;
        let schedule = &at.circuits.of_cipher()?.key_schedule;
        let round_keys = run(&mut at.protocol, at.net, schedule, 1, &[Input::Shared(&key)])?.remove(0);
        let mut nonce = [0; PLAIN];
        nonce.copy_from_slice(rest);
        let blocks = [vec![0; BLOCK], counters(&nonce, 1, count)].concat();
        let encrypted = under(&round_keys, &blocks, at)?;
        let zeros = at.protocol.lanes(&encrypted, 0..1);
        let hash = at.protocol.elements(&zeros, at.net)?;
        let of_counters = at.protocol.lanes(&encrypted, 1..1 + count as usize);
        Ok((MessageKey { nonce, round_keys, hash, powers: None }, of_counters))
    }

    /// The encryption of counter blocks, of which J0 is number 0.
    pub(super) fn encrypted(
        &self,
        first: u64,
        count: u64,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        under(&self.round_keys, &counters(&self.nonce, 1 + first, count), at)
    }

    /// The hash of further blocks. If they are all of a message, no more powers are computed than they take.
    pub(super) fn hashed(
        &mut self,
        so_far: Option<Elements>,
        blocks: &[u8],
        is_last: bool,
        at: &mut Computation<'_>,
    ) -> Result<Elements, StepError> {
        if is_last && so_far.is_none() && blocks.len() <= HASHED_FREELY + BLOCK {
            let blocks = blocks.as_chunks::<BLOCK>().0;
            return Ok(hash_public_once(&self.hash, blocks, at.protocol.arithmetic(), at.net)?);
        }
        let powers = match self.powers.take() {
            Some(powers) => powers,
            None => GhashKey::derive(at.protocol.arithmetic(), &self.hash, at.net)?,
        };
        hashed(self.powers.insert(powers), so_far, blocks, at)
    }
}

/// The encryption of public blocks under other round keys.
fn under(round_keys: &AnyShared, blocks: &[u8], at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
    let (circuit, count) = (&at.circuits.of_cipher()?.encrypt, blocks.len() / BLOCK);
    let blocks = at.circuits.blocks(blocks)?;
    Ok(at.one_under(round_keys, circuit, count, &[Input::Public(&blocks)])?)
}
