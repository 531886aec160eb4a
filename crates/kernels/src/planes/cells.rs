//! From cells to planes and back: 8 x 8 bit matrices, turned in words of 64 bits (Warren, "Hacker's Delight", section 7-3).

/// Eight cells.
const CELLS: usize = 8;

/// Sets bit `j` of plane i, which begins at byte i * `stride`, to bit i of `cells[j]`, for all i below `bits`. The last byte of a plane is
/// filled up with zeros.
///
/// # Panics
/// If a plane ends outside, or there are more than 8.
pub fn split(cells: &[u8], bits: usize, planes: &mut [u8], stride: usize) {
    assert!(bits <= 8, "a cell is a byte");
    for (byte, eight) in cells.chunks(CELLS).enumerate() {
        let mut word = [0; CELLS];
        word[..eight.len()].copy_from_slice(eight);
        let turned = turned(u64::from_le_bytes(word)).to_le_bytes();
        (0..bits).for_each(|i| planes[i * stride + byte] = turned[i]);
    }
}

/// The inverse of [`split`]: sets bit i of `cells[j]` to bit `j` of plane i, for all i below `bits`, and the others to zero.
///
/// # Panics
/// If a plane ends outside, or there are more than 8.
pub fn join(planes: &[u8], stride: usize, bits: usize, cells: &mut [u8]) {
    assert!(bits <= 8, "a cell is a byte");
    for (byte, eight) in cells.chunks_mut(CELLS).enumerate() {
        let mut rows = [0; CELLS];
        (0..bits).for_each(|i| rows[i] = planes[i * stride + byte]);
        eight.copy_from_slice(&turned(u64::from_le_bytes(rows)).to_le_bytes()[..eight.len()]);
    }
}

/// Bit `j` of byte `i` becomes bit `i` of byte `j`.
pub(crate) fn turned(mut x: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}
