//! Secret places in tables, without an index: each bit of the secret moves parts of the table, or chooses
//! between its halves, under a mask. What is done depends on the size of the table alone.

use polyclave_kernels::secret;

/// Brings what is at x to x plus the secret `by`: each of its bits swaps halves of words, or words, under a
/// mask. There is a power of two of images, and `by` is below it.
pub(crate) fn move_by(images: &mut [u8], by: u8) {
    for word in images.chunks_mut(16) {
        let mut bytes = [0; 16];
        bytes[..word.len()].copy_from_slice(word);
        let mut moved = u128::from_le_bytes(bytes);
        for (bit, at_zero) in AT_ZERO.iter().enumerate() {
            let shift = 8 << bit;
            let swapped = moved >> shift & at_zero | (moved & at_zero) << shift;
            moved ^= (moved ^ swapped) & secret::mask(u128::from(by >> bit));
        }
        word.copy_from_slice(&moved.to_le_bytes()[..word.len()]);
    }
    for bit in 4..images.len().trailing_zeros() {
        let mask = secret::mask(u128::from(by >> bit));
        for pair in images.chunks_exact_mut(2 << bit) {
            let (low, high) = pair.split_at_mut(1 << bit);
            for (a, b) in low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0) {
                let difference = (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)) & mask;
                *a = (u128::from_le_bytes(*a) ^ difference).to_le_bytes();
                *b = (u128::from_le_bytes(*b) ^ difference).to_le_bytes();
            }
        }
    }
}

/// Brings the row of number `at`, which is secret, to the front. Rows have `len` bytes; there is a power of
/// two of them, and `at` is below it. The others are overwritten: each bit of `at` leaves one half of the
/// rows.
pub(crate) fn choose(rows: &mut [u8], len: usize, at: u8) {
    let mut rows = rows;
    for bit in (0..(rows.len() / len).trailing_zeros()).rev() {
        let mask = secret::mask(at >> bit);
        let (low, high) = rows.split_at_mut(len << bit);
        low.iter_mut().zip(&*high).for_each(|(low, high)| *low ^= (*low ^ *high) & mask);
        rows = low;
    }
}

/// For each bit of the place: which of the sixteen bytes of a word have a 0 there.
const AT_ZERO: [u128; 4] = [
    u128::from_le_bytes([255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0]),
    u128::from_le_bytes([255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0]),
    u128::from_le_bytes([255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]),
    u128::from_le_bytes([255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_move_by_a_colour() {
        for bits in 1..=8 {
            for by in [0, 1, 2, 5, 77, 255_u8].map(|by| by & (0xff >> (8 - bits))) {
                let mut images: Vec<u8> = (0..1_u16 << bits).map(|x| x as u8).collect();
                move_by(&mut images, by);
                assert!(images.iter().enumerate().all(|(at, x)| usize::from(*x ^ by) == at));
            }
        }
    }

    #[test]
    fn rows_are_chosen_by_their_number() {
        for bits in 1..=8 {
            for len in [1, 3, 16] {
                for at in [0, 1, 2, 5, 77, 255_u8].map(|at| at & (0xff >> (8 - bits))) {
                    let mut rows: Vec<u8> =
                        (0..len << bits).map(|i| ((i / len) ^ (11 * (i % len))) as u8).collect();
                    choose(&mut rows, len, at);
                    assert!(
                        (0..len).all(|i| rows[i] == at ^ (11 * i) as u8),
                        "{bits} bits, {len} bytes, {at}"
                    );
                }
            }
        }
    }
}
