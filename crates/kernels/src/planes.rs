//! Bit planes: the bits of many cells, sorted by their place in a cell. Plane i has bit i of every cell,
//! eight cells a byte (cell j is bit j % 8 of byte j / 8).
//!
//! Here are products of vectors of bits or of elements of small fields, one plane for each coordinate, and
//! the way from cells to planes and back. The fields are GF(4) and GF(16) in the coordinates of
//! `polyclave_field::subfields`: 1 and mu with mu^2 = mu + 1, then 1 and zeta with zeta^2 = zeta + mu, then 1
//! and omega. The coefficient of each of these has the coordinates of the field below.
//!
//! Cost of a product by Karatsuba's identity: 1 AND in GF(2), 3 in GF(4), 9 in GF(16), of as many cells as a
//! register has bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod cells;
mod formulas;
mod maps;
mod portable;
mod rows;
#[cfg(test)]
mod tests;

pub use cells::{join, split};
pub use maps::{PlaneMap, TILE_BYTES, TILE_CELLS};

use crate::isa::Isa;

/// The fields of two factors. The product is in the larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// Two bits.
    Bits,
    /// Two elements of GF(4).
    Gf4,
    /// Two elements of GF(16).
    Gf16,
    /// An element of GF(16) and one of GF(4).
    Gf16ByGf4,
    /// An element of GF(2^8) and one of GF(16).
    Gf256ByGf16,
}

/// Which products of two pairs of shares x0, x1 and y0, y1 are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// x0 (y0 + y1) + x1 y0: what a party of replicated sharing contributes to the product x y.
    Contributed,
    /// x0 y1 + x1 y0.
    Mixed,
    /// x1 y1.
    Second,
}

impl Factors {
    /// All of them.
    pub const ALL: [Factors; 5] =
        [Factors::Bits, Factors::Gf4, Factors::Gf16, Factors::Gf16ByGf4, Factors::Gf256ByGf16];

    /// Planes of the first and the second factor. The product has as many as the first.
    pub const fn planes(self) -> [usize; 2] {
        match self {
            Factors::Bits => [1, 1],
            Factors::Gf4 => [2, 2],
            Factors::Gf16 => [4, 4],
            Factors::Gf16ByGf4 => [4, 2],
            Factors::Gf256ByGf16 => [8, 4],
        }
    }
}

/// Vectors as planes: plane p begins at byte p * `stride`.
#[derive(Clone, Copy)]
pub struct Planes<'a> {
    /// All planes.
    pub bytes: &'a [u8],
    /// From one plane to the next.
    pub stride: usize,
}

/// Adds products to `sum`, the planes of which follow each other without gaps.
///
/// # Panics
/// If `sum` is no number of planes, or a plane of a factor ends outside.
pub fn add_products(factors: Factors, terms: Terms, sum: &mut [u8], x: [Planes<'_>; 2], y: [Planes<'_>; 2]) {
    let [of_x, of_y] = factors.planes();
    assert!(sum.len().is_multiple_of(of_x), "a sum is made of planes");
    let len = sum.len() / of_x;
    let fits = |planes: &Planes<'_>, count| (count - 1) * planes.stride + len <= planes.bytes.len();
    assert!(
        x.iter().all(|x| fits(x, of_x)) && y.iter().all(|y| fits(y, of_y)),
        "planes are within the factors"
    );
    add_products_with(Isa::best(), factors, terms, sum, [x, y]);
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn add_products_with(
    isa: Isa,
    factors: Factors,
    terms: Terms,
    sum: &mut [u8],
    [x, y]: [[Planes<'_>; 2]; 2],
) {
    match isa {
        Isa::Portable => portable::add_products(factors, terms, sum, x, y),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::add_products(factors, terms, sum, x, y) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Gfni => unsafe { avx512::add_products(factors, terms, sum, x, y) },
    }
}
