//! Rows of words of 128 bits, elements of GF(2^128) in the order of numbers (see [`Modulus`]): products and
//! sums of products.
//!
//! As [`crate::words64`]; [`crate::gf128`] is for the order of GCM, in bytes. All elements are taken to be
//! secret, the factors and the constant of [`combine`] are public. Cost: three multiplications of words a
//! product, and two for a reduction an element or a sum.

mod portable;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(test)]
mod tests;

use crate::isa::ClmulIsa;
use crate::words::{Modulus, check};

/// The product of two elements.
pub fn product<M: Modulus>(a: u128, b: u128) -> u128 {
    inner_product::<M>(&[a], &[b])
}

/// Sets `dst[i] = a[i] * b[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn multiply<M: Modulus>(dst: &mut [u128], a: &[u128], b: &[u128]) {
    assert!(a.len() == dst.len() && b.len() == dst.len(), "rows of one length");
    multiply_with::<M>(ClmulIsa::best(), dst, a, b);
}

/// Sets `dst[i]` to `constant` and the sum of `factor * src[i]` over the terms. A factor of one costs an XOR.
///
/// # Panics
/// When the lengths differ.
pub fn combine<M: Modulus>(dst: &mut [u128], terms: &[(&[u128], u128)], constant: u128) {
    assert!(terms.iter().all(|(src, _)| src.len() == dst.len()), "rows of one length");
    combine_with::<M>(ClmulIsa::best(), dst, terms, constant);
}

/// The sum of `a[i] * b[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn inner_product<M: Modulus>(a: &[u128], b: &[u128]) -> u128 {
    assert_eq!(a.len(), b.len(), "rows of one length");
    inner_product_with::<M>(ClmulIsa::best(), a, b)
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn multiply_with<M: Modulus>(isa: ClmulIsa, dst: &mut [u128], a: &[u128], b: &[u128]) {
    const { check::<M>(u128::BITS) };
    match isa {
        ClmulIsa::Portable => portable::multiply::<M>(dst, a, b),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::multiply::<M>(dst, a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::multiply::<M>(dst, a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::multiply::<M>(dst, a, b) },
    }
}

/// As [`multiply_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn combine_with<M: Modulus>(
    isa: ClmulIsa,
    dst: &mut [u128],
    terms: &[(&[u128], u128)],
    constant: u128,
) {
    const { check::<M>(u128::BITS) };
    match isa {
        ClmulIsa::Portable => portable::combine::<M>(dst, terms, constant),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::combine::<M>(dst, terms, constant) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::combine::<M>(dst, terms, constant) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::combine::<M>(dst, terms, constant) },
    }
}

/// As [`multiply_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn inner_product_with<M: Modulus>(isa: ClmulIsa, a: &[u128], b: &[u128]) -> u128 {
    const { check::<M>(u128::BITS) };
    match isa {
        ClmulIsa::Portable => portable::inner_product::<M>(a, b),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::inner_product::<M>(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::inner_product::<M>(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::inner_product::<M>(a, b) },
    }
}
