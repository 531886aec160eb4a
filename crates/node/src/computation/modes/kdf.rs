//! Bytes for a client, derived from the key in use: the first ones of its
//! [codes](crate::computation::codes). Only the client learns them.
//!
//! They are the codes that [`derive`](crate::computation::derive) makes keys of, so no key is for both
//! (`api/src/modes/pairs.rs`).

use polyclave_api::{Derivation, MAX_DERIVED, Refusal, Step};
use polyclave_cipher::Cipher;
use polyclave_protocol::service::ServiceSession;

use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::circuits::Own;
use crate::computation::cmac::Coding;
use crate::computation::codes::Codes;

/// Derives bytes, once.
#[derive(Debug)]
pub(crate) struct Kdf {
    codes: Codes,
    bytes: usize,
    done: bool,
}

impl Kdf {
    /// The error says why it is refused.
    pub(crate) fn new(how: &Derivation, bytes: u32, key: &Cipher) -> Result<Kdf, String> {
        let bytes = bytes as usize;
        if bytes == 0 || bytes > MAX_DERIVED {
            return Err(format!("1 to {MAX_DERIVED} bytes are derived at once, not {bytes}"));
        }
        Ok(Kdf { codes: Codes::new(how, key, bytes)?, bytes, done: false })
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
        Ok(self.codes.blocks)
    }

    fn run(&mut self, _: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let blocks = self.codes.blocks as usize;
        let codes = match at.circuits.own() {
            Own::Hmac(hashing) => hashing.codes(&self.codes, &at.key.round_keys, &mut at.within())?,
            Own::Cipher(_) => {
                let circuits = at.circuits.chained()?;
                let (chain, last) = (&circuits.chain, &circuits.last_of_cmac);
                let coding = Coding { key: at.key, of_key: at.circuits, chain, last };
                at.progress.begin(blocks);
                let messages = std::mem::take(&mut self.codes.messages);
                let codes = coding.of_public(messages, &mut at.protocol, at.net)?;
                at.progress.advance(blocks);
                codes
            }
        };
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&codes, self.bytes, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::keyed;

    use super::*;

    #[test]
    fn so_many_bytes_are_derived_of_codes_alone() {
        let counter = Derivation::Counter { before: vec![1; 8], counter_bits: 8, after: vec![2; 4] };
        for name in ["aes-128", "hmac-sha-256"] {
            let key = keyed::find(name).expect("there is such a cipher");
            for bytes in [1, 1024] {
                assert!(Kdf::new(&counter, bytes, &key).is_ok());
            }
            for (how, bytes, why) in [
                (Derivation::EcbData { data: vec![1; 16] }, 16, "gives no codes"),
                (Derivation::CbcData { iv: vec![1; 16], data: vec![1; 16] }, 16, "gives no codes"),
                (counter.clone(), 0, "1 to 1024 bytes"),
                (counter.clone(), 1025, "1 to 1024 bytes"),
            ] {
                let message = Kdf::new(&how, bytes, &key).expect_err("refused");
                assert!(message.contains(why), "{message}");
            }
        }
    }
}
