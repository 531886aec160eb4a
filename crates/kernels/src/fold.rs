//! Sums of rows, selected by the bits of the rows' numbers: linear evaluation over GF(2^f) from `2^f`
//! streams.
//!
//! Row by row, neighbours are added, which halves the rows and gives one bit's sum; so all sums together take
//! two additions a row. One piece of code, compiled for the registers of any processor and for those of AVX2.

use crate::isa::Isa;

/// Folds `2^f` rows as long as `sum`: the k-th of the f columns becomes the sum of the rows whose number has
/// bit k, `sum` that of all rows. The rows are used up.
///
/// # Panics
/// When the lengths do not fit, or rows have no bytes.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn fold(rows: &mut [u8], columns: &mut [u8], sum: &mut [u8]) {
    let len = sum.len();
    assert!(len > 0 && columns.len().is_multiple_of(len), "columns of another length");
    assert_eq!(Some(rows.len()), len.checked_shl((columns.len() / len) as u32), "2^f rows for f columns");
    match Isa::best() {
        Isa::Portable => fold_rows(rows, columns, sum),
        // SAFETY: these variants exist only where their instructions were detected, AVX2 with both.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { fold_avx2(rows, columns, sum) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fold_avx2(rows: &mut [u8], columns: &mut [u8], sum: &mut [u8]) {
    fold_rows(rows, columns, sum);
}

#[inline(always)]
pub(crate) fn fold_rows(rows: &mut [u8], columns: &mut [u8], sum: &mut [u8]) {
    let len = sum.len();
    let mut count = rows.len() / len;
    for column in columns.chunks_exact_mut(len) {
        count /= 2;
        let (first, others) = rows.split_at_mut(len);
        column.copy_from_slice(&others[..len]);
        add(first, &others[..len]);
        for y in 1..count {
            let (targets, pair) = rows.split_at_mut(2 * y * len);
            let (even, odd) = pair[..2 * len].split_at(len);
            let target = &mut targets[y * len..(y + 1) * len];
            add(column, odd);
            target.copy_from_slice(even);
            add(target, odd);
        }
    }
    sum.copy_from_slice(&rows[..len]);
}

/// `sum += term`, register by register.
#[inline(always)]
fn add(sum: &mut [u8], term: &[u8]) {
    let (sums, rest) = sum.as_chunks_mut::<32>();
    let (terms, last) = term.as_chunks::<32>();
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum = core::array::from_fn(|i| sum[i] ^ term[i]);
    }
    rest.iter_mut().zip(last).for_each(|(sum, term)| *sum ^= term);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aes_prg::AesPrg;

    #[test]
    fn column_k_is_the_sum_of_the_rows_whose_number_has_bit_k() {
        for (f, len) in (1..=8).flat_map(|f| [1, 16, 48, 100].map(|len| (f, len))) {
            let mut rows = vec![0; len << f];
            AesPrg::new(&[9; 16], f as u64).fill(&mut rows);
            let sum_where = |wanted: &dyn Fn(usize) -> bool| {
                let chosen = rows.chunks_exact(len).enumerate().filter(|(x, _)| wanted(*x));
                chosen.fold(vec![0; len], |sum, (_, row)| sum.iter().zip(row).map(|(a, b)| a ^ b).collect())
            };
            let expected: Vec<Vec<u8>> = (0..f).map(|k| sum_where(&|x| x >> k & 1 == 1)).collect();
            let expected_sum = sum_where(&|_| true);
            for run in [fold, fold_rows] {
                let (mut columns, mut sum) = (vec![1; len * f], vec![1; len]);
                run(&mut rows.clone(), &mut columns, &mut sum);
                assert_eq!((columns, sum), (expected.concat(), expected_sum.clone()), "f {f}, {len} bytes");
            }
        }
    }

    #[test]
    fn lengths_that_do_not_fit_panic() {
        for (rows, columns, sum) in [(0, 0, 0), (32, 8, 16), (32, 32, 16), (63, 32, 16)] {
            let call = || fold(&mut vec![0; rows], &mut vec![0; columns], &mut vec![0; sum]);
            assert!(std::panic::catch_unwind(call).is_err());
        }
    }
}
