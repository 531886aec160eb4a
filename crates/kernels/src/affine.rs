//! XOR-sums of GF(2)-linear maps of byte vectors: the linear layers of every cipher, on shares.
//!
//! A map is an 8x8 bit matrix. Portable words add the image of each bit under a mask; AVX2 looks both
//! nibbles up in sixteen-byte tables held in registers (the split tables of Plank, Greenan and Miller,
//! FAST 2013); AVX-512 with GFNI has the map as one instruction.
//!
//! Assumes that maps are public: whether a map is the identity decides a branch. The bytes mapped are
//! taken to be secret. Cost: one pass over each source and one over the destination; a term costs seven
//! vector instructions per 32 bytes with AVX2, two per 64 bytes with AVX-512, and one where its map is
//! the identity.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(test)]
mod tests;

use core::hint::black_box;

use crate::isa::Isa;

const IDENTITY: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A GF(2)-linear map on bytes: an 8x8 bit matrix, prepared for every kernel.
#[derive(Clone)]
#[repr(align(64))]
pub struct Map {
    #[cfg(target_arch = "x86_64")]
    nibbles: avx2::Nibbles,
    #[cfg(target_arch = "x86_64")]
    matrix: u64,
    columns: [u8; 8],
    is_identity: bool,
}

impl Map {
    /// The map with `columns[i]` the image of the byte `1 << i`.
    pub const fn new(columns: [u8; 8]) -> Map {
        Map {
            #[cfg(target_arch = "x86_64")]
            nibbles: avx2::Nibbles::new(columns),
            #[cfg(target_arch = "x86_64")]
            matrix: avx512::matrix(columns),
            columns,
            is_identity: u64::from_le_bytes(columns) == u64::from_le_bytes(IDENTITY),
        }
    }

    /// The map that leaves every byte as it is.
    pub const fn identity() -> Map {
        Map::new(IDENTITY)
    }

    /// Whether this is the identity.
    pub const fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// The images of the eight bytes with a single bit, lowest bit first.
    pub const fn columns(&self) -> [u8; 8] {
        self.columns
    }

    /// The image of `x`, in time independent of it.
    pub fn apply(&self, x: u8) -> u8 {
        // With a single byte the compiler would see that every factor is a single bit, and branch on it. So
        // it is told that all eight bytes of the word count, going in and coming out.
        let word = black_box(u64::from(x));
        black_box(portable::image(&self.columns, word)) as u8
    }
}

/// One summand of [`combine`]: the image of every byte of `src` under `map`.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    /// The bytes mapped.
    pub src: &'a [u8],
    /// The map.
    pub map: &'a Map,
}

/// Sets `dst[i] = constant ^ XOR_k map_k(src_k[i])`.
///
/// # Panics
/// When a source has another length than `dst`.
pub fn combine(dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    for term in terms {
        assert_eq!(term.src.len(), dst.len(), "a source of another length than the destination");
    }
    combine_with(Isa::best(), dst, terms, constant);
}

/// [`combine`] with all operands in one arena: the destination is `arena[dst..dst + len]`, the source of
/// `(start, map)` is `arena[start..start + len]`.
///
/// # Panics
/// When a range leaves the arena or a source overlaps the destination.
pub fn combine_within(arena: &mut [u8], dst: usize, len: usize, terms: &[(usize, &Map)], constant: u8) {
    // A combination of usual size finds its terms on the stack rather than in an allocation.
    const FEW: usize = 8;
    const UNUSED: &Map = &Map::identity();

    assert!(dst <= arena.len() && len <= arena.len() - dst, "the destination leaves the arena");
    let (left, rest) = arena.split_at_mut(dst);
    let (target, right) = rest.split_at_mut(len);
    let (left, right) = (&*left, &*right);
    let term = |&(start, map): &(usize, _)| {
        let (side, offset) = if start < dst { (left, start) } else { (right, start.wrapping_sub(dst + len)) };
        let src = side.get(offset..).and_then(|side| side.get(..len));
        Term { src: src.expect("a source overlaps the destination or leaves the arena"), map }
    };

    if terms.len() <= FEW {
        let mut few = [Term { src: &[], map: UNUSED }; FEW];
        for (slot, operand) in few.iter_mut().zip(terms) {
            *slot = term(operand);
        }
        combine_with(Isa::best(), target, &few[..terms.len()], constant);
    } else {
        let many: Vec<Term<'_>> = terms.iter().map(term).collect();
        combine_with(Isa::best(), target, &many, constant);
    }
}

/// Assumes that the processor has `isa` and that all lengths are equal.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn combine_with(isa: Isa, dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    match isa {
        Isa::Portable => portable::combine(dst, terms, constant),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::combine(dst, terms, constant) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Gfni => unsafe { avx512::combine(dst, terms, constant) },
    }
}
