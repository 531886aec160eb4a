//! Products with carry-less multiplication, the same for all widths of registers.
//!
//! The products of even and of odd words fill two registers; lower and upper halves of both, interleaved, are
//! again in the order of the words, so that shifts reduce a whole register at once (see [`crate::words`]).

macro_rules! rows {
    ($name:ident, $features:literal) => {
        pub(super) mod $name {
            use crate::Modulus;
            use crate::words::registers::$name::*;
            use crate::words64::parts::{PARTS, PLACES};

            /// Registers that are worked on at once: so terms are looked at, and latencies waited for, less
            /// often.
            const WIDE: usize = 4;

            /// See [`super::super::multiply`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words64) fn multiply<M: Modulus>(dst: &mut [u64], a: &[u64], b: &[u64]) {
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
                store_at::<1, WHOLE>(dst, at, [reduce::<M>(clmul::<0x00>(a, b), clmul::<0x11>(a, b))]);
            }

            /// See [`super::super::combine`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words64) fn combine<M: Modulus>(
                dst: &mut [u64],
                terms: &[(&[u64], u64)],
                constant: u64,
            ) {
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
                terms: &[(&[u64], u64)],
                constant: u64,
                at: usize,
            ) {
                let mut plain = [splat(constant); COUNT];
                let (mut even, mut odd, mut products) = ([splat(0); COUNT], [splat(0); COUNT], false);
                for (src, factor) in terms {
                    let row = load_from::<COUNT, WHOLE>(src, at);
                    // Factors are public.
                    if *factor == 1 {
                        for i in 0..COUNT {
                            plain[i] = xor(plain[i], row[i]);
                        }
                    } else {
                        let factor = splat(*factor);
                        for i in 0..COUNT {
                            even[i] = xor(even[i], clmul::<0x00>(row[i], factor));
                            odd[i] = xor(odd[i], clmul::<0x11>(row[i], factor));
                        }
                        products = true;
                    }
                }
                if products {
                    for i in 0..COUNT {
                        plain[i] = xor(plain[i], reduce::<M>(even[i], odd[i]));
                    }
                }
                store_at::<COUNT, WHOLE>(dst, at, plain);
            }

            /// See [`super::super::inner_product_unreduced`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words64) fn inner_product(a: &[u64], b: &[u64]) -> u128 {
                let (mut even, mut odd) = (splat(0), splat(0));
                let ((a, a_part), (b, b_part)) = (a.as_chunks(), b.as_chunks());
                for (a, b) in a.iter().zip(b) {
                    let (a, b) = (load(a), load(b));
                    even = xor(even, clmul::<0x00>(a, b));
                    odd = xor(odd, clmul::<0x11>(a, b));
                }
                if !a_part.is_empty() {
                    let ([a], [b]) = (load_from::<1, false>(a_part, 0), load_from::<1, false>(b_part, 0));
                    even = xor(even, clmul::<0x00>(a, b));
                    odd = xor(odd, clmul::<0x11>(a, b));
                }
                sum_of_pairs(xor(even, odd))
            }

            /// See [`super::super::parts::products`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words64) fn products_of_parts(u: &[u64], w: &[u64]) -> [u128; PLACES] {
                let (part, mut sums) = (u.len() / PARTS, [splat(0); PLACES]);
                let whole = part / WORDS * WORDS;
                for at in (0..whole).step_by(WORDS) {
                    add_products_at::<true>(u, w, at, &mut sums);
                }
                if whole < part {
                    add_products_at::<false>(u, w, whole, &mut sums);
                }
                sums.map(|sum| sum_of_pairs(sum))
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add_products_at<const WHOLE: bool>(
                u: &[u64],
                w: &[u64],
                at: usize,
                sums: &mut [Register; PLACES],
            ) {
                let (u, w) = (parts_at::<WHOLE>(u, at), parts_at::<WHOLE>(w, at));
                let [u0, u1, u2] = first_variable(u);
                let [w0, w1, w2] = first_variable(w);
                let (low, rest) = sums.split_at_mut(PLACES / 3);
                let (middle, high) = rest.split_at_mut(PLACES / 3);
                add_products_of_eight(u0, w0, low);
                add_products_of_eight(u1, w1, middle);
                add_products_of_eight(u2, w2, high);
            }

            /// With the first variable 0, 1 or infinite.
            #[inline]
            #[target_feature(enable = $features)]
            fn first_variable(parts: [Register; PARTS]) -> [[Register; 8]; 3] {
                let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = parts;
                let (low, high) = ([a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]);
                let mut sums = low;
                for i in 0..8 {
                    sums[i] = xor(low[i], high[i]);
                }
                [low, high, sums]
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add_products_of_eight(u: [Register; 8], w: [Register; 8], sums: &mut [Register]) {
                let (u, w) = (values_of_eight(u), values_of_eight(w));
                for ((sum, u), w) in sums.iter_mut().zip(u).zip(w) {
                    *sum = xor(*sum, xor(clmul::<0x00>(u, w), clmul::<0x11>(u, w)));
                }
            }

            /// All values of a polynomial in three variables.
            #[inline]
            #[target_feature(enable = $features)]
            fn values_of_eight([a, b, c, d, e, f, g, h]: [Register; 8]) -> [Register; 27] {
                let (low, high) = (values_of_four([a, b, c, d]), values_of_four([e, f, g, h]));
                let mut all = [a; 27];
                for i in 0..9 {
                    all[i] = low[i];
                    all[9 + i] = high[i];
                    all[18 + i] = xor(low[i], high[i]);
                }
                all
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn values_of_four([a, b, c, d]: [Register; 4]) -> [Register; 9] {
                let (ab, cd, ac, bd) = (xor(a, b), xor(c, d), xor(a, c), xor(b, d));
                [a, b, ab, c, d, cd, ac, bd, xor(ab, cd)]
            }

            /// Registers at the same place of each part.
            #[inline]
            #[target_feature(enable = $features)]
            fn parts_at<const WHOLE: bool>(all: &[u64], at: usize) -> [Register; PARTS] {
                let (len, mut registers) = (all.len() / PARTS, [splat(0); PARTS]);
                for i in 0..PARTS {
                    [registers[i]] = load_from::<1, WHOLE>(&all[i * len..(i + 1) * len], at);
                }
                registers
            }

            /// See [`super::super::parts::fold`]; lengths were checked there.
            #[target_feature(enable = $features)]
            pub(in crate::words64) fn fold_parts<M: Modulus>(all: &mut [u64], factors: [u64; PARTS - 1]) {
                let (part, factors) = (all.len() / PARTS, factors.map(|factor| splat(factor)));
                let whole = part / WORDS * WORDS;
                for at in (0..whole).step_by(WORDS) {
                    fold_at::<M, true>(all, &factors, at);
                }
                if whole < part {
                    fold_at::<M, false>(all, &factors, whole);
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn fold_at<M: Modulus, const WHOLE: bool>(
                all: &mut [u64],
                factors: &[Register; PARTS - 1],
                at: usize,
            ) {
                let [first, others @ ..] = parts_at::<WHOLE>(all, at);
                let (mut even, mut odd) = (splat(0), splat(0));
                for i in 0..PARTS - 1 {
                    let difference = xor(first, others[i]);
                    even = xor(even, clmul::<0x00>(difference, factors[i]));
                    odd = xor(odd, clmul::<0x11>(difference, factors[i]));
                }
                let part = all.len() / PARTS;
                store_at::<1, WHOLE>(&mut all[..part], at, [xor(first, reduce::<M>(even, odd))]);
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn reduce<M: Modulus>(even: Register, odd: Register) -> Register {
                let (low, high) = (lower_words(even, odd), upper_words(even, odd));
                let high = or(shr(low, M::DEGREE), shl(high, u64::BITS - M::DEGREE));
                let (mut quotient, mut sum) = (high, low);
                for tap in M::TAPS {
                    quotient = xor(quotient, shr(high, M::DEGREE - tap));
                }
                for tap in M::TAPS {
                    sum = xor(sum, shl(quotient, *tap));
                }
                and(xor(sum, quotient), splat(u64::MAX >> (u64::BITS - M::DEGREE)))
            }
        }
    };
}

rows!(xmm, "pclmulqdq,ssse3");
rows!(ymm, "vpclmulqdq,avx2,pclmulqdq");
rows!(zmm, "vpclmulqdq,avx512f,avx512bw,avx2,pclmulqdq");
