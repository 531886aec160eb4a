//! Cells in messages, in as few bytes as hold them. Bits beyond a cell's width are written as zeros and
//! ignored when read, so every message from a peer decodes to cells.

/// Cells of this many bits in a byte.
fn cells_a_byte(bits: u8) -> usize {
    if bits <= 4 { usize::from(8 / bits) } else { 1 }
}

/// Bytes of this many cells.
pub(super) fn cells_bytes(cells: usize, bits: u8) -> usize {
    cells.div_ceil(cells_a_byte(bits))
}

/// Appends cells.
pub(super) fn write_cells(cells: &[u8], bits: u8, to: &mut Vec<u8>) {
    let join = |cells: &[u8]| cells.iter().rev().fold(0, |byte, cell| byte << bits | cell);
    match cells_a_byte(bits) {
        1 => to.extend_from_slice(cells),
        several => to.extend(cells.chunks(several).map(join)),
    }
}

/// Reads as many cells as there is room for.
pub(super) fn read_cells(bytes: &[u8], bits: u8, cells: &mut [u8]) {
    let mask = 0xff >> (8 - bits);
    for (cells, byte) in cells.chunks_mut(cells_a_byte(bits)).zip(bytes) {
        cells
            .iter_mut()
            .zip((0..).step_by(usize::from(bits)))
            .for_each(|(cell, at)| *cell = byte >> at & mask);
    }
}

/// Appends the bits of this many lanes.
pub(super) fn write_plane(plane: &[u8], lanes: usize, to: &mut Vec<u8>) {
    to.extend_from_slice(&plane[..lanes.div_ceil(8)]);
    if let Some(last) = to.last_mut()
        && !lanes.is_multiple_of(8)
    {
        *last &= (1 << (lanes % 8)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_width_come_back() {
        for bits in 1..=8 {
            for len in 0..20 {
                let cells: Vec<u8> = (0..len).map(|i| (i * 37 + 5) as u8 & (0xff >> (8 - bits))).collect();
                let (mut bytes, mut back) = (Vec::new(), vec![0; len]);
                write_cells(&cells, bits, &mut bytes);
                assert_eq!(bytes.len(), cells_bytes(len, bits));
                read_cells(&bytes, bits, &mut back);
                assert_eq!(back, cells);
            }
        }
    }
}
