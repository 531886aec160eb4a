//! Codes of HMAC (RFC 2104, FIPS 198-1) of messages of one length, each in a lane.
//!
//! Messages come under masks, a block of each in a step. The nodes themselves fill up the last block, so a
//! client can have the code of no other string than a message of the length that it said. The hash of each
//! message stays shared, and so does all of the code except the bytes that the client wants, which are
//! revealed to it alone. The nodes see how many messages there are, and their length.
//!
//! Cost, in compressions: one for each block of a message, one more if the filling takes a block of its own,
//! and one for the code.

use polyclave_api::{End, MASKED, MAX_CHAINED, MAX_CODES, Reason, Refusal, Step, operations};
use polyclave_cipher::hmac::{self, Last, Sha2};
use polyclave_cipher::{Cipher, compile};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::hmac_circuits::bits;

pub(crate) struct Codes {
    hash: Sha2,
    /// Bytes of a block of the hash.
    block: usize,
    bytes: usize,
    messages: usize,
    code_bytes: usize,
    masks: Masks,
    admitted: usize,
    computed: usize,
    /// The states of the inner hashes so far, and of the outer hash behind the key.
    states: Option<(AnyShared, AnyShared)>,
}

impl Codes {
    pub(crate) fn new(asked: operations::Hmac, cipher: &Cipher) -> Result<Codes, Refusal> {
        let Some(hash) = hmac::hash_of(&cipher.name) else {
            let message = format!("a key of {} computes no codes of hmac", cipher.name);
            return Err(Refusal::new(Reason::NotForThis, message));
        };
        let malformed = |message: String| Refusal::new(Reason::Malformed, message);
        let (bytes, messages) = (asked.bytes as usize, asked.messages as usize);
        let code_bytes = usize::from(asked.code_bytes);
        if bytes > MAX_CHAINED {
            return Err(malformed(format!("a message of {bytes} bytes; hmac takes at most {MAX_CHAINED}")));
        }
        if messages == 0 || messages > MAX_CODES {
            return Err(malformed(format!(
                "{messages} messages; codes of 1 to {MAX_CODES} are computed together"
            )));
        }
        let allowed = hmac::code_bytes(hash);
        if !allowed.contains(&code_bytes) {
            let (least, most, name) = (allowed.start(), allowed.end(), &cipher.name);
            return Err(malformed(format!("codes of {code_bytes} bytes; {name} has {least} to {most}")));
        }
        let block = hash.block_bytes();
        let masks = Masks::new(block, MASKED, (messages * block) as u32)?;
        Ok(Codes { hash, block, bytes, messages, code_bytes, masks, admitted: 0, computed: 0, states: None })
    }

    /// Blocks that the client gives of each message: one of an empty message, too, which is ignored.
    fn given(&self) -> usize {
        self.bytes.div_ceil(self.block).max(1)
    }

    /// All blocks of a message behind that of the key.
    fn blocks(&self) -> usize {
        hmac::blocks(self.hash, self.bytes as u64) as usize
    }

    fn filling(&self, block: usize) -> Vec<u8> {
        hmac::filling(self.hash, self.bytes as u64, block as u64)
    }

    /// The block that the client gave of each message, some bytes of it perhaps filling.
    fn given_block(&mut self, data: &[u8], at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
        let mask = self.masks.take()?;
        let kept = self.block.min(self.bytes - self.computed * self.block);
        if kept == self.block {
            let circuit = at.circuits.hashing()?.block_circuit(&at.protocol)?;
            return Ok(at.protocol.unmask(&mask, 0, data, &circuit.inputs()[0])?);
        }
        let last = compile(&hmac::last_block(self.hash, Last::OfMessage(kept)), &at.protocol);
        let given = at.protocol.unmask(&mask, 0, data, &last.inputs()[0])?;
        let filling = bits(&self.filling(self.computed), self.messages)?;
        let inputs = [Input::Shared(&given), Input::Public(&filling)];
        Ok(at.rearranged(&last, self.messages, &inputs)?)
    }
}

impl Mode for Codes {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let of_key = (&at.key.round_keys, 1);
        let states = at.circuits.hashing()?.states(of_key, &mut at.protocol, at.net)?;
        let [inner, outer] = states.map(|state| at.protocol.select_lanes(&state, &vec![0; self.messages]));
        self.states = Some((inner, outer));
        Ok((Vec::new(), self.masks.draw(at)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let Step::Masked { data, next, end: End::No } = step else { return Err(misplaced(step)) };
        if self.admitted == self.given() {
            return Err(misplaced(step));
        }
        let is_last = self.admitted + 1 == self.given();
        let expected = if is_last { 0 } else { self.messages * self.block };
        if *next as usize != expected {
            let message =
                format!("the next mask would have {next} bytes; after this block it has {expected}");
            return Err(Refusal::new(Reason::Malformed, message));
        }
        let blocks = self.masks.admit(data, *next)?;
        self.admitted += 1;
        let behind = if is_last { self.blocks() - self.given() + 1 } else { 0 };
        Ok(blocks + (self.messages * behind) as u64)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let (Step::Masked { data, .. }, Some((inner, outer))) = (&step, self.states.take()) else {
            return Err(StepError::Refused(misplaced(&step)));
        };
        let (hashing, lanes) = (at.circuits.hashing()?, self.messages);
        let block = self.given_block(data, at)?;
        let mut state = hashing.block(&block, (&inner, lanes), &mut at.within())?;
        self.computed += 1;
        if self.computed < self.given() {
            self.states = Some((state, outer));
            return Ok(Answer { mask: self.masks.draw(at)?, ..Answer::data(Vec::new()) });
        }
        for block in self.given()..self.blocks() {
            state = hashing.known_block(&self.filling(block), (&state, lanes), &mut at.within())?;
        }
        let codes = hashing.code(self.code_bytes, (&state, &outer, lanes), &mut at.within())?;
        Ok(Answer::data(at.protocol.reveal_to_client(&codes, at.net)?))
    }
}
