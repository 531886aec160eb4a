//! The bits of bytes in the order in which people write them, for clients, elements and stored values.
//!
//! A cell is a bit, and the first cell of a block is the highest bit of its first byte.

use polyclave_cipher::{Cells, Cipher, CompiledPort, boolean};
use zeroize::Zeroizing;

use super::Served;
use crate::interface::masking::masked_cells;
use crate::interface::net::Net;
use crate::interface::protocol::Session;
use crate::interface::service::{ELEMENT_BYTES, ElementArithmetic, Elements, OwnMask, ServiceSession};
use crate::tinyot::Bits;
use crate::tinytable::{Masks, Shared};
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result};

/// A random value that masks an input of a client: the lowest bits of all bytes, then the next, and so on.
pub struct Mask {
    bits: Bits,
    len: usize,
}

impl Shared {
    /// Its cells, which are bits.
    pub(super) fn as_bits(&self) -> Result<Bits> {
        refuse_wide(self.bits)?;
        // Tags of bits have 64 bits.
        let words = |tags: &[u128]| tags.iter().map(|tag| *tag as u64).collect();
        let Masks { values, tags, keys } = &self.shares;
        Ok(Bits { values: values.clone(), tags: words(tags), keys: words(keys) })
    }

    /// Replaces the bits by as many others.
    pub(super) fn set_bits(&mut self, bits: &Bits) {
        let words = |tags: &[u64]| tags.iter().map(|tag| u128::from(*tag)).collect();
        self.shares = Masks { values: bits.values.clone(), tags: words(&bits.tags), keys: words(&bits.keys) };
    }

    /// The bits of the first bytes of its blocks: the lowest bits of all bytes, then the next, and so on.
    fn bits_of_bytes(&self, bytes: usize) -> Result<Bits> {
        let (from, mut bits) = (self.as_bits()?, Bits::zero(8 * bytes));
        for_each_bit(self.count, self.lanes, |place, byte, cell| {
            if byte < bytes {
                copy_bit(&from, cell, &mut bits, place * bytes + byte);
            }
        });
        Ok(bits)
    }
}

fn refuse_wide(bits: u8) -> Result<()> {
    match bits {
        1 => Ok(()),
        _ => Err(Error::Misuse(format!("nodes share bits under this protocol, no cells of {bits} bits"))),
    }
}

/// Calls `each` for each bit of some blocks, with its place in its byte, the byte among those of all blocks,
/// and its cell.
fn for_each_bit(count: usize, lanes: usize, mut each: impl FnMut(usize, usize, usize)) {
    let width = Cells::block_bytes(count, 1);
    for cell in 0..count {
        let (byte, place) = Cells::place(cell, 1);
        (0..lanes).for_each(|lane| each(place, lane * width + byte, cell * lanes + lane));
    }
}

fn copy_bit(from: &Bits, at: usize, to: &mut Bits, place: usize) {
    to.values[place] = from.values[at];
    to.tags[place] = from.tags[at];
    to.keys[place] = from.keys[at];
}

impl Served {
    /// Checks everything that a value depends on, if that was not done, before the value is converted.
    fn settle(&mut self, value: &Shared, net: &mut dyn Net) -> Result<()> {
        self.tables.refuse_unfit(value)?;
        if value.unchecked.is_pending() { self.tables.check(net) } else { self.tables.key.refuse_retired() }
    }
}

impl ServiceSession for Served {
    type Mask = Mask;

    /// Boolean circuits: their values become elements without communication, and tables of two bits take
    /// fewer products than any other form.
    fn form(&self, cipher: Cipher) -> Cipher {
        boolean::expanded(cipher)
    }

    fn can_join(&self, a: &Shared, b: &Shared) -> bool {
        a.is_alike(b)
    }

    fn join_lanes(&self, parts: &[&Shared]) -> Shared {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared) -> Zeroizing<Vec<u8>> {
        value.save(&self.tables.key)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared> {
        Shared::restore(bytes, &self.tables.key)
    }

    /// Each party knows its own shares of bits. With zeros for the other's, which are no secret, they are
    /// bits that it alone knows.
    fn mask_of(&mut self, owner: Party, len: usize, net: &mut dyn Net) -> Result<Option<OwnMask<Mask>>> {
        self.tables.key.refuse_retired()?;
        let mut bits = self.masks.bits(8 * len, net)?;
        if net.me() != owner {
            bits.values.fill(0);
            bits.tags.fill(0);
            return Ok(Some((Mask { bits, len }, None)));
        }
        bits.keys.fill(0);
        let mut known = Zeroizing::new(vec![0; len]);
        for (place, row) in bits.values.chunks(len.max(1)).enumerate() {
            known.iter_mut().zip(row).for_each(|(byte, bit)| *byte |= bit << place);
        }
        Ok(Some((Mask { bits, len }, Some(known))))
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        self.tables.key.refuse_retired()?;
        let bits = self.masks.bits(8 * len, net)?;
        let message = self.elements.reveal_bits(&bits.to_spdz(&self.tables.key), len, net)?;
        Ok((Mask { bits, len }, message))
    }

    fn mask_elements(&self, mask: &Mask) -> Elements {
        self.elements.elements_of_bits(&mask.bits.to_spdz(&self.tables.key), mask.len)
    }

    fn unmask(&mut self, mask: &Mask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<Shared> {
        refuse_wide(port.bits)?;
        let public = masked_cells(port, masked, at, mask.len)?;
        let (count, lanes) = (port.cells.len(), public.lanes());
        let mut bits = Bits::zero(count * lanes);
        for_each_bit(count, lanes, |place, byte, cell| {
            copy_bit(&mask.bits, place * mask.len + at + byte, &mut bits, cell);
        });
        bits.add_public(public.rows(), &self.tables.key);
        let mut shared =
            Shared { bits: 1, count, lanes, shares: Masks::default(), unchecked: Unchecked::default() };
        shared.set_bits(&bits);
        Ok(shared)
    }

    fn block_bytes(&self, value: &Shared) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(&mut self, value: &Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        let bits = value.bits_of_bytes(bytes)?;
        self.settle(value, net)?;
        self.elements.reveal_bits(&bits.to_spdz(&self.tables.key), bytes, net)
    }

    fn elements(&mut self, blocks: &Shared, net: &mut dyn Net) -> Result<Elements> {
        if (blocks.bits, blocks.count) != (1, 8 * ELEMENT_BYTES) {
            let (bits, count) = (blocks.bits, blocks.count);
            return Err(Error::Misuse(format!("{count} cells of {bits} bits are no element of GF(2^128)")));
        }
        let bytes = ELEMENT_BYTES * blocks.lanes;
        let bits = blocks.bits_of_bytes(bytes)?;
        self.settle(blocks, net)?;
        Ok(self.elements.elements_of_bits(&bits.to_spdz(&self.tables.key), bytes))
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.elements.arithmetic()
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.elements.save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.elements.restore_elements(bytes)
    }
}
