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
use polyclave_cipher::hmac::{self, Additions, Sha2};
use polyclave_cipher::{Cells, Cipher};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::blocks::Masks;
use super::{Answer, Mode, StepError, misplaced};
use crate::Result;
use crate::computation::Computation;
use crate::computation::hmac_circuits::{HmacCircuit, additions};

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

    /// Public bits, the same in each lane.
    fn in_each_lane(&self, bytes: &[u8]) -> Result<Cells> {
        Cells::from_blocks(8 * bytes.len(), 1, &bytes.repeat(self.messages))
            .map_err(|e| Error::misuse(e.to_string()))
    }

    /// The states behind a block that the client gave, some bytes of it perhaps filling.
    fn push_given(
        &mut self,
        data: &[u8],
        state: &AnyShared,
        how: Additions,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared, StepError> {
        let mask = self.masks.take()?;
        let circuit = at.hmac_circuit(self.hash, HmacCircuit::Block(how))?;
        let kept = self.block.min(self.bytes - self.computed * self.block);
        if kept == self.block {
            let block = at.protocol.unmask(&mask, 0, data, &circuit.inputs()[0])?;
            return Ok(at.without_key(
                &circuit,
                self.messages,
                &[Input::Shared(&block), Input::Shared(state)],
            )?);
        }
        let last = at.hmac_circuit(self.hash, HmacCircuit::LastBlock(kept))?;
        let given = at.protocol.unmask(&mask, 0, data, &last.inputs()[0])?;
        let filling = self.in_each_lane(&self.filling(self.computed))?;
        let inputs = [Input::Shared(&given), Input::Public(&filling)];
        let block = at.rearranged(&last, self.messages, &inputs)?;
        Ok(at.without_key(&circuit, self.messages, &[Input::Shared(&block), Input::Shared(state)])?)
    }

    /// The states behind a block of filling only.
    fn push_filling(
        &self,
        block: usize,
        state: &AnyShared,
        how: Additions,
        at: &mut Computation<'_>,
    ) -> Result<AnyShared> {
        let circuit = at.hmac_circuit(self.hash, HmacCircuit::KnownBlock(how))?;
        let schedule = self.in_each_lane(&hmac::schedule(self.hash, &self.filling(block)))?;
        at.without_key(&circuit, self.messages, &[Input::Public(&schedule), Input::Shared(state)])
    }
}

impl Mode for Codes {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let circuit = at.hmac_circuit(self.hash, HmacCircuit::States)?;
        let states = at.of_key(&circuit)?;
        let [inner, outer] =
            [0, 1].map(|which| at.protocol.select_lanes(&states[which], &vec![0; self.messages]));
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
        let how = additions(&at.protocol);
        let mut state = self.push_given(data, &inner, how, at)?;
        self.computed += 1;
        if self.computed < self.given() {
            self.states = Some((state, outer));
            return Ok(Answer { mask: self.masks.draw(at)?, ..Answer::data(Vec::new()) });
        }
        for block in self.given()..self.blocks() {
            state = self.push_filling(block, &state, how, at)?;
        }
        let code = at.hmac_circuit(self.hash, HmacCircuit::Code(how))?;
        let codes = at.without_key(&code, self.messages, &[Input::Shared(&state), Input::Shared(&outer)])?;
        let beginning = at.hmac_circuit(self.hash, HmacCircuit::Beginning(self.code_bytes))?;
        let codes = at.rearranged(&beginning, self.messages, &[Input::Shared(&codes)])?;
        Ok(Answer::data(at.protocol.reveal_to_client(&codes, at.net)?))
    }
}
