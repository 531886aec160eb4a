//! Counter mode (SP 800-38A, section 6.5): the client gets keystream and adds it itself.
//!
//! It authenticates nothing. On encryption the nodes derive the first counter block from the session id, so
//! no client can choose the counters or use them twice. On decryption the client must send it. A counter
//! never wraps.
//!
//! With a cipher that takes a tweak, the tweak counts and the block stays the same in a message:
//! counter-in-tweak (Peyrin and Seurin, "Counter-in-tweak: authenticated encryption modes for tweakable block
//! ciphers", CRYPTO 2016, mode CTRT; cited from memory). Different tweaks are different permutations, so the
//! keystream does not differ from random bytes by its lack of repeated blocks. The first tweak and the block
//! both come from the session: two messages collide only if both do.

use polyclave_api::{Reason, Refusal, Step};
use polyclave_protocol::service::ServiceSession;

use super::numbers::Numbers;
use super::{Answer, Mode, StepError, misplaced, piece};
use crate::computation::Computation;

/// Counter blocks of 16 bytes are 12 bytes of the session and a number from 0.
const NUMBER_BYTES: usize = 4;

pub(crate) struct Counter {
    block: usize,
    /// Bytes of the cipher's tweak, 0 if it takes none.
    tweak: usize,
    /// The counters; `None` until the session provides the first.
    counters: Option<Numbers>,
    /// With a tweak: the block that is encrypted under every tweak.
    fixed: Vec<u8>,
    /// Part of a block was used: nothing can follow.
    ended: bool,
}

impl Counter {
    /// For encryption with a cipher of this block and tweak size in bytes.
    pub(crate) fn fresh(block: usize, tweak: usize) -> Counter {
        Counter { block, tweak, counters: None, fixed: Vec::new(), ended: false }
    }

    /// For decryption: `first` is the first counter block, or the first tweak and then the block.
    pub(crate) fn from(block: usize, tweak: usize, start: &[u8]) -> Result<Counter, Refusal> {
        if start.len() != tweak + block {
            let message = format!(
                "a first counter block of {} bytes; this cipher takes {}",
                start.len(),
                tweak + block
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        let (counter, fixed) = start.split_at(if tweak > 0 { tweak } else { block });
        let (counters, fixed) = (Some(Numbers::from(counter)), fixed.to_vec());
        Ok(Counter { block, tweak, counters, fixed, ended: false })
    }

    /// The next blocks to encrypt, and their tweaks if the cipher takes one.
    fn take(&mut self, count: u64) -> (Vec<u8>, Vec<u8>) {
        let numbers = self.counters.as_mut().map(|counters| counters.take(count)).unwrap_or_default();
        match self.tweak {
            0 => (numbers, Vec::new()),
            _ => (self.fixed.repeat(count as usize), numbers),
        }
    }

    /// The first counter block of a new message, or its first tweak.
    fn begin(&mut self, mut first: Vec<u8>) -> Vec<u8> {
        self.counters = Some(match first.len() {
            16 => {
                first[16 - NUMBER_BYTES..].fill(0);
                let end =
                    u128::from_be_bytes(first[..].try_into().unwrap_or_default()) + (1 << (8 * NUMBER_BYTES));
                Numbers::until(&first, end)
            }
            _ => {
                // The number of blocks under a key of such a cipher is small. If the first number is in the
                // lower half of all, none wraps.
                first[0] &= 0x7f;
                Numbers::from(&first)
            }
        });
        first
    }
}

impl Mode for Counter {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        if self.counters.is_some() {
            return Ok((Vec::new(), Vec::new()));
        }
        let first = at.derived::<16>("polyclave 2026 first counter block");
        if self.tweak == 0 {
            return Ok((self.begin(first[..self.block].to_vec()), Vec::new()));
        }
        self.fixed = at.derived::<16>("polyclave 2026 block under counting tweaks")[..self.block].to_vec();
        let tweak = self.begin(first[..self.tweak].to_vec());
        Ok(([&tweak[..], &self.fixed].concat(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let Step::Keystream { bytes } = step else { return Err(misplaced(step)) };
        let bytes = *bytes as usize;
        piece(bytes)?;
        if self.ended {
            return Err(Refusal::new(Reason::Malformed, "the keystream ended with a part of a block"));
        }
        self.ended = !bytes.is_multiple_of(self.block);
        let count = bytes.div_ceil(self.block) as u64;
        // Before the session has begun the counter is far from its end.
        self.counters.as_ref().map_or(Ok(()), |counters| counters.admit(count, "counter"))?;
        Ok(count)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let Step::Keystream { bytes } = step else { return Err(StepError::Refused(misplaced(&step))) };
        let (blocks, tweaks) = self.take((bytes as usize).div_ceil(self.block) as u64);
        let keystream = at.encrypt(&blocks, &tweaks)?;
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&keystream, bytes as usize, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(counter: &mut Counter, bytes: u32) -> Result<u64, Refusal> {
        Mode::admit(counter, &Step::Keystream { bytes })
    }

    #[test]
    fn counters_are_blocks_or_tweaks() {
        let start = [0, 0, 0, 0, 0, 0, 1, 255];
        let counted = vec![0, 0, 0, 0, 0, 0, 1, 255, 0, 0, 0, 0, 0, 0, 2, 0];
        let mut counter = Counter::from(8, 0, &start).expect("it fits");
        assert_eq!(counter.take(2), (counted.clone(), Vec::new()));
        let mut counter = Counter::from(8, 8, &[start, [7; 8]].concat()).expect("it fits");
        assert_eq!(counter.take(2), (vec![7; 16], counted));
        assert!(Counter::from(8, 8, &start).is_err() && Counter::from(8, 0, &[0; 16]).is_err());
    }

    #[test]
    fn a_wrapping_counter_is_refused() {
        for block in [8, 16] {
            let mut all_but_two = vec![0xff; block];
            all_but_two[block - 1] = 0xfd;
            let mut counter = Counter::from(block, 0, &all_but_two).expect("it fits");
            assert!(admit(&mut counter, 3 * block as u32).is_err());
            assert_eq!(admit(&mut counter, 2 * block as u32).ok(), Some(2));
        }
    }

    #[test]
    fn nothing_follows_a_part_of_a_block() {
        let mut counter = Counter::from(16, 0, &[0; 16]).expect("it fits");
        assert_eq!(admit(&mut counter, 17).ok(), Some(2));
        assert!(admit(&mut counter, 16).is_err());
    }
}
