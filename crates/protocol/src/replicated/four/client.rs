//! Clients: the masks of their inputs, and the messages that bring them outputs.
//!
//! **To a client** every node sends a Shamir share of degree 1, blinded (`elements.rs`). The client decodes
//! the shares as it does those of `shamir-active`: of four nodes one may send anything, or nothing; with
//! three, a node that sends anything else is found, and the client gets an error.
//!
//! **From a client** comes c = x ^ r, public among the nodes, under a mask r that they drew by pseudorandom
//! components. \[x\] is \[r\] with c added. The nodes have compared c before.
//!
//! **Once**: the nodes see c. Two inputs under one mask would show them x ^ x'.

use polyclave_cipher::CompiledPort;
use zeroize::Zeroizing;

use super::super::Mask;
use super::super::client;
use super::{COMPONENTS, ReplicatedFour, Shared};
use crate::Result;
use crate::replicated::lookup::Multiplier;
use crate::shamir::Symbol;

impl ReplicatedFour {
    /// Draws a mask. Also returns the message to the client. Local.
    pub(super) fn draw_mask(&mut self, len: usize) -> (Mask<COMPONENTS>, Vec<u8>) {
        let mask = Mask { shares: self.joint.keys.random(len), len };
        let components = mask.shares.each_ref().map(|component| &component[..]);
        let message = self.share_for_client(Symbol::Byte, components);
        (mask, message)
    }

    /// Shares of x from the public x ^ r. Local.
    pub(super) fn share_masked(
        &self,
        mask: &Mask<COMPONENTS>,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<COMPONENTS>> {
        client::share_masked(mask, at, masked, port, self.joint.share_zero())
    }

    /// What goes to a client that is to learn the first bytes of a value, in the blocks people write.
    pub(super) fn value_for_client(&mut self, value: &Shared<COMPONENTS>, len: usize) -> Vec<u8> {
        self.joint.tally.of(self.joint.phase).openings += len as u64;
        let blocks: [Zeroizing<Vec<u8>>; COMPONENTS] = std::array::from_fn(|at| value.blocks(at));
        self.share_for_client(Symbol::Byte, blocks.each_ref().map(|blocks| &blocks[..len]))
    }
}
