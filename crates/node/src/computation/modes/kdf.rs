//! Bytes for a client, derived from the key in use: SP 800-108 r1, section 4.1, in counter mode with CMAC.
//! Only the client learns them.
//!
//! They are the codes that [`derive`](crate::computation::derive) makes keys of, so no key is for both
//! (`api/src/modes/pairs.rs`).

use polyclave_api::{Derivation, MAX_DERIVATION_DATA, MAX_DERIVED, Refusal, Step};
use polyclave_protocol::service::ServiceSession;

use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::cmac::Coding;
use crate::computation::derive::{blocks_of_codes, counted};

/// Derives bytes, once.
#[derive(Debug)]
pub(crate) struct Kdf {
    /// The input of each code.
    messages: Vec<Vec<u8>>,
    bytes: usize,
    blocks: u64,
    done: bool,
}

impl Kdf {
    /// The error says why it is refused.
    pub(crate) fn new(how: &Derivation, bytes: u32, block: usize) -> Result<Kdf, String> {
        let Derivation::CmacCounter { before, counter_bits, after } = how else {
            return Err("bytes are derived in counter mode with CMAC only: other ways are encryption".into());
        };
        let (bytes, given) = (bytes as usize, before.len().saturating_add(after.len()));
        if bytes == 0 || bytes > MAX_DERIVED {
            return Err(format!("1 to {MAX_DERIVED} bytes are derived at once, not {bytes}"));
        }
        if given > MAX_DERIVATION_DATA {
            return Err(format!(
                "bytes are derived from at most {MAX_DERIVATION_DATA} bytes of data, not {given}"
            ));
        }
        let codes = bytes.div_ceil(block);
        let blocks = blocks_of_codes(*counter_bits, given, codes, block)?;
        Ok(Kdf { messages: counted(before, *counter_bits, after, codes), bytes, blocks, done: false })
    }
}

impl Mode for Kdf {
    fn start(&mut self, _: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        if self.done || *step != Step::Derived {
            return Err(misplaced(step));
        }
        self.done = true;
        Ok(self.blocks)
    }

    fn run(&mut self, _: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let circuits = at.circuits.chained()?;
        let (chain, last) = (&circuits.chain, &circuits.last_of_cmac);
        let coding = Coding { key: at.key, of_key: at.circuits, chain, last };
        at.progress.begin(self.blocks as usize);
        let codes = coding.of_public(std::mem::take(&mut self.messages), &mut at.protocol, at.net)?;
        at.progress.advance(self.blocks as usize);
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&codes, self.bytes, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_no_counter_mode_is_refused() {
        let counter = |counter_bits, len| Derivation::CmacCounter {
            before: vec![1; len],
            counter_bits,
            after: vec![2; 4],
        };
        assert_eq!(Kdf::new(&counter(8, 11), 33, 16).expect("accepted").blocks, 3);
        assert_eq!(Kdf::new(&counter(32, 4), 1024, 8).expect("accepted").blocks, 256);
        for (how, bytes, block, why) in [
            (Derivation::EcbData { data: vec![1; 16] }, 16, 16, "counter mode with CMAC only"),
            (Derivation::CbcData { iv: vec![1; 16], data: vec![1; 16] }, 16, 16, "CMAC only"),
            (counter(8, 1), 0, 16, "1 to 1024 bytes"),
            (counter(8, 1), 1025, 16, "1 to 1024 bytes"),
            (counter(8, 4093), 16, 16, "at most 4096 bytes"),
            (counter(9, 1), 16, 16, "8, 16, 24 or 32 bits"),
        ] {
            let message = Kdf::new(&how, bytes, block).expect_err("refused");
            assert!(message.contains(why), "{message}");
        }
        assert!(blocks_of_codes(8, 4, 256, 8).expect_err("too many").contains("take more bits"));
    }
}
