//! Codes of HMAC from which keys and bytes are derived. They stay shared.
//!
//! Where everybody knows the messages, their codes are computed together, and the schedule of each block in
//! the clear. HKDF chains codes: there a message begins with the code before, whose block takes a schedule on
//! shares, and codes are computed one after the other.

use polyclave_cipher::hmac;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Session;
use polyclave_protocol::service::ServiceSession;

use super::codes::Codes;
use super::hmac_circuits::{Hashing, Within};
use crate::Result;

impl Hashing {
    /// The codes under a key, each in a lane.
    pub(crate) fn codes(
        &self,
        codes: &Codes,
        round_keys: &AnyShared,
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let [inner, outer] = self.states((round_keys, 1), within.protocol, within.net)?;
        let computed = match codes.chained {
            false => self.of_known(&codes.messages, (&inner, &outer), within),
            true => self.of_chain(&codes.messages, (&inner, &outer), within),
        };
        // The code of each message takes a block on shares, and so does a message that begins with a code.
        let count = codes.messages.len();
        let blocks = if codes.chained { 2 * count - 1 } else { count };
        let compressions = (blocks, codes.blocks as usize - blocks);
        self.told_of_all(computed, compressions, "The derivation", within.protocol)
    }

    /// Of messages that everybody knows, all of one length.
    fn of_known(
        &self,
        messages: &[Vec<u8>],
        (inner, outer): (&AnyShared, &AnyShared),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let (lanes, bytes) = (messages.len(), messages.first().map_or(0, Vec::len));
        let [mut state, outer] =
            [inner, outer].map(|state| within.protocol.select_lanes(state, &vec![0; lanes]));
        for number in 0..hmac::blocks(self.hash, bytes as u64) {
            let blocks: Vec<Vec<u8>> = messages.iter().map(|message| self.known(message, number)).collect();
            state = self.known_blocks(&blocks, &state, within)?;
        }
        self.code(self.hash.hash_bytes(), (&state, &outer, lanes), within)
    }

    /// Of messages that begin with the code before, except for the first one.
    fn of_chain(
        &self,
        messages: &[Vec<u8>],
        (inner, outer): (&AnyShared, &AnyShared),
        within: &mut Within<'_>,
    ) -> Result<AnyShared> {
        let filling = hmac::filling(self.hash, self.hash.hash_bytes() as u64, 0);
        let mut codes: Vec<AnyShared> = Vec::with_capacity(messages.len());
        for message in messages {
            // Zeros in the place of the code before.
            let code = if codes.is_empty() { 0 } else { self.hash.hash_bytes() };
            let message = [&vec![0; code][..], message].concat();
            let mut state = inner.clone();
            for number in 0..hmac::blocks(self.hash, message.len() as u64) {
                let block = self.known(&message, number);
                state = match codes.last().filter(|_| number == 0) {
                    Some(code) => self.behind_hash((code, &block), (&state, 1), within)?,
                    None => self.known_block(&block, (&state, 1), within)?,
                };
            }
            codes.push(self.behind_hash((&state, &filling), (outer, 1), within)?);
        }
        let states = within.protocol.join_lanes(&codes.iter().collect::<Vec<_>>());
        self.first_bytes(self.hash.hash_bytes(), (&states, messages.len()), within)
    }

    /// The block with this number of a message, with what it is filled up with.
    fn known(&self, message: &[u8], number: u64) -> Vec<u8> {
        let mut block = hmac::filling(self.hash, message.len() as u64, number);
        let of_message = message.chunks(self.hash.block_bytes()).nth(number as usize).unwrap_or_default();
        block[..of_message.len()].copy_from_slice(of_message);
        block
    }
}
