//! Rows of words of 64 bits, elements of a field of characteristic two (see [`Modulus`]): products and sums
//! of products.
//!
//! Portable words multiply integers with holes; x86-64 has an instruction, for one, two or four pairs of
//! words a register. All elements are taken to be secret, the factors and the constant of [`combine`] are
//! public. Words must have no bits beyond the field. Cost: a multiplication of words a product, and shifts
//! for a reduction an element or a sum.

pub mod parts;
mod portable;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(test)]
mod tests;

use crate::isa::ClmulIsa;
use crate::words::{Modulus, check};

/// The product of two elements.
pub fn product<M: Modulus>(a: u64, b: u64) -> u64 {
    inner_product::<M>(&[a], &[b])
}

/// Sets `dst[i] = a[i] * b[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn multiply<M: Modulus>(dst: &mut [u64], a: &[u64], b: &[u64]) {
    assert!(a.len() == dst.len() && b.len() == dst.len(), "rows of one length");
    multiply_with::<M>(ClmulIsa::best(), dst, a, b);
}

/// Sets `dst[i]` to `constant` and the sum of `factor * src[i]` over the terms. A factor of one costs an XOR.
///
/// # Panics
/// When the lengths differ.
pub fn combine<M: Modulus>(dst: &mut [u64], terms: &[(&[u64], u64)], constant: u64) {
    assert!(terms.iter().all(|(src, _)| src.len() == dst.len()), "rows of one length");
    combine_with::<M>(ClmulIsa::best(), dst, terms, constant);
}

/// The sum of `a[i] * b[i]`.
///
/// # Panics
/// When the lengths differ.
pub fn inner_product<M: Modulus>(a: &[u64], b: &[u64]) -> u64 {
    reduce::<M>(inner_product_unreduced(a, b))
}

/// The sum of the products of polynomials `a[i]` and `b[i]`, for [`reduce`]: so a sum can be made of parts.
///
/// # Panics
/// When the lengths differ.
pub fn inner_product_unreduced(a: &[u64], b: &[u64]) -> u128 {
    assert_eq!(a.len(), b.len(), "rows of one length");
    inner_product_with(ClmulIsa::best(), a, b)
}

/// A sum of products of elements, as an element.
pub fn reduce<M: Modulus>(sum: u128) -> u64 {
    portable::reduce::<M>(sum)
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn multiply_with<M: Modulus>(isa: ClmulIsa, dst: &mut [u64], a: &[u64], b: &[u64]) {
    const { check::<M>(u64::BITS) };
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
    dst: &mut [u64],
    terms: &[(&[u64], u64)],
    constant: u64,
) {
    const { check::<M>(u64::BITS) };
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
pub(crate) fn inner_product_with(isa: ClmulIsa, a: &[u64], b: &[u64]) -> u128 {
    match isa {
        ClmulIsa::Portable => portable::inner_product(a, b),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::inner_product(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::inner_product(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::inner_product(a, b) },
    }
}
