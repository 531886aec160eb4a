//! The masked product I * s, for a selection I that both parties know (Damgard et al. 2016, section 6).
//!
//! Both parties know C(I). So C(I) * C(s) is a word of C* of which each party has a share, C(I) * C(s_i), and
//! a share of the MAC, C(I) times that of a * C(s). This needs no multiplication protocol, and nothing from
//! the dealer. With the mask r added it is the word y = C(I) * C(s) + r, whose message is I * s.
//!
//! A party's share y_i is a word of C*, with message I * s_i, because r_i has the message zero. So **a party
//! sends of a message only the selected bits of s_i and k - 1 symbols**, from which the other places follow
//! (`code.rs`). In this form it is impossible to write anything that is not a word of C*, or whose message is
//! not zeros and ones, with zeros where nothing is selected.

use zeroize::Zeroizing;

use polyclave_field::Gf2_16;

use super::Code;
use super::commitment::{Committed, Tile, bit_at, pack};
use polyclave_protocol::{Error, Party, Result};

/// One party's part of a masked product: of y, before the peer's share is added and after, and of its MAC.
pub(super) struct Product<'a> {
    code: Code,
    selection: &'a [u8],
    /// The message of y at the selected places.
    bits: Vec<u8>,
    /// Places k to 2k - 2 of y.
    free: Vec<u16>,
    /// This party's share of a * y.
    macs: Zeroizing<Vec<u16>>,
}

impl<'a> Product<'a> {
    /// This party's share.
    pub(super) fn of(mut committed: Committed, selection: &'a [u8]) -> Self {
        let (code, len, shares) = (committed.code, committed.len, &mut committed.shares);
        let mut free = std::mem::take(&mut shares.mask);
        let mut macs = Zeroizing::new(std::mem::take(&mut shares.macs));
        let (mut indicator, mut rows) = (Vec::new(), Zeroizing::new(Vec::new()));
        for tile in Tile::all(code, len) {
            let lanes = tile.lanes;
            indicator.resize(code.places() * lanes, 0);
            tile.messages(|i| selection[i], len, code, &mut indicator);
            code.encode(&mut indicator, lanes);

            let macs = tile.part_mut(&mut macs, code.places());
            Gf2_16::multiply_row(macs, &indicator);
            Gf2_16::add_row(macs, tile.part(&shares.mask_macs, code.places()));

            rows.resize(code.message() * lanes, 0);
            tile.messages(|i| bit_at(&shares.bits, i), len, code, &mut rows);
            code.next_rows(&mut rows, lanes);
            let free = tile.part_mut(&mut free, code.free());
            let known = code.message() * lanes;
            Gf2_16::multiply_row(&mut rows[..free.len()], &indicator[known..known + free.len()]);
            Gf2_16::add_row(free, &rows[..free.len()]);
        }
        let selected = (0..len).filter(|i| selection[*i] == 1);
        let bits = selected.map(|i| bit_at(&shares.bits, i)).collect();
        Product { code, selection, bits, free, macs }
    }

    /// Bytes of [`Product::write`].
    pub(super) fn message_bytes(&self) -> usize {
        self.bits.len().div_ceil(8) + self.free.len() * size_of::<u16>()
    }

    /// What the peer is sent.
    pub(super) fn write(&self, message: &mut Vec<u8>) {
        message.extend(pack(&self.bits));
        message.extend(self.free.iter().flat_map(|symbol| symbol.to_le_bytes()));
    }

    /// Adds the share of the peer, as it was sent.
    pub(super) fn add(&mut self, peer: Party, message: &[u8]) -> Result<()> {
        let (bits, free) = message.split_at(self.bits.len().div_ceil(8));
        // Bits beyond the last one would be a second way to say the same.
        let used = self.bits.len() % 8;
        if used != 0 && bits.last().is_some_and(|last| last >> used != 0) {
            return Err(Error::Peer { peer, detail: "it opened more bits than are selected".into() });
        }
        self.bits.iter_mut().enumerate().for_each(|(i, bit)| *bit ^= bit_at(bits, i));
        for (symbol, bytes) in self.free.iter_mut().zip(free.chunks_exact(2)) {
            *symbol ^= u16::from_le_bytes([bytes[0], bytes[1]]);
        }
        Ok(())
    }

    /// Calls `tile` with the rows of the opened words, of this party's shares of their MACs, and the number
    /// of lanes.
    pub(super) fn for_each_tile(&self, mut tile: impl FnMut(&[u16], &[u16], usize)) {
        let mut bits = self.bits.iter();
        let message: Vec<u8> =
            self.selection.iter().map(|bit| if *bit == 1 { *bits.next().unwrap_or(&0) } else { 0 }).collect();
        let code = self.code;
        let mut words = Vec::new();
        for part in Tile::all(code, message.len()) {
            words.resize(code.places() * part.lanes, 0);
            part.messages(|i| message[i], message.len(), code, &mut words);
            let free = part.part(&self.free, code.free());
            let known = code.message() * part.lanes;
            words[known..known + free.len()].copy_from_slice(free);
            code.complete_square(&mut words, part.lanes);
            tile(&words, part.part(&self.macs, code.places()), part.lanes);
        }
    }

    /// The selected bits: once the peer's share is added and all is checked.
    pub(super) fn into_bits(self) -> Vec<u8> {
        self.bits
    }
}
