//! Every implementation against the definition.

use super::*;
use crate::aes_prg::AesPrg;
use crate::words64::product;

/// X^64 + X^4 + X^3 + X + 1.
struct Pentanomial;

impl Modulus for Pentanomial {
    const DEGREE: u32 = 64;
    const TAPS: &'static [u32] = &[4, 3, 1];
}

fn bit(columns: &[u8], stride: usize, c: usize, at: usize) -> u64 {
    u64::from(columns[c * stride + at / 8] >> (at % 8) & 1)
}

#[test]
fn sums_are_those_of_the_bits_times_their_powers() {
    let mut columns = vec![0; COLUMNS * 200];
    AesPrg::new(&[3; 16], 0).fill(&mut columns);
    for isa in Isa::available() {
        for width in [2, 4, 8, 16, 32, 64] {
            for len in [0, 1, 3, 16, 17, 24] {
                let stride = 195;
                let expected: Vec<u64> = (0..len)
                    .map(|v| {
                        let block = |k: usize| {
                            (0..COLUMNS)
                                .fold(0, |block, c| block | bit(&columns, stride, c, v * width + k) << c)
                        };
                        (0..width).fold(7, |sum, k| sum ^ product::<Pentanomial>(block(k), 1 << k))
                    })
                    .collect();
                let mut sums = vec![7; len];
                let add = match width {
                    2 => add_words_with::<Pentanomial, 2>,
                    4 => add_words_with::<Pentanomial, 4>,
                    8 => add_words_with::<Pentanomial, 8>,
                    16 => add_words_with::<Pentanomial, 16>,
                    32 => add_words_with::<Pentanomial, 32>,
                    _ => add_words_with::<Pentanomial, 64>,
                };
                add(isa, &columns, stride, &mut sums);
                assert_eq!(sums, expected, "{isa:?}, {len} words of {width} bits");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_panic() {
    for (columns, stride, width) in [(64 * 8 - 1, 8, 8), (640, 7, 8), (640, 8, 24)] {
        let call = || add_words::<Pentanomial>(&vec![0; columns], stride, width, &mut [0; 8]);
        assert!(std::panic::catch_unwind(call).is_err());
    }
}
