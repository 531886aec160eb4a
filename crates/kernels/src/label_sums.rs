//! Sums of rows of labels: the free XOR of garbled circuits (Kolesnikov and Schneider 2008), one row a wire.
//!
//! A row holds labels of 16 bytes, one for each lane. Cost: every byte is read once and written once.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::isa::Isa;
use crate::label_hash::Label;

/// Overwrites the row of `len` bytes at `dst` by the sum of the rows at `sources` and of `constant` in every
/// lane. A label is 16 bytes, and all rows are in `arena`; The row at `dst` differs from all others and
/// overlaps none.
///
/// # Panics
/// If `len` is no number of labels, or a row ends outside.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn sum_within(arena: &mut [u8], dst: usize, len: usize, sources: &[usize], constant: &Label) {
    assert!(len.is_multiple_of(16), "rows are made of labels");
    let fits = |at: &usize| at.checked_add(len).is_some_and(|end| end <= arena.len());
    assert!(fits(&dst) && sources.iter().all(fits), "rows are in the arena");
    match Isa::best() {
        Isa::Portable => sum_portable(arena, dst, len, sources, constant),
        // SAFETY: the other variants exist only where AVX2 was detected, which AVX-512 comes with; all rows
        // fit.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { avx2::sum(arena, dst, len, sources, constant) },
    }
}

pub(crate) fn sum_portable(arena: &mut [u8], dst: usize, len: usize, sources: &[usize], constant: &Label) {
    for at in (0..len).step_by(16) {
        let label = |row: usize| {
            let label = arena[row + at..].first_chunk::<16>().expect("the row is in the arena");
            u128::from_ne_bytes(*label)
        };
        let sum = sources.iter().fold(u128::from_ne_bytes(*constant), |sum, row| sum ^ label(*row));
        arena[dst + at..][..16].copy_from_slice(&sum.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_single_bytes() {
        let constant: Label = core::array::from_fn(|i| 3 * i as u8 + 1);
        for labels in [0, 1, 2, 15, 16, 17, 40] {
            let len = 16 * labels;
            for terms in 0..5 {
                let noise: Vec<u8> = (0..6 * len).map(|i| (i * i / 7) as u8).collect();
                let sources: Vec<usize> = (0..terms).map(|k| (k + 1) * len).collect();
                let expected: Vec<u8> = (0..len)
                    .map(|i| sources.iter().fold(constant[i % 16], |sum, at| sum ^ noise[at + i]))
                    .collect();
                let (mut portable, mut best) = (noise.clone(), noise.clone());
                sum_portable(&mut portable, 0, len, &sources, &constant);
                sum_within(&mut best, 0, len, &sources, &constant);
                assert!(best == portable && best[..len] == expected && best[len..] == noise[len..]);
            }
        }
    }
}
