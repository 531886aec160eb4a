//! The chain of blocks under CCM and SIV: the CBC-MAC of CCM (SP 800-38C, section 6.1) and the CMAC of S2V
//! (RFC 5297, section 2.4). Every link stays shared; blocks are computed one after the other.

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;

use super::StepError;
use super::blocks::Masks;
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::{BLOCK, Term};

/// A chain under way, from a block of zeros.
#[derive(Default)]
pub(super) struct Chain(Option<AnyShared>);

impl Chain {
    /// Computes the next link: the encryption of the chain plus a block, plus another one if there is one.
    pub(super) fn push(
        &mut self,
        block: Term<'_>,
        more: Option<&AnyShared>,
        at: &mut Computation<'_>,
    ) -> Result<(), StepError> {
        let (zeros, public);
        let block = match block {
            Term::Shared(shared) => Input::Shared(shared),
            Term::Public(bytes) => {
                public = at.circuits.blocks(&bytes)?;
                Input::Public(&public)
            }
        };
        let chain = match &self.0 {
            Some(link) => Input::Shared(link),
            None => {
                zeros = at.circuits.zero();
                Input::Public(&zeros)
            }
        };
        let link = match more {
            Some(more) => {
                let circuit = at.block_circuit(BlockCircuit::ChainedWith)?;
                at.one(&circuit, 1, &[block, chain, Input::Shared(more)])?
            }
            None => {
                let circuit = at.block_circuit(BlockCircuit::Chained)?;
                at.one(&circuit, 1, &[block, chain])?
            }
        };
        self.0 = Some(link);
        Ok(())
    }

    /// The last link.
    pub(super) fn end(self) -> Result<AnyShared, StepError> {
        let nothing = || StepError::Refused(Refusal::new(Reason::Malformed, "a chain without a block"));
        self.0.ok_or_else(nothing)
    }
}

/// Blocks of the CMAC of so many bytes.
pub(super) fn blocks_of_cmac(bytes: usize) -> u64 {
    bytes.div_ceil(BLOCK).max(1) as u64
}

/// The CMAC of bytes that everybody knows, shared.
pub(super) fn cmac(bytes: &[u8], at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
    let (whole, last) = match bytes.len() % BLOCK {
        0 if !bytes.is_empty() => bytes.split_at(bytes.len() - BLOCK),
        rest => bytes.split_at(bytes.len() - rest),
    };
    let mut chain = Chain::default();
    for block in whole.as_chunks().0 {
        chain.push(Term::Public(*block), None, at)?;
    }
    let (of_whole, of_filled) = subkeys(at)?;
    let subkey = if last.len() < BLOCK { of_filled } else { of_whole };
    chain.push(Term::Public(filled_up(last)), Some(subkey), at)?;
    chain.end()
}

/// The subkeys of CMAC: for a last block that is whole, and for one that was filled up.
pub(super) fn subkeys<'k>(at: &Computation<'k>) -> Result<(&'k AnyShared, &'k AnyShared), StepError> {
    let missing = || StepError::Refused(Refusal::new(Reason::NotForThis, "the key has no subkeys"));
    at.key.subkeys.as_ref().map(|(k1, k2)| (k1, k2)).ok_or_else(missing)
}

/// The last bytes of a message as CMAC fills them up, or a whole block.
pub(super) fn filled_up(last: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..last.len()].copy_from_slice(last);
    if let Some(next) = block.get_mut(last.len()) {
        *next = 0x80;
    }
    block
}

/// The bytes of a message that have come so far, in steps, each of whole blocks except for the last.
pub(super) struct Arrival {
    /// Of the whole message.
    pub(super) bytes: usize,
    /// Admitted.
    pub(super) come: usize,
}

impl Arrival {
    pub(super) fn of(bytes: u32, most: usize) -> Result<Arrival, Refusal> {
        let bytes = bytes as usize;
        if bytes > most {
            let message = format!(
                "a message of {bytes} bytes; this mode takes at most {most}, because its blocks are computed one after the other"
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        Ok(Arrival { bytes, come: 0 })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.come >= self.bytes
    }

    /// Admits ciphertext. Returns how many blocks it has.
    pub(super) fn admit(&mut self, bytes: usize, most: usize) -> Result<u64, Refusal> {
        let rest = self.bytes - self.come;
        let is_last = bytes == rest;
        if bytes == 0 || bytes > most.min(rest) || !(is_last || bytes.is_multiple_of(BLOCK)) {
            let message = format!(
                "a piece of {bytes} bytes of a message of which {rest} are still to come; pieces are whole blocks, except for the last, of at most {most} bytes"
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        self.come += bytes;
        Ok(bytes.div_ceil(BLOCK) as u64)
    }

    /// Admits a message's bytes under a mask, filled up to whole blocks; an empty message that has a block
    /// has one of filling only. Returns how many blocks there are, and how many of these bytes are of the
    /// message.
    pub(super) fn admit_masked(
        &mut self,
        masks: &mut Masks,
        data: &[u8],
        next: u32,
    ) -> Result<(u64, usize), Refusal> {
        let blocks = masks.admit(data, next)?;
        let bytes = data.len().min(self.bytes - self.come);
        self.come += bytes;
        if data.len() - bytes >= BLOCK && self.bytes > 0 || self.is_complete() != (next == 0) {
            let message = format!("{} bytes under a mask do not fit a message of {}", data.len(), self.bytes);
            return Err(Refusal::new(Reason::Malformed, message));
        }
        Ok((blocks, bytes))
    }
}
