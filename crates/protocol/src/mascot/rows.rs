//! Operations on rows of elements, for the loops over thousands of transfers.

use polyclave_field::{MacField, Word};
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use crate::Result;
use crate::interface::session::random_bytes;

/// Secret elements, wiped on drop.
pub(super) type Row<F> = Zeroizing<Vec<<F as MacField>::Word>>;

/// A row of zeros.
pub(super) fn zeros<F: MacField>(len: usize) -> Row<F> {
    Zeroizing::new(vec![F::Word::ZERO; len])
}

/// An element this many times. (`vec!` would look first whether it is zero.)
pub(super) fn repeated<F: MacField>(element: F::Word, len: usize) -> Row<F> {
    let mut row = zeros::<F>(len);
    row.fill(element);
    row
}

/// Elements and a uniform one after them.
pub(super) fn with_mask<F: MacField>(values: &[F::Word]) -> Result<Row<F>> {
    let mut bytes = Zeroizing::new(vec![0; F::BYTES]);
    random_bytes(&mut bytes)?;
    let mut masked = zeros::<F>(values.len() + 1);
    masked[..values.len()].copy_from_slice(values);
    F::read_row(&bytes, &mut masked[values.len()..]);
    Ok(masked)
}

/// Adds a row to another.
pub(super) fn add<F: MacField>(sum: &mut [F::Word], row: &[F::Word]) {
    assert_eq!(sum.len(), row.len(), "rows of one length");
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum ^= *x);
}

/// Adds bytes to others.
pub(super) fn add_bytes(sum: &mut [u8], bytes: &[u8]) {
    assert_eq!(sum.len(), bytes.len(), "rows of one length");
    sum.iter_mut().zip(bytes).for_each(|(sum, x)| *sum ^= *x);
}

/// The element in the lowest bits of a block.
pub(super) fn low<F: MacField>(block: u128) -> F::Word {
    F::truncate(F::Word::from_bytes(&block.to_le_bytes()[..size_of::<F::Word>()]))
}

/// An element as the lowest bits of a block.
pub(super) fn wide<F: MacField>(element: F::Word) -> u128 {
    let mut bytes = Zeroizing::new([0; 16]);
    element.write_to(&mut bytes[..F::BYTES]);
    u128::from_le_bytes(*bytes)
}

/// An element as it comes over the wire or from a stream; bits beyond the field are dropped.
#[inline]
pub(super) fn read<F: MacField>(bytes: &[u8]) -> F::Word {
    F::truncate(F::Word::from_bytes(bytes))
}

/// Sums of `X^i row_i`, from the highest i down (Horner's rule): the inner product with the "gadget" vector g
/// of the paper.
pub(super) struct Gadget<F: MacField> {
    /// X^k, reduced.
    overflow: F::Word,
}

impl<F: MacField> Gadget<F> {
    pub(super) fn new() -> Self {
        Gadget { overflow: F::multiply(F::Word::ONE.shift_left(F::BITS - 1), F::Word::ONE.shift_left(1)) }
    }

    /// One step: the sums so far times X, plus the next row.
    pub(super) fn add_row(&self, sums: &mut [F::Word], row: &[F::Word]) {
        assert_eq!(sums.len(), row.len(), "rows of one length");
        let mut carries = Zeroizing::new([F::Word::ZERO; AT_ONCE]);
        for (sums, row) in sums.chunks_mut(AT_ONCE).zip(row.chunks(AT_ONCE)) {
            let carries = &mut carries[..sums.len()];
            masks(carries, |i| sums[i].shift_right(F::BITS - 1));
            for ((sum, carry), next) in sums.iter_mut().zip(carries.iter()).zip(row) {
                *sum = F::truncate(sum.shift_left(1)) ^ self.overflow.and(*carry) ^ *next;
            }
        }
    }
}

/// Elements of a row whose carries are on the stack together.
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128};

    use super::*;

    fn gadget_sums_are_bit_decompositions<F: MacField>() {
        let gadget = Gadget::<F>::new();
        let x = F::truncate(F::Word::from_bytes(&[0x9d; 16][..size_of::<F::Word>()]));
        let factor = F::truncate(F::Word::from_bytes(&[0xe3; 16][..size_of::<F::Word>()]));
        let term = |i: u32| factor.and(x.shift_right(i).spread());
        let mut sums = [F::Word::ZERO; AT_ONCE + 7];
        (0..F::BITS).rev().for_each(|i| gadget.add_row(&mut sums, &[term(i); AT_ONCE + 7]));
        assert_eq!(sums, [F::multiply(x, factor); AT_ONCE + 7], "{}", F::NAME);
    }

    #[test]
    fn the_gadget_sum_of_bits_times_a_factor_is_the_product() {
        gadget_sums_are_bit_decompositions::<Gf2_40>();
        gadget_sums_are_bit_decompositions::<Gf2_42>();
        gadget_sums_are_bit_decompositions::<Gf2_64>();
        gadget_sums_are_bit_decompositions::<Gf2_128>();
    }
}
