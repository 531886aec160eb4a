//! Blocks of AES that stay shared: what modes compute of them, and elements of GF(2^128) as such blocks.

use std::sync::Arc;

use polyclave_cipher::{Compiled, CompiledPort};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::{Element, Elements, ServiceSession};

use super::Computation;
use super::block_circuits::BlockCircuit;
use super::pieces::run;
use crate::Result;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// A block that everybody knows, or that nobody does.
pub(crate) enum Term<'s> {
    Public([u8; BLOCK]),
    Shared(&'s AnyShared),
}

impl Computation<'_> {
    pub(crate) fn block_circuit(&self, which: BlockCircuit) -> Result<Arc<Compiled>> {
        self.circuits.blocks_of_aes.get(which, self.circuits, &self.protocol)
    }

    /// The first bytes of a block, zeros instead of the others, and another block added to it. Local.
    pub(crate) fn beginning(
        &mut self,
        bytes: usize,
        block: &AnyShared,
        other: Term<'_>,
    ) -> Result<AnyShared> {
        let circuit = self.block_circuit(BlockCircuit::Beginning(bytes))?;
        let public;
        let other = match other {
            Term::Shared(shared) => Input::Shared(shared),
            Term::Public(bytes) => {
                public = self.circuits.blocks(&bytes)?;
                Input::Public(&public)
            }
        };
        Ok(run(&mut self.protocol, self.net, &circuit, 1, &[Input::Shared(block), other])?.remove(0))
    }

    /// Whether the first bytes of a block equal a tag, and nothing else about it: the others are set to zero
    /// on shares, and a random multiple of the difference is opened.
    pub(crate) fn begins_with(&mut self, block: &AnyShared, tag: &[u8]) -> Result<bool> {
        let mut padded = [0; BLOCK];
        let Some(compared) = padded.get_mut(..tag.len()) else {
            return Err(Error::misuse("a tag is longer than a block"));
        };
        compared.copy_from_slice(tag);
        let difference = self.beginning(tag.len(), block, Term::Public(padded))?;
        let difference = self.protocol.elements(&difference, self.net)?;
        self.protocol.arithmetic().is_zero(&difference, self.net)
    }

    /// Shared elements as blocks of a port, one a lane.
    ///
    /// The nodes open each element plus random bits r that are shared both as bytes and as an element: a mask
    /// as clients get, but its message to a client is sent to nobody. The opened value is uniform for any
    /// element. Under a protocol that verifies, it is checked before it is used. Each block is the opened
    /// value plus \[r\].
    pub(crate) fn as_blocks(&mut self, elements: &Elements, port: &CompiledPort) -> Result<AnyShared> {
        let (mask, _) = self.protocol.mask_input(BLOCK * elements.count(), self.net)?;
        let masked = elements.add(&self.protocol.mask_elements(&mask));
        let opened: Vec<Element> = self.protocol.arithmetic().open_elements(&masked, self.net)?;
        self.protocol.unmask(&mask, 0, opened.as_flattened(), port)
    }

    /// Each of the last bits of a block, as elements that are 0 or 1.
    pub(crate) fn counter_bits(&mut self, element: &Elements) -> Result<Elements> {
        let circuit = self.block_circuit(BlockCircuit::CounterBits)?;
        let block = self.as_blocks(element, &circuit.inputs()[0])?;
        let bits = run(&mut self.protocol, self.net, &circuit, 1, &[Input::Shared(&block)])?;
        let bits = self.protocol.join_lanes(&bits.iter().collect::<Vec<_>>());
        self.protocol.elements(&bits, self.net)
    }
}
