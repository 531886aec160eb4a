//! The few operations that rows of words need, under the same names for registers of 16, 32 and 64 bytes.
//! Each acts on every 16 bytes alike.

#![allow(unsafe_code)]

/// The same memory as words of half the size, lower ones first.
pub(crate) fn words(row: &[u128]) -> &[u64] {
    // SAFETY: the same bytes, every one of them part of a word, at a sufficient alignment, borrowed for as
    // long.
    unsafe { core::slice::from_raw_parts(row.as_ptr().cast(), row.len() * 2) }
}

/// As [`words`].
pub(crate) fn words_mut(row: &mut [u128]) -> &mut [u64] {
    // SAFETY: as above, and borrowed alone.
    unsafe { core::slice::from_raw_parts_mut(row.as_mut_ptr().cast(), row.len() * 2) }
}

macro_rules! registers {
    (
        $name:ident, $features:literal, $register:ty, $words:literal,
        load: $load:ident, store: $store:ident, splat: $splat:ident, broadcast: $broadcast:expr,
        xor: $xor:ident, or: $or:ident, and: $and:ident, shl: $shl:ident, shr: $shr:ident,
        lower_words: $lower_words:ident, upper_words: $upper_words:ident,
        word_up: $word_up:ident, word_down: $word_down:ident, clmul: $clmul:ident
    ) => {
        pub(crate) mod $name {
            use core::arch::x86_64::*;

            pub(crate) type Register = $register;
            /// Words of 64 bits in a register.
            pub(crate) const WORDS: usize = $words;

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn load(words: &[u64; WORDS]) -> Register {
                // SAFETY: the reference covers all bytes read; the load has no alignment.
                unsafe { $load(words.as_ptr().cast()) }
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn store(words: &mut [u64; WORDS], x: Register) {
                // SAFETY: the reference covers all bytes written; the store has no alignment.
                unsafe { $store(words.as_mut_ptr().cast(), x) }
            }

            /// Reads registers from a place on. If `WHOLE` is false and the words end early, it reads one
            /// register with zeros behind the words.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn load_from<const COUNT: usize, const WHOLE: bool>(
                row: &[u64],
                at: usize,
            ) -> [Register; COUNT] {
                let (mut registers, mut padded) = ([splat(0); COUNT], [0; WORDS]);
                if WHOLE {
                    let row = row[at..at + COUNT * WORDS].as_chunks().0;
                    for (register, words) in registers.iter_mut().zip(row) {
                        *register = load(words);
                    }
                } else {
                    padded[..row.len() - at].copy_from_slice(&row[at..]);
                    registers[0] = load(&padded);
                }
                registers
            }

            /// As [`load_from`]: what has no place in the row is dropped.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn store_at<const COUNT: usize, const WHOLE: bool>(
                row: &mut [u64],
                at: usize,
                registers: [Register; COUNT],
            ) {
                if WHOLE {
                    let row = row[at..at + COUNT * WORDS].as_chunks_mut().0;
                    for (words, register) in row.iter_mut().zip(registers) {
                        store(words, register);
                    }
                } else {
                    let (mut padded, part) = ([0; WORDS], &mut row[at..]);
                    store(&mut padded, registers[0]);
                    part.copy_from_slice(&padded[..part.len()]);
                }
            }

            /// The word in all places.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn splat(word: u64) -> Register {
                $splat(word as i64)
            }

            /// Both words in all pairs of places.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn splat_pair(pair: u128) -> Register {
                $broadcast(_mm_set_epi64x((pair >> 64) as i64, pair as i64))
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn xor(a: Register, b: Register) -> Register {
                $xor(a, b)
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn or(a: Register, b: Register) -> Register {
                $or(a, b)
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn and(a: Register, b: Register) -> Register {
                $and(a, b)
            }

            /// Every word shifted; by 64 it is zero.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn shl(x: Register, by: u32) -> Register {
                $shl(x, _mm_cvtsi32_si128(by as i32))
            }

            /// Every word shifted; by 64 it is zero.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn shr(x: Register, by: u32) -> Register {
                $shr(x, _mm_cvtsi32_si128(by as i32))
            }

            /// The lower words of each pair of `a` and of `b`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn lower_words(a: Register, b: Register) -> Register {
                $lower_words(a, b)
            }

            /// The upper words of each pair of `a` and of `b`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn upper_words(a: Register, b: Register) -> Register {
                $upper_words(a, b)
            }

            /// Lower words in the upper place, zeros below.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn word_up(x: Register) -> Register {
                $word_up::<8>(x)
            }

            /// Upper words in the lower place, zeros above.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn word_down(x: Register) -> Register {
                $word_down::<8>(x)
            }

            /// Carry-less products of a word of each pair: of `a` by the lowest bit, of `b` by the fifth.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn clmul<const WHICH: i32>(a: Register, b: Register) -> Register {
                $clmul::<WHICH>(a, b)
            }

            /// The sum of all pairs.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn sum_of_pairs(x: Register) -> u128 {
                let mut words = [0; WORDS];
                store(&mut words, x);
                let pairs = words.as_chunks::<2>().0.iter();
                pairs.fold(0, |sum, [low, high]| sum ^ u128::from(*low) ^ (u128::from(*high) << 64))
            }
        }
    };
}

registers!(
    xmm, "pclmulqdq,ssse3", __m128i, 2,
    load: _mm_loadu_si128, store: _mm_storeu_si128, splat: _mm_set1_epi64x, broadcast: |pair| pair,
    xor: _mm_xor_si128, or: _mm_or_si128, and: _mm_and_si128, shl: _mm_sll_epi64, shr: _mm_srl_epi64,
    lower_words: _mm_unpacklo_epi64, upper_words: _mm_unpackhi_epi64,
    word_up: _mm_bslli_si128, word_down: _mm_bsrli_si128, clmul: _mm_clmulepi64_si128
);
registers!(
    ymm, "vpclmulqdq,avx2,pclmulqdq", __m256i, 4,
    load: _mm256_loadu_si256, store: _mm256_storeu_si256, splat: _mm256_set1_epi64x, broadcast: _mm256_broadcastsi128_si256,
    xor: _mm256_xor_si256, or: _mm256_or_si256, and: _mm256_and_si256, shl: _mm256_sll_epi64, shr: _mm256_srl_epi64,
    lower_words: _mm256_unpacklo_epi64, upper_words: _mm256_unpackhi_epi64,
    word_up: _mm256_bslli_epi128, word_down: _mm256_bsrli_epi128, clmul: _mm256_clmulepi64_epi128
);
registers!(
    zmm, "vpclmulqdq,avx512f,avx512bw,avx2,pclmulqdq", __m512i, 8,
    load: _mm512_loadu_si512, store: _mm512_storeu_si512, splat: _mm512_set1_epi64, broadcast: _mm512_broadcast_i32x4,
    xor: _mm512_xor_si512, or: _mm512_or_si512, and: _mm512_and_si512, shl: _mm512_sll_epi64, shr: _mm512_srl_epi64,
    lower_words: _mm512_unpacklo_epi64, upper_words: _mm512_unpackhi_epi64,
    word_up: _mm512_bslli_epi128, word_down: _mm512_bsrli_epi128, clmul: _mm512_clmulepi64_epi128
);
