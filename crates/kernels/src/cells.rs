//! Conversion of cells (bytes) to elements of a larger field (words) and back, in rows: both directions are
//! GF(2)-linear maps.
//!
//! Portable words add masked images, or take parities. With registers of 32 bytes, 32 cells are looked up in
//! tables of nibbles, a byte of the image a table, and transposed into words; the other way the same
//! backwards. All cells and elements are taken to be secret, the maps are public: look-ups are register
//! shuffles.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod inner_product;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vclmul;

use zeroize::Zeroize;

use crate::isa::Isa;
use crate::secret::mask;

/// For a byte of words and each of the nibbles of a byte, lower first, what every nibble contributes.
type Tables<const BYTES: usize> = [[[u8; 16]; 2]; BYTES];

/// A linear map from bytes to words of which only the lowest `BYTES` bytes are used.
#[derive(Clone, Debug)]
pub struct Embedding<const BYTES: usize> {
    images: [u128; 8],
    tables: Tables<BYTES>,
}

impl<const BYTES: usize> Embedding<BYTES> {
    /// The map that sends bit i to `images[i]`.
    pub const fn new(images: [u128; 8]) -> Embedding<BYTES> {
        let mut embedding = Embedding { images: [0; 8], tables: [[[0; 16]; 2]; BYTES] };
        embedding.set(&images);
        embedding
    }

    /// Makes it the map that sends bit i to `images[i]`, where it lies: a secret map leaves no copy
    /// elsewhere.
    pub const fn set(&mut self, images: &[u128; 8]) {
        self.images = *images;
        let mut place = 0;
        while place < BYTES * 2 * 16 * 4 {
            let (byte, nibble, value, bit) = (place / 128, place / 64 % 2, place / 4 % 16, place % 4);
            let entry = &mut self.tables[byte][nibble][value];
            if bit == 0 {
                *entry = 0;
            }
            if value >> bit & 1 == 1 {
                *entry ^= (images[4 * nibble + bit] >> (8 * byte)) as u8;
            }
            place += 1;
        }
    }

    /// The image of one cell.
    #[inline]
    pub fn word(&self, cell: u8) -> u128 {
        self.images.iter().enumerate().fold(0, |sum, (i, image)| sum ^ image & mask(u128::from(cell >> i)))
    }
}

impl<const BYTES: usize> Zeroize for Embedding<BYTES> {
    fn zeroize(&mut self) {
        self.images.zeroize();
        self.tables.zeroize();
    }
}

impl<const BYTES: usize> Embedding<BYTES> {
    /// Sets `dst[i]` to the image of `cells[i]`.
    ///
    /// # Panics
    /// When the lengths differ or images do not fit.
    pub fn words64(&self, dst: &mut [u64], cells: &[u8]) {
        const { assert!(BYTES <= 8, "images fit into words") };
        assert_eq!(dst.len(), cells.len(), "rows of one length");
        self.words64_with(Isa::best(), dst, cells);
    }

    /// Assumes that the processor has `isa` and that lengths were checked.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn words64_with(&self, isa: Isa, dst: &mut [u64], cells: &[u8]) {
        match isa {
            Isa::Portable => portable::embed64(&self.images, dst, cells),
            // SAFETY: these variants exist only where AVX2 was detected, or AVX-512, which includes it.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Gfni => unsafe { avx2::embed64(&self.tables, dst, cells) },
        }
    }
}

impl Embedding<16> {
    /// As [`Embedding::words64`].
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn words128(&self, dst: &mut [u128], cells: &[u8]) {
        assert_eq!(dst.len(), cells.len(), "rows of one length");
        self.words128_with(Isa::best(), dst, cells);
    }

    /// As [`Embedding::words64_with`].
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn words128_with(&self, isa: Isa, dst: &mut [u128], cells: &[u8]) {
        match isa {
            Isa::Portable => portable::embed128(&self.images, dst, cells),
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Gfni => unsafe { avx2::embed128(&self.tables, dst, cells) },
        }
    }
}

/// A linear map from words, of which only the lowest `BYTES` bytes count, to bytes.
#[derive(Clone, Debug)]
pub struct Projection<const BYTES: usize> {
    masks: [u128; 8],
    tables: Tables<BYTES>,
}

impl<const BYTES: usize> Projection<BYTES> {
    /// The map whose bit i is the parity of a word under `masks[i]`.
    pub const fn new(masks: [u128; 8]) -> Projection<BYTES> {
        let (mut tables, mut place) = ([[[0; 16]; 2]; BYTES], 0);
        while place < BYTES * 2 * 16 * 8 {
            let (byte, nibble, value, bit) = (place / 256, place / 128 % 2, place / 8 % 16, place % 8);
            let common = masks[bit] >> (8 * byte + 4 * nibble) & value as u128;
            tables[byte][nibble][value] |= (common.count_ones() as u8 & 1) << bit;
            place += 1;
        }
        Projection { masks, tables }
    }

    /// The image of one word.
    #[inline]
    pub const fn cell(&self, word: u128) -> u8 {
        let (mut cell, mut i) = (0, 0);
        while i < 8 {
            cell |= ((word & self.masks[i]).count_ones() as u8 & 1) << i;
            i += 1;
        }
        cell
    }

    /// Sets `dst[i]` to the image of `src[i]`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn cells64(&self, dst: &mut [u8], src: &[u64]) {
        const { assert!(BYTES <= 8, "what counts is in the words") };
        assert_eq!(dst.len(), src.len(), "rows of one length");
        self.cells64_with(Isa::best(), dst, src);
    }

    /// Assumes that the processor has `isa` and that lengths were checked.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn cells64_with(&self, isa: Isa, dst: &mut [u8], src: &[u64]) {
        match isa {
            Isa::Portable => portable::project64(&self.masks, dst, src),
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Gfni => unsafe { avx2::project64(&self.tables, dst, src) },
        }
    }
}

impl Projection<16> {
    /// As [`Projection::cells64`].
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn cells128(&self, dst: &mut [u8], src: &[u128]) {
        assert_eq!(dst.len(), src.len(), "rows of one length");
        self.cells128_with(Isa::best(), dst, src);
    }

    /// As [`Projection::cells64_with`].
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn cells128_with(&self, isa: Isa, dst: &mut [u8], src: &[u128]) {
        match isa {
            Isa::Portable => portable::project128(&self.masks, dst, src),
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Gfni => unsafe { avx2::project128(&self.tables, dst, src) },
        }
    }
}
