//! The chain of blocks under CCM and SIV: the CBC-MAC of CCM (SP 800-38C, section 6.1) and the CMAC of S2V
//! (RFC 5297, section 2.4). Every link stays shared; blocks are computed one after the other.

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;

use super::StepError;
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
                zeros = at.circuits.zero()?;
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
