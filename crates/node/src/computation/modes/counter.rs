//! Counter mode (SP 800-38A, section 6.5): the client gets keystream and adds it itself.
//!
//! Authenticates nothing. On encryption the nodes derive the first counter block from the session id, so no client can have
//! the same counters twice or choose them; on decryption the client names it, as it must. A counter never wraps.

use polyclave_protocol::service::ServiceSession;
use polyclave_transport::wire::{Reason, Refusal, Step};

use super::{Answer, Fault, Mode, misplaced, piece};
use crate::computation::Computation;

/// Counter blocks of 16 bytes are 12 bytes of the session and a number from 0.
const NUMBER_BYTES: usize = 4;

pub(crate) struct Counter {
    block: usize,
    /// The next counter block; `None` until the session gives it.
    next: Option<u128>,
    /// The first number that the counter must not reach.
    end: u128,
    /// Part of a block was given: nothing can follow.
    ended: bool,
}

impl Counter {
    /// For encryption.
    pub(crate) fn fresh(block: usize) -> Counter {
        Counter { block, next: None, end: 0, ended: false }
    }

    /// For decryption.
    pub(crate) fn from(block: usize, counter: &[u8]) -> Result<Counter, Refusal> {
        if counter.len() != block {
            let told = format!("a first counter block of {} bytes; this cipher takes {block}", counter.len());
            return Err(Refusal::new(Reason::Malformed, told));
        }
        let end = 1u128.checked_shl(8 * block as u32).map_or(u128::MAX, |end| end - 1);
        Ok(Counter { block, next: Some(number(counter)), end, ended: false })
    }

    /// The next counter blocks.
    fn take(&mut self, count: u64) -> Vec<u8> {
        let first = self.next.unwrap_or_default();
        self.next = Some(first + u128::from(count));
        let mut blocks = Vec::with_capacity(count as usize * self.block);
        for i in 0..u128::from(count) {
            blocks.extend_from_slice(&(first + i).to_be_bytes()[16 - self.block..]);
        }
        blocks
    }
}

fn number(block: &[u8]) -> u128 {
    block.iter().fold(0, |n, byte| n << 8 | u128::from(*byte))
}

impl Mode for Counter {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), Fault> {
        if self.next.is_some() {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut block = at.derived::<16>("polyclave 2026 first counter block").to_vec();
        block.truncate(self.block);
        if self.block == 16 {
            block[16 - NUMBER_BYTES..].fill(0);
            self.end = number(&block) + (1 << (8 * NUMBER_BYTES));
        } else {
            // The number of blocks under a key of such a cipher is small; in the lower half of all numbers none wraps.
            block[0] &= 0x7f;
            self.end = 1 << (8 * self.block);
        }
        self.next = Some(number(&block));
        Ok((block, Vec::new()))
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
        let wraps = |next: u128| next.checked_add(u128::from(count)).is_none_or(|after| after > self.end);
        if self.next.is_some_and(wraps) {
            return Err(Refusal::new(
                Reason::Malformed,
                "the counter would wrap around; start a new message",
            ));
        }
        Ok(count)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, Fault> {
        let Step::Keystream { bytes } = step else { return Err(Fault::Refused(misplaced(&step))) };
        let counters = self.take((bytes as usize).div_ceil(self.block) as u64);
        let keystream = at.encrypt(&counters)?;
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
    fn counters_go_on_over_byte_borders() {
        let mut counter = Counter::from(8, &[0, 0, 0, 0, 0, 0, 1, 255]).expect("it fits");
        assert_eq!(counter.take(2), [0, 0, 0, 0, 0, 0, 1, 255, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(counter.take(1), [0, 0, 0, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn a_wrapping_counter_is_refused() {
        for block in [8, 16] {
            let mut all_but_two = vec![0xff; block];
            all_but_two[block - 1] = 0xfd;
            let mut counter = Counter::from(block, &all_but_two).expect("it fits");
            assert!(admit(&mut counter, 3 * block as u32).is_err());
            assert_eq!(admit(&mut counter, 2 * block as u32).ok(), Some(2));
        }
    }

    #[test]
    fn nothing_follows_a_part_of_a_block() {
        let mut counter = Counter::from(16, &[0; 16]).expect("it fits");
        assert_eq!(admit(&mut counter, 17).ok(), Some(2));
        assert!(admit(&mut counter, 16).is_err());
    }
}
