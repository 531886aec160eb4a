//! What each kernel computes in its self-test, and the answers. Lengths are not whole registers of any form.

mod bytes;
mod garbling;
mod words;

use super::Answer::{Fingerprint, Printed};
use super::KnownAnswer;

/// AES-128 of FIPS 197, appendix C.1.
const FIPS_197_C_1: [u8; 16] =
    [0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a];
/// The product of McGrew and Viega 2004, appendix B, test case 2.
const GHASH: [u8; 16] =
    [0x5e, 0x2e, 0xc7, 0x46, 0x91, 0x70, 0x62, 0x88, 0x2c, 0x85, 0xb0, 0x68, 0x53, 0x53, 0xde, 0xb7];
/// FIPS 197, section 4.2: {57} * {83} and {57} * {13}.
const FIPS_197_4_2: [u8; 2] = [0xc1, 0xfe];

/// All kernels that have a form of their own on some processor.
pub(super) const ALL: &[KnownAnswer] = &[
    KnownAnswer { kernel: "aes_sum", compute: garbling::aes, answer: Printed(&FIPS_197_C_1) },
    KnownAnswer { kernel: "gf128", compute: words::ghash, answer: Printed(&GHASH) },
    KnownAnswer { kernel: "gf256", compute: bytes::fips_197, answer: Printed(&FIPS_197_4_2) },
    KnownAnswer { kernel: "aes_prg", compute: garbling::stream, answer: Fingerprint(0x79d5_19a6_d6a3_dfa3) },
    KnownAnswer { kernel: "aes_hash", compute: garbling::hash, answer: Fingerprint(0xdfd8_5c55_9b19_98e2) },
    KnownAnswer {
        kernel: "aes_sum: many blocks",
        compute: garbling::sums,
        answer: Fingerprint(0x3062_c345_fb8f_5ebb),
    },
    KnownAnswer {
        kernel: "label_hash",
        compute: garbling::labels,
        answer: Fingerprint(0x9035_b3e7_79e8_fcfd),
    },
    KnownAnswer {
        kernel: "label_hash::half_gates",
        compute: garbling::half_gates,
        answer: Fingerprint(0x99c4_c3c0_f40a_7c4a),
    },
    KnownAnswer {
        kernel: "label_hash::three_halves",
        compute: garbling::three_halves,
        answer: Fingerprint(0x0238_135a_dcc5_6ee8),
    },
    KnownAnswer {
        kernel: "label_sums",
        compute: garbling::label_sums,
        answer: Fingerprint(0x9b64_4bc7_448d_af05),
    },
    KnownAnswer {
        kernel: "leaf_streams",
        compute: garbling::leaf_streams,
        answer: Fingerprint(0x8ba4_ff3b_4bea_e0ce),
    },
    KnownAnswer { kernel: "affine", compute: bytes::affine, answer: Fingerprint(0xbe14_ab1e_95dd_63c0) },
    KnownAnswer {
        kernel: "gf256: all products",
        compute: bytes::products,
        answer: Fingerprint(0x577b_f1e8_62d3_24e5),
    },
    KnownAnswer {
        kernel: "bit_transpose",
        compute: bytes::bit_transpose,
        answer: Fingerprint(0x830f_70f2_1449_8fcc),
    },
    KnownAnswer { kernel: "fold", compute: bytes::fold, answer: Fingerprint(0xc629_61fd_8bb1_e777) },
    KnownAnswer { kernel: "planes", compute: bytes::planes, answer: Fingerprint(0xa472_ee0e_0deb_f80d) },
    KnownAnswer {
        kernel: "planes::cells",
        compute: bytes::cells_of_planes,
        answer: Fingerprint(0x0265_0b6e_2baf_822a),
    },
    KnownAnswer {
        kernel: "planes::maps",
        compute: bytes::plane_maps,
        answer: Fingerprint(0xceac_d8fb_4c60_711d),
    },
    KnownAnswer {
        kernel: "unit_sums",
        compute: bytes::unit_sums,
        answer: Fingerprint(0xa89e_1792_39d8_8d4a),
    },
    KnownAnswer { kernel: "cells", compute: words::cells, answer: Fingerprint(0x525d_b2f2_e583_0530) },
    KnownAnswer {
        kernel: "cells::inner_product",
        compute: words::cell_products,
        answer: Fingerprint(0xe1a9_c281_f79b_46c9),
    },
    KnownAnswer {
        kernel: "column_words",
        compute: words::column_words,
        answer: Fingerprint(0x1f8e_8eb8_8787_96ca),
    },
    KnownAnswer { kernel: "gf128: rows", compute: words::gf128, answer: Fingerprint(0xc636_b4c9_c596_67a7) },
    KnownAnswer { kernel: "words64", compute: words::words64, answer: Fingerprint(0x6b15_4b3c_bc54_54b0) },
    KnownAnswer {
        kernel: "words64::parts",
        compute: words::parts,
        answer: Fingerprint(0xb41b_410d_037a_56b2),
    },
    KnownAnswer { kernel: "words128", compute: words::words128, answer: Fingerprint(0x9681_7e60_0434_9b4b) },
];

/// Fixed bytes without a pattern: those of SplitMix64 (Steele, Lea and Flood 2014).
fn sample(seed: u64, len: usize) -> Vec<u8> {
    let word = |i: u64| {
        let z = (seed << 32 | i).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31).to_le_bytes()
    };
    (0..len.div_ceil(8) as u64).flat_map(word).take(len).collect()
}

fn words64(seed: u64, len: usize) -> Vec<u64> {
    sample(seed, 8 * len).as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn words128(seed: u64, len: usize) -> Vec<u128> {
    sample(seed, 16 * len).as_chunks().0.iter().map(|word| u128::from_le_bytes(*word)).collect()
}

fn bytes_of64(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn bytes_of128(words: &[u128]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
