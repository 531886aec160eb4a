//! TWINE-80 and TWINE-128 (Suzaki, Minematsu, Morioka, Kobayashi, "TWINE: a lightweight block cipher for
//! multiple platforms", SAC 2012): a generalised Feistel network of 16 nibbles.
//!
//! Cells are nibbles, the high one of a byte first. All rounds take one view of each S-box. The key schedule
//! looks up two or three nibbles a round.

use std::sync::Arc;

use crate::permutation::{gathered, scattered};
use crate::{Builder, Cipher, Circuit, Table, TableId, Wire};

/// By bits of the key.
pub fn ciphers() -> Vec<Cipher> {
    [80, 128].map(cipher).into()
}

fn cipher(key_bits: usize) -> Cipher {
    let name = format!("twine-{key_bits}");
    Cipher {
        key_bytes: key_bits / 8,
        block_bytes: 8,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(&format!("{name}-keyschedule"), key_bits / 4)),
        encrypt: Arc::new(encrypt(&format!("{name}-encrypt"))),
        decrypt: Some(Arc::new(decrypt(&format!("{name}-decrypt")))),
        name,
    }
}

const ROUNDS: usize = 36;

/// `key` of this many nibbles to eight nibbles a round.
fn key_schedule(name: &str, nibbles: usize) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut key = b.uniform_input("key", nibbles, 4);
    let is_long = nibbles == 32;
    let picked = if is_long { [2, 3, 12, 15, 17, 18, 28, 31] } else { [1, 3, 4, 6, 13, 14, 15, 16] };
    let mut round_keys = gathered(&key, &picked);
    // Powers of z in GF(2^6) with z^6 + z + 1.
    let constants = std::iter::successors(Some(1u8), |c| Some(c << 1 ^ if c >> 5 == 1 { 0x43 } else { 0 }));
    for constant in constants.take(ROUNDS - 1) {
        let mut add = |to: usize, from: usize| {
            let substituted = b.lookup(s, key[from]);
            key[to] = b.xor(&[key[to], substituted]);
        };
        add(1, 0);
        add(4, 16);
        if is_long {
            add(23, 30);
        }
        key[7] = b.xor_constant(&[key[7]], constant >> 3);
        key[19] = b.xor_constant(&[key[19]], constant & 7);
        key[..4].rotate_left(1);
        key.rotate_left(4);
        round_keys.extend(gathered(&key, &picked));
    }
    b.output("round_keys", &round_keys);
    b.finish()
}

fn encrypt(name: &str) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut state = b.input("block", 16, 4);
    let keys = b.uniform_input("round_keys", 8 * ROUNDS, 4);
    for (round, key) in keys.chunks(8).enumerate() {
        state = feistel(&mut b, s, &state, key);
        if round + 1 < ROUNDS {
            state = scattered(&state, &SHUFFLE);
        }
    }
    b.output("block", &state);
    b.finish()
}

fn decrypt(name: &str) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut state = b.input("block", 16, 4);
    let keys = b.uniform_input("round_keys", 8 * ROUNDS, 4);
    for (round, key) in keys.chunks(8).enumerate().rev() {
        if round + 1 < ROUNDS {
            state = gathered(&state, &SHUFFLE);
        }
        state = feistel(&mut b, s, &state, key);
    }
    b.output("block", &state);
    b.finish()
}

/// Adds S(x + key) of every even nibble to the one after it: undone by doing it again.
fn feistel(b: &mut Builder, s: TableId, state: &[Wire], key: &[Wire]) -> Vec<Wire> {
    let pair = |(pair, key): (&[Wire], &Wire)| {
        let x = b.xor(&[pair[0], *key]);
        let y = b.lookup(s, x);
        [pair[0], b.xor(&[pair[1], y])]
    };
    state.chunks(2).zip(key).flat_map(pair).collect()
}

/// The S-box, affine to inversion in GF(2^4): no four ANDs compute it.
pub fn s_box() -> Table {
    Table::new("TWINE S-box", 4, 4, S.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let t0 = g.and(x0, x1);
        let t1 = g.and(x0 ^ x1 ^ x2, x0 ^ x3 ^ t0);
        let t2 = g.and(x0 ^ x2, x0 ^ x1 ^ x3 ^ t1);
        let t3 = g.and(x0 ^ x2 ^ x3, x0 ^ x1 ^ x2 ^ t0);
        let t4 = g.and(x0 ^ x3, x0 ^ t0 ^ t1 ^ t3);
        [x0 ^ x1 ^ x2 ^ t1 ^ t2 ^ t3 ^ t4, x0 ^ x1 ^ t2 ^ t3, !(x2 ^ x3 ^ t0 ^ t1), !(x0 ^ x2 ^ t0 ^ t2)]
    })
}

const S: [u8; 16] = [12, 0, 15, 10, 2, 11, 9, 5, 8, 3, 13, 7, 1, 14, 6, 4];

/// Where each nibble goes.
const SHUFFLE: [u8; 16] = [5, 0, 1, 4, 7, 12, 3, 8, 13, 6, 9, 2, 15, 10, 11, 14];
