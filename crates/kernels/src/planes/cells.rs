//! From cells to planes and back: 8 x 8 bit matrices, turned in words of 64 bits (Warren, "Hacker's Delight",
//! section 7-3), or with registers of 32 cells.

use crate::bit_transpose::turned;
use crate::isa::Isa;

/// Eight cells.
const CELLS: usize = 8;

/// Sets bit `j` of plane i, which begins at byte i * `stride`, to bit i of `cells[j]`, for all i below
/// `bits`. The last byte of a plane is filled up with zeros.
///
/// # Panics
/// If a plane ends outside, or there are more than 8.
pub fn split(cells: &[u8], bits: usize, planes: &mut [u8], stride: usize) {
    check(planes.len(), bits, stride, cells.len());
    split_with(Isa::best(), cells, bits, planes, stride);
}

/// The inverse of [`split`]: sets bit i of `cells[j]` to bit `j` of plane i, for all i below `bits`, and the
/// others to zero.
///
/// # Panics
/// If a plane ends outside, or there are more than 8.
pub fn join(planes: &[u8], stride: usize, bits: usize, cells: &mut [u8]) {
    check(planes.len(), bits, stride, cells.len());
    join_with(Isa::best(), planes, stride, bits, cells);
}

fn check(planes: usize, bits: usize, stride: usize, cells: usize) {
    assert!(bits <= 8, "a cell is a byte");
    let end = bits.saturating_sub(1) * stride + cells.div_ceil(CELLS);
    assert!(bits == 0 || end <= planes, "a plane ends outside");
}

/// Assumes that the processor has `isa` and that lengths were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn split_with(isa: Isa, cells: &[u8], bits: usize, planes: &mut [u8], stride: usize) {
    let done = match isa {
        Isa::Portable => 0,
        // SAFETY: the other variants exist only where AVX2 was detected, which AVX-512 comes with.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { super::avx2::split(cells, bits, planes, stride) },
    };
    for (byte, eight) in (done / CELLS..).zip(cells[done..].chunks(CELLS)) {
        let mut word = [0; CELLS];
        word[..eight.len()].copy_from_slice(eight);
        let turned = turned(u64::from_le_bytes(word)).to_le_bytes();
        (0..bits).for_each(|i| planes[i * stride + byte] = turned[i]);
    }
}

/// As [`split_with`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn join_with(isa: Isa, planes: &[u8], stride: usize, bits: usize, cells: &mut [u8]) {
    let done = match isa {
        Isa::Portable => 0,
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { super::avx2::join(planes, stride, bits, cells) },
    };
    for (byte, eight) in (done / CELLS..).zip(cells[done..].chunks_mut(CELLS)) {
        let mut rows = [0; CELLS];
        (0..bits).for_each(|i| rows[i] = planes[i * stride + byte]);
        eight.copy_from_slice(&turned(u64::from_le_bytes(rows)).to_le_bytes()[..eight.len()]);
    }
}
