//! Bits that TinyOT ([`crate::tinyot`]) has authenticated under the same MAC key, converted for use with
//! elements and clients.
//!
//! Bits of bytes stand as everywhere here: the lowest bit of all bytes, then the next ..

use polyclave_field::Gf2_64;

use super::Spdz;
use super::elements::elements_of_bits;
use crate::Result;
use crate::authenticated::Authenticated;
use crate::interface::elements::Elements;
use crate::interface::net::Net;

impl Spdz<Gf2_64> {
    /// The elements that GCM reads in this many bytes. Local.
    pub(crate) fn elements_of_bits(&self, bits: &Authenticated<Gf2_64>, bytes: usize) -> Elements {
        elements_of_bits(bits, bytes)
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
