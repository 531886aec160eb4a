//! The conversions by adding up masked images, and by parities.

use crate::secret::mask;

macro_rules! maps {
    ($word:ty, $embed:ident, $project:ident) => {
        /// See [`super::Embedding`]; lengths were checked there.
        pub(super) fn $embed(images: &[u128; 8], dst: &mut [$word], cells: &[u8]) {
            let images = images.map(|image| image as $word);
            for (word, cell) in dst.iter_mut().zip(cells) {
                let cell = <$word>::from(*cell);
                let image = |i: usize| images[i] & mask(cell >> i);
                *word = (0..8).fold(0, |sum, i| sum ^ image(i));
            }
        }

        /// See [`super::Projection`]; lengths were checked there.
        pub(super) fn $project(masks: &[u128; 8], dst: &mut [u8], src: &[$word]) {
            let masks = masks.map(|mask| mask as $word);
            for (cell, word) in dst.iter_mut().zip(src) {
                let bit = |i: usize| ((word & masks[i]).count_ones() as u8 & 1) << i;
                *cell = (0..8).fold(0, |cell, i| cell | bit(i));
            }
        }
    };
}

maps!(u64, embed64, project64);
maps!(u128, embed128, project128);
