//! MANTIS with 5 to 8 rounds forth and back (Beierle et al., "The SKINNY family of block ciphers and its
//! low-latency variant MANTIS", CRYPTO 2016, ePrint 2016/660): a tweakable cipher that is its own inverse
//! except for the keys.
//!
//! Cells are the nibbles of the state, row by row. The S-box is Sb0 of Midori. The tweak comes with each
//! block; it is only permuted and added.

use std::sync::Arc;

use crate::midori::s_box_0;
use crate::permutation::{gathered, scattered};
use crate::{Builder, Cipher, Circuit, Matrix, Wire};

/// By rounds in each half.
pub fn ciphers() -> Vec<Cipher> {
    [5, 6, 7, 8].map(cipher).into()
}

fn cipher(rounds: usize) -> Cipher {
    let name = format!("mantis{rounds}");
    Cipher {
        key_bytes: 16,
        block_bytes: 8,
        tweak_bytes: 8,
        key_schedule: Arc::new(key_schedule(&name)),
        encrypt: Arc::new(crypt(&format!("{name}-encrypt"), rounds, true)),
        decrypt: Some(Arc::new(crypt(&format!("{name}-decrypt"), rounds, false))),
        name,
    }
}

/// `key`, k0 and k1, to k0 + k1, k1 and k0' + k1 with k0' = (k0 >>> 1) + (k0 >> 63).
fn key_schedule(name: &str) -> Circuit {
    let mut b = Builder::new(&format!("{name}-keyschedule"));
    let key = b.uniform_input("key", 32, 4);
    let (k0, k1) = key.split_at(16);
    let shifted = Matrix::of(4, 4, |x| x >> 1);
    let carried = Matrix::of(4, 4, |x| x << 3 & 8);
    let top = Matrix::of(4, 4, |x| x >> 3);
    let whitening = |i: usize| {
        let mut terms = vec![(k0[i], shifted), (k0[(i + 15) % 16], carried), (k1[i], Matrix::identity(4))];
        if i == 15 {
            terms.push((k0[0], top));
        }
        b.linear(terms, 0)
    };
    let last: Vec<Wire> = (0..16).map(whitening).collect();
    let first = b.xor_each(k0, k1);
    b.output("round_keys", &[&first, k1, &last].concat());
    b.finish()
}

/// Decryption takes the whitening keys the other way round, and alpha where encryption does not.
fn crypt(name: &str, rounds: usize, forward: bool) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box_0()));
    let block = b.input("block", 16, 4);
    let tweak = b.input("tweak", 16, 4);
    let keys = b.uniform_input("round_keys", 48, 4);
    let (outer, k1) = ([&keys[..16], &keys[32..]], &keys[16..32]);
    let (first, last) = if forward { (outer[0], outer[1]) } else { (outer[1], outer[0]) };
    let (alpha_before, alpha_after) = if forward { (0, ALPHA) } else { (ALPHA, 0) };

    let mut state = add(&mut b, &[&block, first, &tweak], alpha_before);
    let mut tweaks = vec![tweak];
    for constant in &CONSTANTS[..rounds] {
        let tweak = gathered(&tweaks[tweaks.len() - 1], &TWEAK_PERMUTATION);
        state = b.lookup_each(s, &state);
        state = add(&mut b, &[&state, k1, &tweak], constant ^ alpha_before);
        state = mix_columns(&mut b, &gathered(&state, &PERMUTATION));
        tweaks.push(tweak);
    }
    state = b.lookup_each(s, &state);
    state = mix_columns(&mut b, &state);
    state = b.lookup_each(s, &state);
    for (constant, tweak) in CONSTANTS[..rounds].iter().zip(&tweaks[1..]).rev() {
        state = scattered(&mix_columns(&mut b, &state), &PERMUTATION);
        state = add(&mut b, &[&state, k1, tweak], constant ^ alpha_after);
        state = b.lookup_each(s, &state);
    }
    state = add(&mut b, &[&state, last, &tweaks[0]], alpha_after);
    b.output("block", &state);
    b.finish()
}

/// The sum of states and a constant.
fn add(b: &mut Builder, states: &[&[Wire]], constant: u64) -> Vec<Wire> {
    let cell = |i: usize| {
        let cells: Vec<Wire> = states.iter().map(|state| state[i]).collect();
        b.xor_constant(&cells, (constant >> (60 - 4 * i)) as u8 & 15)
    };
    (0..16).map(cell).collect()
}

/// The matrix circ(0, 1, 1, 1) on each column, an involution.
fn mix_columns(b: &mut Builder, state: &[Wire]) -> Vec<Wire> {
    (0..16).map(|i| b.xor(&[4, 8, 12].map(|k| state[(i + k) % 16]))).collect()
}

const ALPHA: u64 = 0x243f_6a88_85a3_08d3;

const CONSTANTS: [u64; 8] = [
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
    0x9216_d5d9_8979_fb1b,
];

const PERMUTATION: [u8; 16] = [0, 11, 6, 13, 10, 1, 12, 7, 5, 14, 3, 8, 15, 4, 9, 2];
const TWEAK_PERMUTATION: [u8; 16] = [6, 5, 14, 15, 0, 1, 2, 3, 7, 12, 13, 4, 8, 9, 10, 11];
