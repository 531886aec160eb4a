//! FF1 (SP 800-38G): the ten rounds of its Feistel network, for a client that does the arithmetic on strings
//! that it knows.
//!
//! A round is a CBC-MAC of public blocks, of which the last one also has a number of the client
//! (`cipher/src/ff1.rs`). The nodes compute the chain of the blocks before the last one once. It stays
//! shared. In each round the client sends its number under a mask, b bytes of each value. The nodes
//! themselves add the rest of the last block: the end of the tweak, and the number of the round, which they
//! count. The client learns the first d bytes of the encrypted block, which are what a round adds, and nobody
//! else learns anything.
//!
//! So the client chooses nothing but b bytes of a block that begins otherwise in every round, and gets the
//! values of a pseudorandom function (`cipher/src/ff1.rs` says why). The nodes cannot tell what a number is
//! for: a client that uses the rounds of ten requests, one of each, in another order, inverts what it was to
//! make. Therefore both directions are one right, and the order of the rounds only a service.
//!
//! Cost: one block for P; the blocks of the tweak before the last block, for each tweak; ten blocks for each
//! value, all values at once.

use polyclave_api::{End, MASKED, MAX_VALUES, Reason, Refusal, Step};
use polyclave_cipher::ff1::{Ff1, MAX_TWEAK, ROUNDS};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;

/// The rounds of some values.
pub(crate) struct Rounds {
    ff1: Ff1,
    /// One, or one for each value.
    tweaks: Vec<Vec<u8>>,
    values: usize,
    inverse: bool,
    masks: Masks,
    admitted: u8,
    computed: u8,
    /// The chain before the last block, for each value.
    chain: Option<AnyShared>,
}

impl Rounds {
    pub(crate) fn new(
        (radix, length): (u32, u32),
        tweaks: &[Vec<u8>],
        values: u32,
        inverse: bool,
    ) -> Result<Rounds, Refusal> {
        let malformed = |message: String| Refusal::new(Reason::Malformed, message);
        let ff1 = Ff1::new(radix, length).map_err(malformed)?;
        let values = values as usize;
        if values == 0 || values > MAX_VALUES {
            return Err(malformed(format!("{values} values; 1 to {MAX_VALUES} are tokenized together")));
        }
        if tweaks.len() != 1 && tweaks.len() != values {
            let message =
                format!("{} tweaks for {values} values; there is one for all, or one for each", tweaks.len());
            return Err(malformed(message));
        }
        let lengths = || tweaks.iter().map(Vec::len);
        if let Some(long) = lengths().find(|len| *len > MAX_TWEAK) {
            return Err(malformed(format!("a tweak of {long} bytes; {MAX_TWEAK} are allowed")));
        }
        if lengths().min() != lengths().max() {
            return Err(malformed("the tweaks of one request have different lengths".into()));
        }
        let masks = Masks::new(ff1.number_bytes(), MASKED, (values * ff1.number_bytes()) as u32)?;
        let tweaks = tweaks.to_vec();
        Ok(Rounds { ff1, tweaks, values, inverse, masks, admitted: 0, computed: 0, chain: None })
    }

    fn tweak_bytes(&self) -> usize {
        self.tweaks.first().map_or(0, Vec::len)
    }

    /// A block of Q in a round, for each tweak.
    fn blocks(&self, round: u8, which: usize) -> Vec<u8> {
        self.tweaks.iter().flat_map(|tweak| self.ff1.blocks(tweak, round)[which]).collect()
    }
}

impl Mode for Rounds {
    fn blocks_at_start(&self) -> u64 {
        (1 + self.tweaks.len() * self.ff1.leading_blocks(self.tweak_bytes())) as u64
    }

    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let first = at.circuits.blocks(&self.ff1.first_block(self.tweak_bytes()))?;
        let encrypted = at.block_circuit(BlockCircuit::Encrypted)?;
        let of_first = at.one(&encrypted, 1, &[Input::Public(&first)])?;
        let lanes = self.tweaks.len();
        let mut chain = at.protocol.select_lanes(&of_first, &vec![0; lanes]);
        let chained = at.block_circuit(BlockCircuit::Chained)?;
        for which in 0..self.ff1.leading_blocks(self.tweak_bytes()) {
            // No round shows before the last block.
            let blocks = at.circuits.blocks(&self.blocks(0, which))?;
            chain = at.one(&chained, lanes, &[Input::Public(&blocks), Input::Shared(&chain)])?;
        }
        if lanes < self.values {
            chain = at.protocol.select_lanes(&chain, &vec![0; self.values]);
        }
        self.chain = Some(chain);
        Ok((Vec::new(), self.masks.draw(at)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let Step::Masked { data, next, end: End::No } = step else { return Err(misplaced(step)) };
        if self.admitted == ROUNDS {
            return Err(misplaced(step));
        }
        let is_last = self.admitted + 1 == ROUNDS;
        let expected = if is_last { 0 } else { self.values * self.ff1.number_bytes() };
        if *next as usize != expected {
            let message =
                format!("the next mask would have {next} bytes; after this round it has {expected}");
            return Err(Refusal::new(Reason::Malformed, message));
        }
        let numbers = self.masks.admit(data, *next)?;
        self.admitted += 1;
        Ok(numbers)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let (Step::Masked { data, .. }, Some(chain)) = (&step, &self.chain) else {
            return Err(StepError::Refused(misplaced(&step)));
        };
        let mask = self.masks.take()?;
        let round = if self.inverse { ROUNDS - 1 - self.computed } else { self.computed };
        self.computed += 1;
        let circuit =
            at.block_circuit(BlockCircuit::Ff1Round(self.ff1.number_bytes(), self.ff1.sum_bytes()))?;
        let numbers = at.protocol.unmask(&mask, 0, data, &circuit.inputs()[0])?;
        let last = self.blocks(round, self.ff1.leading_blocks(self.tweak_bytes()));
        let public = match self.tweaks.len() {
            1 => at.circuits.blocks(&last.repeat(self.values))?,
            _ => at.circuits.blocks(&last)?,
        };
        let inputs = [Input::Shared(&numbers), Input::Public(&public), Input::Shared(chain)];
        let sums = at.one(&circuit, self.values, &inputs)?;
        let data = at.protocol.reveal_to_client(&sums, at.net)?;
        Ok(Answer { mask: self.masks.draw(at)?, ..Answer::data(data) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(radix: u32, tweaks: &[Vec<u8>], values: u32) -> Result<Rounds, Refusal> {
        Rounds::new((radix, 10), tweaks, values, false)
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let tweak = |len: usize| vec![1; len];
        for (radix, tweaks, values, why) in [
            (37, vec![tweak(0)], 1, "2 to 36"),
            (2, vec![tweak(0)], 1, "at least 1000000"),
            (10, vec![tweak(65)], 1, "a tweak of 65 bytes; 64 are allowed"),
            (10, vec![], 1, "0 tweaks for 1 values"),
            (10, vec![tweak(3), tweak(3)], 3, "one for all, or one for each"),
            (10, vec![tweak(3), tweak(4)], 2, "different lengths"),
            (10, vec![tweak(0)], 0, "1 to 4096"),
            (10, vec![tweak(0)], 4097, "1 to 4096"),
        ] {
            let text = rounds(radix, &tweaks, values).err().expect("refused");
            assert_eq!(text.reason, Reason::Malformed);
            assert!(text.message.contains(why), "{text}");
        }
    }

    #[test]
    fn the_start_is_charged_for_each_tweak() {
        let at_start =
            |tweaks: &[Vec<u8>], values| rounds(10, tweaks, values).expect("fits").blocks_at_start();
        assert_eq!(at_start(&[vec![]], 1000), 1);
        assert_eq!(at_start(&[vec![1; 64]], 1000), 5);
        assert_eq!(at_start(&vec![vec![1; 64]; 1000], 1000), 4001);
    }
}
