//! PRESENT-80 and PRESENT-128 (Bogdanov et al., "PRESENT: an ultra-lightweight block cipher", CHES 2007;
//! ISO/IEC 29192-2).
//!
//! Cells of the block are nibbles, the most significant first. The bit permutation takes every output bit of
//! an S-box to another nibble: where no matrix is free, a lookup takes four views. The key is in single bits,
//! since its register turns by 61; round keys are put together as nibbles.

use std::sync::Arc;

use crate::{Builder, Cipher, Circuit, Matrix, Table, Wire};

/// By bits of the key.
pub fn ciphers() -> Vec<Cipher> {
    [80, 128].map(cipher).into()
}

fn cipher(key_bits: usize) -> Cipher {
    let name = format!("present-{key_bits}");
    Cipher {
        key_bytes: key_bits / 8,
        block_bytes: 8,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(&format!("{name}-keyschedule"), key_bits)),
        encrypt: Arc::new(encrypt(&format!("{name}-encrypt"))),
        decrypt: Some(Arc::new(decrypt(&format!("{name}-decrypt")))),
        name,
    }
}

const ROUNDS: usize = 31;

/// `key` to 32 round keys of 16 nibbles: the left of the register, which turns, has its first nibbles
/// substituted and the number of the round added.
fn key_schedule(name: &str, key_bits: usize) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut register = b.uniform_input("key", key_bits, 1);
    let (substituted, counter) = if key_bits == 80 { (1, 15) } else { (2, 62) };
    let mut round_keys = Vec::new();
    for round in 1..=ROUNDS as u8 + 1 {
        for nibble in register[..64].chunks(4) {
            round_keys.push(nibble_of(&mut b, nibble));
        }
        if usize::from(round) > ROUNDS {
            break;
        }
        register.rotate_left(61);
        for nibble in register.chunks_mut(4).take(substituted) {
            let x = nibble_of(&mut b, nibble);
            let y = b.lookup(s, x);
            for (bit, at) in nibble.iter_mut().rev().zip(0..) {
                *bit = b.linear(vec![(y, Matrix::bit(4, at))], 0);
            }
        }
        for i in (0..5).filter(|i| round >> i & 1 == 1) {
            let bit = &mut register[key_bits - 1 - counter - i];
            *bit = b.xor_constant(&[*bit], 1);
        }
    }
    b.output("round_keys", &round_keys);
    b.finish()
}

/// Four bits, the most significant first, as one cell.
pub(crate) fn nibble_of(b: &mut Builder, bits: &[Wire]) -> Wire {
    b.linear(bits.iter().zip([3, 2, 1, 0]).map(|(bit, at)| (*bit, Matrix::place(4, at))).collect(), 0)
}

fn encrypt(name: &str) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let block = b.input("block", 16, 4);
    let keys = b.uniform_input("round_keys", 16 * (ROUNDS + 1), 4);
    let mut state = b.xor_each(&block, &keys[..16]);
    for key in keys[16..].chunks(16) {
        let substituted = b.lookup_each(s, &state);
        let sum = |(mut terms, key): (Vec<(Wire, Matrix)>, &Wire)| {
            terms.push((*key, Matrix::identity(4)));
            b.linear(terms, 0)
        };
        let moved = moved_bits(&substituted, |bit| bit % 16 * 4 + bit / 16);
        state = moved.into_iter().zip(key).map(sum).collect();
    }
    b.output("block", &state);
    b.finish()
}

fn decrypt(name: &str) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(inverse_s_box()));
    let mut state = b.input("block", 16, 4);
    let keys = b.uniform_input("round_keys", 16 * (ROUNDS + 1), 4);
    for key in keys[16..].chunks(16).rev() {
        let keyed = b.xor_each(&state, key);
        let moved = moved_bits(&keyed, |bit| bit % 4 * 16 + bit / 4);
        state = moved.into_iter().map(|terms| b.linear(terms, 0)).collect();
        state = b.lookup_each(s, &state);
    }
    state = b.xor_each(&state, &keys[..16]);
    b.output("block", &state);
    b.finish()
}

/// The terms of each nibble of a bit permutation: bit i of the result, from the least significant of the last
/// nibble, is bit `from(i)`.
pub(crate) fn moved_bits(state: &[Wire], from: impl Fn(usize) -> usize) -> Vec<Vec<(Wire, Matrix)>> {
    let last = state.len() - 1;
    let term = |cell: usize, at: usize| {
        let bit = from(4 * (last - cell) + at);
        (state[last - bit / 4], Matrix::of(4, 4, |x| (x >> (bit % 4) & 1) << at))
    };
    (0..=last).map(|cell| (0..4).map(|at| term(cell, at)).collect()).collect()
}

/// The S-box.
pub fn s_box() -> Table {
    Table::new("PRESENT S-box", 4, 4, S.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t2) = (g.and(x1, x2), g.and(x1 ^ x2, x3));
        let (t1, t3) = (g.and(x0 ^ x1, x0 ^ x3 ^ t0), g.and(x0, t0 ^ t2));
        [x0 ^ x2 ^ x3 ^ t0, x1 ^ x3 ^ t2 ^ t3, !(x0 ^ x2 ^ x3 ^ t0 ^ t1 ^ t3), !(x0 ^ x1 ^ x3 ^ t0 ^ t3)]
    })
}

/// Its inverse.
pub fn inverse_s_box() -> Table {
    s_box().inverse("PRESENT inverse S-box").with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t2) = (g.and(x1, x3), g.and(x0 ^ x2, x1 ^ x3));
        let (t1, t3) = (g.and(x0 ^ x1, x2 ^ x3 ^ t0), g.and(x0, x3 ^ t2));
        [!(x0 ^ x2 ^ t0), x0 ^ x1 ^ x3 ^ t0 ^ t1 ^ t2 ^ t3, !(x3 ^ t0 ^ t1 ^ t3), x0 ^ x1 ^ x2 ^ x3 ^ t3]
    })
}

const S: [u8; 16] = [12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2];
