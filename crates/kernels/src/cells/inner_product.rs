//! Sums of products of words and embedded cells. With registers of 32 bytes, images are multiplied in the
//! registers where they are made. Otherwise they lie on the stack in between, some at a time, and are wiped.

use zeroize::Zeroize;

use super::Embedding;
use crate::isa::ClmulIsa;
use crate::{Modulus, words64, words128};

/// Images that lie on the stack, in the nearest cache.
const PIECE: usize = 128;

impl<const BYTES: usize> Embedding<BYTES> {
    /// The sum of `weights[i]` times the image of `cells[i]`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn inner_product64<M: Modulus>(&self, weights: &[u64], cells: &[u8]) -> u64 {
        const { assert!(BYTES <= 8, "images fit into words") };
        assert_eq!(weights.len(), cells.len(), "rows of one length");
        words64::reduce::<M>(self.inner_product64_with(ClmulIsa::best(), weights, cells))
    }

    /// Not reduced. Assumes that the processor has `isa` and that lengths were checked.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn inner_product64_with(&self, isa: ClmulIsa, weights: &[u64], cells: &[u8]) -> u128 {
        match isa {
            // SAFETY: these variants exist only where their instructions were detected.
            #[cfg(target_arch = "x86_64")]
            ClmulIsa::Vclmul256 | ClmulIsa::Vclmul512 => unsafe {
                super::vclmul::inner_product64(&self.tables, weights, cells)
            },
            _ => {
                let (mut images, mut sum) = ([0; PIECE], 0);
                for (weights, cells) in weights.chunks(PIECE).zip(cells.chunks(PIECE)) {
                    let images = &mut images[..cells.len()];
                    self.words64(images, cells);
                    sum ^= words64::inner_product_unreduced(weights, images);
                }
                images[..cells.len().min(PIECE)].zeroize();
                sum
            }
        }
    }
}

impl Embedding<16> {
    /// As [`Embedding::inner_product64`].
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn inner_product128<M: Modulus>(&self, weights: &[u128], cells: &[u8]) -> u128 {
        assert_eq!(weights.len(), cells.len(), "rows of one length");
        let (mut images, mut sum) = ([0; PIECE], 0);
        for (weights, cells) in weights.chunks(PIECE).zip(cells.chunks(PIECE)) {
            let images = &mut images[..cells.len()];
            self.words128(images, cells);
            sum ^= words128::inner_product::<M>(weights, images);
        }
        images[..cells.len().min(PIECE)].zeroize();
        sum
    }
}
