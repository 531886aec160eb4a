//! Rows of elements as polynomials in four variables, of degree one in each. The sixteen parts of a row are
//! the values of these polynomials where each variable is 0 or 1; the four bits of a part's number say where,
//! the highest one the first variable. A polynomial also has a value where a variable is infinite: that is
//! the coefficient of the variable, the sum of the values at 0 and 1.

#[cfg(target_arch = "x86_64")]
use super::simd;
use super::{check, portable};
use crate::Modulus;
use crate::isa::ClmulIsa;

/// Parts of a row.
pub const PARTS: usize = 16;
/// Places where each variable is 0, 1 or infinite.
pub const PLACES: usize = 81;

/// For each place the sum of the products of all polynomials of `u` and `w`, for [`super::reduce`]. The
/// number of a place has a digit of base three for each variable, the first one highest: 0, 1, or 2 where it
/// is infinite.
///
/// # Panics
/// When the lengths differ, or are no multiple of [`PARTS`].
pub fn products(u: &[u64], w: &[u64]) -> [u128; PLACES] {
    assert!(u.len() == w.len() && u.len().is_multiple_of(PARTS), "rows of one length, in sixteen parts");
    products_with(ClmulIsa::best(), u, w)
}

/// Overwrites the first part by itself and the sum of `factors[i]` times its difference to part `i + 1`. The
/// factors are public.
///
/// # Panics
/// When the length is no multiple of [`PARTS`].
pub fn fold<M: Modulus>(row: &mut [u64], factors: [u64; PARTS - 1]) {
    assert!(row.len().is_multiple_of(PARTS), "a row in sixteen parts");
    fold_with::<M>(ClmulIsa::best(), row, factors);
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn products_with(isa: ClmulIsa, u: &[u64], w: &[u64]) -> [u128; PLACES] {
    match isa {
        ClmulIsa::Portable => portable::products_of_parts(u, w),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::products_of_parts(u, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::products_of_parts(u, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::products_of_parts(u, w) },
    }
}

/// As [`products_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn fold_with<M: Modulus>(isa: ClmulIsa, row: &mut [u64], factors: [u64; PARTS - 1]) {
    const { check::<M>(u64::BITS) };
    match isa {
        ClmulIsa::Portable => portable::fold_parts::<M>(row, factors),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Clmul => unsafe { simd::xmm::fold_parts::<M>(row, factors) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul256 => unsafe { simd::ymm::fold_parts::<M>(row, factors) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        ClmulIsa::Vclmul512 => unsafe { simd::zmm::fold_parts::<M>(row, factors) },
    }
}
