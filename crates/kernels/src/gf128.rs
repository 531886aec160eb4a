//! Products in GF(2^128) as GCM writes it (NIST SP 800-38D, section 6.3), in rows of elements of 16 bytes.
//!
//! Read as a big-endian number, bit 127 - i of an element is the coefficient of x^i. The carry-less product
//! of two such numbers, shifted left by one, has the coefficients 0 .. 127 of the product in its upper half,
//! and the lower half times x^128 = 1 + x + x^2 + x^7 is what reduction adds to it (Gueron and Kounavis 2010,
//! "Intel carry-less multiplication instruction and its usage for computing the GCM mode"). Sums of products
//! are reduced once.
//!
//! Portable words multiply integers with holes; x86-64 has an instruction, for one pair of words a register
//! or for two. All bytes are taken to be secret. Cost: one pass over the operands, with four multiplications
//! of words an element.

#[cfg(target_arch = "x86_64")]
mod clmul;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vclmul;

use crate::isa::ClmulIsa;

/// Bytes of an element.
const BYTES: usize = 16;

/// Sets `dst[i] = a[i] * b[i]`, element by element.
///
/// # Panics
/// When the lengths differ or are no whole elements.
pub fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    assert!(dst.len().is_multiple_of(BYTES), "a part of an element");
    assert_eq!(a.len(), dst.len(), "factors of another length than the product");
    assert_eq!(b.len(), dst.len(), "factors of another length than the product");
    multiply_with(ClmulIsa::best(), dst, a, b);
}

/// Adds `constant * src[i]` to `dst[i]`, element by element.
///
/// # Panics
/// When the lengths differ or are no whole elements.
pub fn scale_add(dst: &mut [u8], src: &[u8], constant: &[u8; BYTES]) {
    assert!(dst.len().is_multiple_of(BYTES), "a part of an element");
    assert_eq!(src.len(), dst.len(), "a term of another length than the sum");
    scale_add_with(ClmulIsa::best(), dst, src, constant);
}

/// Sets `dst[i]` to the sum of `weights[i * n + j] * elements[j]` over all n elements.
///
/// # Panics
/// When there are not n weights for every element of `dst`, or no whole elements.
pub fn weighted_sums(dst: &mut [u8], weights: &[u8], elements: &[u8]) {
    assert!(dst.len().is_multiple_of(BYTES) && elements.len().is_multiple_of(BYTES), "a part of an element");
    assert_eq!(weights.len(), dst.len() / BYTES * elements.len(), "as many weights as make whole sums");
    weighted_sums_with(ClmulIsa::best(), dst, weights, elements);
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn multiply_with(isa: ClmulIsa, dst: &mut [u8], a: &[u8], b: &[u8]) {
    match isa {
        ClmulIsa::Portable => portable::multiply(dst, a, b),
        // SAFETY: these variants exist only where their instructions were detected, those of `clmul` with
        // all.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { clmul::multiply(dst, a, b) },
    }
}

/// As [`multiply_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn scale_add_with(isa: ClmulIsa, dst: &mut [u8], src: &[u8], constant: &[u8; BYTES]) {
    match isa {
        ClmulIsa::Portable => portable::scale_add(dst, src, constant),
        // SAFETY: these variants exist only where their instructions were detected, those of `clmul` with
        // all.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { clmul::scale_add(dst, src, constant) },
    }
}

/// As [`multiply_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn weighted_sums_with(isa: ClmulIsa, dst: &mut [u8], weights: &[u8], elements: &[u8]) {
    if elements.is_empty() {
        return dst.fill(0);
    }
    match isa {
        ClmulIsa::Portable => portable::weighted_sums(dst, weights, elements),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { clmul::weighted_sums(dst, weights, elements) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 | ClmulIsa::Vclmul512 => unsafe { vclmul::weighted_sums(dst, weights, elements) },
    }
}
