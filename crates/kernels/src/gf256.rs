//! Products in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1, byte by byte.
//!
//! Portable words multiply bit by bit; AVX2 works in the tower GF((2^4)^2) with logarithms in registers;
//! AVX-512 with GFNI has the product as one instruction, in this very field. All bytes are taken to be
//! secret. Cost: one pass over the operands.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod tower;

use crate::isa::Isa;

/// Sets `dst[i] = a[i] * b[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    assert_eq!(a.len(), dst.len(), "a factor of another length than the product");
    assert_eq!(b.len(), dst.len(), "a factor of another length than the product");
    multiply_with(Isa::best(), dst, a, b);
}

/// Assumes that the processor has `isa` and that all lengths are equal.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn multiply_with(isa: Isa, dst: &mut [u8], a: &[u8], b: &[u8]) {
    match isa {
        Isa::Portable => portable::multiply(dst, a, b),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::multiply(dst, a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Gfni => unsafe { avx512::multiply(dst, a, b) },
    }
}
