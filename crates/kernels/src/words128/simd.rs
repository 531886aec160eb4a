//! Products with carry-less multiplication, the same for all widths of registers, by Karatsuba's rule.
//!
//! The reduction multiplies what is beyond X^128 by the lower terms of the modulus, the upper word first.

use crate::Modulus;

/// `1 + sum of X^tap`, what X^128 is congruent to.
const fn tail<M: Modulus>() -> u64 {
    let (mut tail, mut i) = (1, 0);
    while i < M::TAPS.len() {
        tail |= 1 << M::TAPS[i];
        i += 1;
    }
    tail
}

macro_rules! rows {
    ($name:ident, $features:literal) => {
        pub(super) mod $name {
            use super::tail;
            use crate::Modulus;
            use crate::words::registers::$name::*;
            use crate::words::registers::{words, words_mut};

            /// Registers that are worked on at once: so terms are looked at, and latencies waited for, less
            /// often.
            const WIDE: usize = 2;

            /// A sum of products in every pair of words, not reduced.
            #[derive(Clone, Copy)]
            struct Wide {
                /// The product of the lower words.
                low: Register,
                /// The product of the sums of both words.
                sums: Register,
                /// The product of the upper words.
                high: Register,
            }

            /// See [`super::super::multiply`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words128) fn multiply<M: Modulus>(dst: &mut [u128], a: &[u128], b: &[u128]) {
                let (dst, a, b) = (words_mut(dst), words(a), words(b));
                let whole = dst.len() / WORDS * WORDS;
                for at in (0..whole).step_by(WORDS) {
                    multiply_at::<M, true>(dst, a, b, at);
                }
                if whole < dst.len() {
                    multiply_at::<M, false>(dst, a, b, whole);
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn multiply_at<M: Modulus, const WHOLE: bool>(dst: &mut [u64], a: &[u64], b: &[u64], at: usize) {
                let ([a], [b]) = (load_from::<1, WHOLE>(a, at), load_from::<1, WHOLE>(b, at));
                store_at::<1, WHOLE>(dst, at, [reduce::<M>(add_product(zero(), a, b))]);
            }

            /// See [`super::super::combine`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words128) fn combine<M: Modulus>(
                dst: &mut [u128],
                terms: &[(&[u128], u128)],
                constant: u128,
            ) {
                let dst = words_mut(dst);
                let whole = dst.len() / WORDS * WORDS;
                let wide = whole / (WIDE * WORDS) * (WIDE * WORDS);
                for at in (0..wide).step_by(WIDE * WORDS) {
                    combine_at::<M, WIDE, true>(dst, terms, constant, at);
                }
                for at in (wide..whole).step_by(WORDS) {
                    combine_at::<M, 1, true>(dst, terms, constant, at);
                }
                if whole < dst.len() {
                    combine_at::<M, 1, false>(dst, terms, constant, whole);
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn combine_at<M: Modulus, const COUNT: usize, const WHOLE: bool>(
                dst: &mut [u64],
                terms: &[(&[u128], u128)],
                constant: u128,
                at: usize,
            ) {
                let (mut plain, mut sums, mut products) =
                    ([splat_pair(constant); COUNT], [zero(); COUNT], false);
                for (src, factor) in terms {
                    let src = words(src);
                    let row = load_from::<COUNT, WHOLE>(src, at);
                    // Factors are public.
                    if *factor == 1 {
                        for i in 0..COUNT {
                            plain[i] = xor(plain[i], row[i]);
                        }
                    } else {
                        let factor = splat_pair(*factor);
                        for i in 0..COUNT {
                            sums[i] = add_product(sums[i], row[i], factor);
                        }
                        products = true;
                    }
                }
                if products {
                    for i in 0..COUNT {
                        plain[i] = xor(plain[i], reduce::<M>(sums[i]));
                    }
                }
                store_at::<COUNT, WHOLE>(dst, at, plain);
            }

            /// See [`super::super::inner_product`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words128) fn inner_product<M: Modulus>(a: &[u128], b: &[u128]) -> u128 {
                let mut sum = zero();
                let ((a, a_part), (b, b_part)) = (words(a).as_chunks(), words(b).as_chunks());
                for (a, b) in a.iter().zip(b) {
                    sum = add_product(sum, load(a), load(b));
                }
                if !a_part.is_empty() {
                    let ([a], [b]) = (load_from::<1, false>(a_part, 0), load_from::<1, false>(b_part, 0));
                    sum = add_product(sum, a, b);
                }
                sum_of_pairs(reduce::<M>(sum))
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn zero() -> Wide {
                Wide { low: splat(0), sums: splat(0), high: splat(0) }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add_product(sum: Wide, a: Register, b: Register) -> Wide {
                let (a_sum, b_sum) = (xor(a, word_down(a)), xor(b, word_down(b)));
                Wide {
                    low: xor(sum.low, clmul::<0x00>(a, b)),
                    sums: xor(sum.sums, clmul::<0x00>(a_sum, b_sum)),
                    high: xor(sum.high, clmul::<0x11>(a, b)),
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn reduce<M: Modulus>(sum: Wide) -> Register {
                let tail = splat(const { tail::<M>() });
                let middle = xor(sum.sums, xor(sum.low, sum.high));
                let (low, high) = (xor(sum.low, word_up(middle)), xor(sum.high, word_down(middle)));
                let upper = clmul::<0x01>(high, tail);
                let lower = clmul::<0x00>(xor(high, word_down(upper)), tail);
                xor(xor(low, word_up(upper)), lower)
            }
        }
    };
}

rows!(xmm, "pclmulqdq,ssse3");
rows!(ymm, "vpclmulqdq,avx2,pclmulqdq");
rows!(zmm, "vpclmulqdq,avx512f,avx512bw,avx2,pclmulqdq");
