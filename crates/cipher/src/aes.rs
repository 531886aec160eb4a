//! AES-128, 192 and 256 (FIPS-197): key schedule, encryption and decryption as three circuits that compose.
//!
//! Cells are the bytes of the state, column by column. The S-box is the only lookup; it carries its algebra,
//! inversion in GF(2^8) and an affine map. MixColumns is written with the maps 1 and 2 only, so that
//! protocols for which no multiplication is free need two views of an S-box and not three.

use std::sync::Arc;

use polyclave_field::Gf256;

use crate::table::{Affine, Inversion, Table};
use crate::{Builder, Cipher, Circuit, Matrix, Wire};

/// The three sizes.
pub fn ciphers() -> Vec<Cipher> {
    [4, 6, 8].map(cipher).into()
}

fn cipher(nk: usize) -> Cipher {
    Cipher {
        name: format!("aes-{}", 32 * nk),
        key_bytes: 4 * nk,
        block_bytes: 16,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(nk)),
        encrypt: Arc::new(encrypt(nk)),
        decrypt: Some(Arc::new(decrypt(nk))),
    }
}

fn rounds(nk: usize) -> usize {
    nk + 6
}

/// The linear part of the affine map of SubBytes: bit i of the output is the sum of bits i, i+4, i+5, i+6,
/// i+7.
fn affine_matrix() -> Matrix {
    Matrix::of(8, 8, |x| x ^ x.rotate_left(1) ^ x.rotate_left(2) ^ x.rotate_left(3) ^ x.rotate_left(4))
}

/// SubBytes (FIPS-197, 5.1.1).
pub fn s_box() -> Table {
    let after = Affine { matrix: affine_matrix(), constant: 0x63 };
    Table::from_inversion("AES S-box", Inversion { before: Affine::identity(8), after })
}

/// InvSubBytes (FIPS-197, 5.3.2).
pub fn inverse_s_box() -> Table {
    let matrix = affine_matrix().inverse().expect("the map of SubBytes is invertible");
    let before = Affine { matrix, constant: matrix.apply(0x63) };
    Table::from_inversion("AES inverse S-box", Inversion { before, after: Affine::identity(8) })
}

/// KeyExpansion (FIPS-197, 5.2): `key` to `round_keys`.
fn key_schedule(nk: usize) -> Circuit {
    let mut b = Builder::new(&format!("aes-{}-keyschedule", 32 * nk));
    let s = b.table(&Arc::new(s_box()));
    let mut w = b.uniform_input("key", 4 * nk, 8);
    let mut rcon = Gf256::ONE;
    for i in nk..4 * (rounds(nk) + 1) {
        let mut word: [Wire; 4] = [0, 1, 2, 3].map(|j| w[4 * (i - 1) + j]);
        if i % nk == 0 {
            word.rotate_left(1);
        }
        let mut constant = 0;
        if i % nk == 0 {
            constant = rcon.0;
            rcon *= Gf256(2);
        }
        if i % nk == 0 || (nk == 8 && i % nk == 4) {
            word = word.map(|x| b.lookup(s, x));
        }
        for (j, x) in word.into_iter().enumerate() {
            let constant = if j == 0 { constant } else { 0 };
            let previous = w[4 * (i - nk) + j];
            w.push(b.linear(vec![(x, Matrix::identity(8)), (previous, Matrix::identity(8))], constant));
        }
    }
    b.output("round_keys", &w);
    b.finish()
}

/// Cipher (FIPS-197, 5.1): `block` and `round_keys` to `block`.
fn encrypt(nk: usize) -> Circuit {
    let mut b = Builder::new(&format!("aes-{}-encrypt", 32 * nk));
    let s = b.table(&Arc::new(s_box()));
    let mut state = b.input("block", 16, 8);
    let keys = b.uniform_input("round_keys", 16 * (rounds(nk) + 1), 8);
    let key = |round: usize| &keys[16 * round..][..16];
    state = b.xor_each(&state, key(0));
    for round in 1..=rounds(nk) {
        let shifted = b.lookup_each(s, &shift_rows(&state, 1));
        state = if round < rounds(nk) {
            mix_columns_add_key(&mut b, &shifted, key(round))
        } else {
            b.xor_each(&shifted, key(round))
        };
    }
    b.output("block", &state);
    b.finish()
}

/// InvCipher (FIPS-197, 5.3), with the round keys of encryption.
fn decrypt(nk: usize) -> Circuit {
    let mut b = Builder::new(&format!("aes-{}-decrypt", 32 * nk));
    let s = b.table(&Arc::new(inverse_s_box()));
    let mut state = b.input("block", 16, 8);
    let keys = b.uniform_input("round_keys", 16 * (rounds(nk) + 1), 8);
    let key = |round: usize| &keys[16 * round..][..16];
    state = b.xor_each(&state, key(rounds(nk)));
    for round in (0..rounds(nk)).rev() {
        let shifted = b.lookup_each(s, &shift_rows(&state, 3));
        state = b.xor_each(&shifted, key(round));
        if round > 0 {
            state = inverse_mix_columns(&mut b, &state);
        }
    }
    b.output("block", &state);
    b.finish()
}

/// Row r moves left by r * `step` columns: step 1 is ShiftRows, step 3 its inverse.
fn shift_rows(state: &[Wire], step: usize) -> Vec<Wire> {
    (0..16).map(|i| state[(i + 4 * step * (i % 4)) % 16]).collect()
}

/// 2 a_i + 3 a_(i+1) + a_(i+2) + a_(i+3), the 3 as 2 and 1.
fn mix_columns_add_key(b: &mut Builder, state: &[Wire], key: &[Wire]) -> Vec<Wire> {
    let (one, two) = (Matrix::identity(8), Matrix::scalar(2));
    let cell = |i: usize| {
        let a = |k: usize| state[i / 4 * 4 + (i + k) % 4];
        vec![(a(0), two), (a(1), two), (a(1), one), (a(2), one), (a(3), one), (key[i], one)]
    };
    (0..16).map(|i| b.linear(cell(i), 0)).collect()
}

/// 14 a_i + 11 a_(i+1) + 13 a_(i+2) + 9 a_(i+3).
fn inverse_mix_columns(b: &mut Builder, state: &[Wire]) -> Vec<Wire> {
    let scalars = [14, 11, 13, 9].map(Matrix::scalar);
    let cell = |i: usize| (0..4).map(|k| (state[i / 4 * 4 + (i + k) % 4], scalars[k])).collect();
    (0..16).map(|i| b.linear(cell(i), 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_boxes_are_those_of_the_standard_and_inverse_to_each_other() {
        let (s, inverse) = (s_box(), inverse_s_box());
        assert_eq!(s.entries()[..4], [0x63, 0x7c, 0x77, 0x7b]);
        assert_eq!(s.entries()[0x53], 0xed);
        assert!((0..=255u8).all(|x| inverse.entries()[usize::from(s.entries()[usize::from(x)])] == x));
    }
}
