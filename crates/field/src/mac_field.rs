//! Binary fields large enough for message authentication codes: GF(2^40), GF(2^42), GF(2^64), GF(2^128).
//!
//! An element is a word, bit i the coefficient of X^i, and addition is XOR; the field is a type that says how
//! words multiply. Each field contains the field that cells live in: GF(2^8) of AES, or GF(2^6) for GF(2^42).
//! `embed` is the homomorphism into it, and `project` a map back that is linear over it, so that `project` of
//! a sum of shares of an embedded cell is the cell, and a share of a cell can be kept and sent as `project`
//! of itself (Keller et al. 2017, section 5, "Packing Optimization").

use std::fmt::Debug;
use std::ops::{BitXor, BitXorAssign};

use polyclave_kernels::secret::{Number, mask};
use zeroize::DefaultIsZeroes;

/// What an element is kept in.
pub trait Word:
    Copy
    + Debug
    + Default
    + Eq
    + Send
    + Sync
    + DefaultIsZeroes
    + BitXor<Output = Self>
    + BitXorAssign
    + polyclave_kernels::unit_sums::Entry
    + Number
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The word of this many bytes, at most its own, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Writes the lowest bytes, little-endian, as many as there is room for.
    fn write_to(self, bytes: &mut [u8]);

    /// The lowest bit in all places: all ones or zero, of which the compiler knows nothing
    /// ([`polyclave_kernels::secret`]).
    fn spread(self) -> Self;

    /// Both have a bit.
    fn and(self, other: Self) -> Self;

    /// Multiplied by X^by, without reduction.
    fn shift_left(self, by: u32) -> Self;

    /// Divided by X^by, what remains dropped.
    fn shift_right(self, by: u32) -> Self;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            const ZERO: $word = 0;
            const ONE: $word = 1;

            #[inline]
            fn from_bytes(bytes: &[u8]) -> $word {
                let mut all = [0; size_of::<$word>()];
                all[..bytes.len()].copy_from_slice(bytes);
                <$word>::from_le_bytes(all)
            }

            #[inline]
            fn write_to(self, bytes: &mut [u8]) {
                let len = bytes.len();
                bytes.copy_from_slice(&self.to_le_bytes()[..len]);
            }

            #[inline]
            fn spread(self) -> $word {
                mask(self)
            }

            #[inline]
            fn and(self, other: $word) -> $word {
                self & other
            }

            #[inline]
            fn shift_left(self, by: u32) -> $word {
                self << by
            }

            #[inline]
            fn shift_right(self, by: u32) -> $word {
                self >> by
            }
        }
    };
}

word!(u64);
word!(u128);

/// A field of 2^[`BITS`](MacField::BITS) elements. Everything here takes constant time, whatever the elements
/// are, but for the factors of [`combine`](MacField::combine). Rows go through `polyclave_kernels`.
///
/// Words given to these functions have no bits at or above `BITS`, and cells none at or above `CELL_BITS`;
/// results neither.
pub trait MacField: Copy + Send + Sync + 'static {
    /// What an element is kept in.
    type Word: Word;
    /// `GF(2^40)`.
    const NAME: &'static str;
    /// The degree k over GF(2).
    const BITS: u32;
    /// Bytes of an element on the wire.
    const BYTES: usize = Self::BITS.div_ceil(8) as usize;
    /// Degree over GF(2) of the field of cells.
    const CELL_BITS: u8;

    /// The product.
    fn multiply(a: Self::Word, b: Self::Word) -> Self::Word;

    /// The element that a cell stands for: sums and products of images are images of sums and products.
    fn embed(cell: u8) -> Self::Word;

    /// Linear over the field of cells, with `project(embed(c)) = c`.
    fn project(x: Self::Word) -> u8;

    /// `dst[i] = a[i] b[i]`.
    ///
    /// # Panics
    /// If lengths differ; so all below.
    fn multiply_rows(dst: &mut [Self::Word], a: &[Self::Word], b: &[Self::Word]);

    /// `dst[i] = constant + sum over the terms of factor * src[i]`. Factors are public: one costs less than
    /// others.
    fn combine(dst: &mut [Self::Word], terms: &[(&[Self::Word], Self::Word)], constant: Self::Word);

    /// The sum of `a[i] b[i]`.
    fn inner_product(a: &[Self::Word], b: &[Self::Word]) -> Self::Word;

    /// The sum of `weights[i] embed(cells[i])`.
    fn embedded_inner_product(weights: &[Self::Word], cells: &[u8]) -> Self::Word;

    /// `dst[i] = embed(cells[i])`.
    fn embed_row(dst: &mut [Self::Word], cells: &[u8]);

    /// `dst[i] = project(src[i])`.
    fn project_row(dst: &mut [u8], src: &[Self::Word]);

    /// A word with its bits at or above `BITS` dropped.
    fn truncate(word: Self::Word) -> Self::Word;

    /// Writes elements of `BYTES` bytes each.
    fn write_row(elements: &[Self::Word], bytes: &mut [u8]) {
        assert_eq!(bytes.len(), elements.len() * Self::BYTES, "as many bytes as the elements take");
        // Whole words, the next of which writes over what is none of the element's, as long as there is room.
        let (roomy, last) = elements.split_at(elements.len().saturating_sub(crowded::<Self>()));
        for (i, element) in roomy.iter().enumerate() {
            element.write_to(&mut bytes[i * Self::BYTES..][..size_of::<Self::Word>()]);
        }
        for (bytes, element) in bytes[roomy.len() * Self::BYTES..].chunks_exact_mut(Self::BYTES).zip(last) {
            element.write_to(bytes);
        }
    }

    /// Reads elements of `BYTES` bytes each; bits beyond the field are dropped.
    fn read_row(bytes: &[u8], elements: &mut [Self::Word]) {
        assert_eq!(bytes.len(), elements.len() * Self::BYTES, "as many bytes as the elements take");
        let (roomy, last) = elements.split_at_mut(elements.len().saturating_sub(crowded::<Self>()));
        for (i, element) in roomy.iter_mut().enumerate() {
            *element =
                Self::truncate(Self::Word::from_bytes(&bytes[i * Self::BYTES..][..size_of::<Self::Word>()]));
        }
        for (bytes, element) in bytes[roomy.len() * Self::BYTES..].chunks_exact(Self::BYTES).zip(last) {
            *element = Self::truncate(Self::Word::from_bytes(bytes));
        }
    }
}

/// How many elements at the end of a row of bytes are nearer to it than a word is long.
const fn crowded<F: MacField>() -> usize {
    size_of::<F::Word>().div_ceil(F::BYTES) - 1
}

#[cfg(test)]
mod tests;
