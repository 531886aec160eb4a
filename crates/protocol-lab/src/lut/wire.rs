//! Cells in messages, in as few bits as hold them, one after another: eight cells of b bits are b bytes.
//! Every message of the right length decodes to cells.

/// Bytes of so many cells.
pub(super) fn packed_bytes(cells: usize, bits: u8) -> usize {
    (cells * usize::from(bits)).div_ceil(8)
}

/// Appends cells of so many bits.
pub(super) fn pack(cells: &[u8], bits: u8, to: &mut Vec<u8>) {
    if bits == 8 {
        return to.extend_from_slice(cells);
    }
    to.reserve(packed_bytes(cells.len(), bits));
    let width = usize::from(bits);
    for cells in cells.chunks(8) {
        let mut word = [0; 8];
        word[..cells.len()].copy_from_slice(cells);
        let packed = joined(u64::from_le_bytes(word), bits).to_le_bytes();
        to.extend_from_slice(&packed[..(cells.len() * width).div_ceil(8)]);
    }
}

/// Reads as many cells of so many bits as there is room for.
pub(super) fn unpack(bytes: &[u8], bits: u8, cells: &mut [u8]) {
    if bits == 8 {
        return cells.copy_from_slice(bytes);
    }
    for (cells, bytes) in cells.chunks_mut(8).zip(bytes.chunks(usize::from(bits))) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let parted = parted(u64::from_le_bytes(word), bits).to_le_bytes();
        cells.copy_from_slice(&parted[..cells.len()]);
    }
}

/// A mask of so many bits in every field of the given width.
fn every(bits: u8, width: u32) -> u64 {
    let one = u64::MAX >> (64 - u32::from(bits));
    (0..64 / width).fold(0, |all, field| all | one << (width * field))
}

/// Eight bytes of `bits` bits each, side by side: neighbours are joined, then pairs, then fours.
fn joined(word: u64, bits: u8) -> u64 {
    let mut word = word;
    for (width, held) in [(8, bits), (16, 2 * bits), (32, 4 * bits)] {
        let low = every(held, 2 * width);
        word = word & low | (word >> (width - u32::from(held))) & (low << held);
    }
    word
}

/// The inverse of [`joined`].
fn parted(word: u64, bits: u8) -> u64 {
    let mut word = word;
    for (width, held) in [(32, 4 * bits), (16, 2 * bits), (8, bits)] {
        let low = every(held, 2 * width);
        word = word & low | (word << (width - u32::from(held))) & (low << width);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_width_come_back_bit_after_bit() {
        for bits in 1..=8 {
            for len in 0..40 {
                let cells: Vec<u8> = (0..len).map(|i| (i * 37 + 5) as u8 & (0xff >> (8 - bits))).collect();
                let (mut bytes, mut back) = (Vec::new(), vec![0; len]);
                pack(&cells, bits, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(len, bits));
                let bit = |at: usize| bytes[at / 8] >> (at % 8) & 1;
                for (i, cell) in cells.iter().enumerate() {
                    let begin = i * usize::from(bits);
                    let read = (0..usize::from(bits)).fold(0, |all, j| all | bit(begin + j) << j);
                    assert_eq!(read, *cell, "{bits} bits, cell {i} of {len}");
                }
                unpack(&bytes, bits, &mut back);
                assert_eq!(back, cells);
            }
        }
    }
}
