//! Bits that TinyOT ([`crate::tinyot`]) has authenticated under the same MAC key, converted for use with elements and clients.
//!
//! Bits of bytes stand as everywhere here: the lowest bit of all bytes, then the next ..

use polyclave_field::Gf2_64;

use super::client::Mask;
use super::{Authenticated, Elements, Spdz};
use crate::Result;
use crate::net::Net;

impl Spdz<Gf2_64> {
    /// The elements that GCM reads in this many bytes. Local.
    pub(crate) fn elements_of_bits(&self, bits: &Authenticated<Gf2_64>, bytes: usize) -> Elements {
        Elements::of_bits(bits, bytes)
    }

    /// The mask of these random bits, which were used for nothing else; also what goes to the client.
    pub(crate) fn mask_of_bits(
        &mut self,
        bits: Authenticated<Gf2_64>,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<(Mask, Vec<u8>)> {
        self.arithmetic.mask_of_bits(bits, len, net)
    }

    /// What goes to a client that is to learn this many bytes. The bits have been checked.
    pub(crate) fn reveal_bits(
        &mut self,
        bits: &Authenticated<Gf2_64>,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.arithmetic.reveal_bits(bits, len, net)
    }
}
