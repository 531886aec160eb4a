//! GIFT-64 and GIFT-128 (Banik et al., "GIFT: a small PRESENT", CHES 2017, ePrint 2017/622), in the paper's
//! order of bits.
//!
//! Cells of the block are nibbles, the most significant first. The bit permutation keeps a bit's place in its
//! nibble but takes the four of an S-box to four nibbles: four views of a lookup where no matrix is free. The
//! key is in single bits and only selected; a round key has two bits in every nibble.

use std::sync::Arc;

use crate::present::moved_bits;
use crate::skinny::round_constants;
use crate::{Builder, Cipher, Circuit, Matrix, Table, Wire};

/// By bits of the block; keys have 128.
pub fn ciphers() -> Vec<Cipher> {
    [64, 128].map(cipher).into()
}

fn cipher(bits: usize) -> Cipher {
    let name = format!("gift-{bits}");
    Cipher {
        key_bytes: 16,
        block_bytes: bits / 8,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(&format!("{name}-keyschedule"), bits)),
        encrypt: Arc::new(encrypt(&format!("{name}-encrypt"), bits)),
        decrypt: Some(Arc::new(decrypt(&format!("{name}-decrypt"), bits))),
        name,
    }
}

fn rounds(bits: usize) -> usize {
    if bits == 64 { 28 } else { 40 }
}

/// `key` to a nibble for every nibble of the block and every round.
fn key_schedule(name: &str, bits: usize) -> Circuit {
    let mut b = Builder::new(name);
    let key = b.uniform_input("key", 128, 1);
    // k0 first, and the least significant bit of each word first.
    let mut words: Vec<Vec<Wire>> =
        key.chunks(16).rev().map(|word| word.iter().rev().copied().collect()).collect();
    let mut round_keys = Vec::new();
    for _ in 0..rounds(bits) {
        let (u, v, at) = match bits {
            64 => (words[1].clone(), words[0].clone(), 0),
            _ => ([&words[4][..], &words[5]].concat(), [&words[0][..], &words[1]].concat(), 1),
        };
        for (u, v) in u.iter().zip(&v).rev() {
            round_keys.push(b.linear(vec![(*u, Matrix::place(4, at + 1)), (*v, Matrix::place(4, at))], 0));
        }
        words[0].rotate_left(12);
        words[1].rotate_left(2);
        words.rotate_left(2);
    }
    b.output("round_keys", &round_keys);
    b.finish()
}

fn encrypt(name: &str, bits: usize) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut state = b.input("block", bits / 4, 4);
    let keys = b.uniform_input("round_keys", bits / 4 * rounds(bits), 4);
    let to = destinations(bits);
    let from: Vec<usize> =
        (0..bits).map(|bit| to.iter().position(|t| *t == bit).expect("all bits")).collect();
    for (constant, key) in round_constants().zip(keys.chunks(bits / 4)) {
        let substituted = b.lookup_each(s, &state);
        let cell = |(i, mut terms): (usize, Vec<(Wire, Matrix)>)| {
            terms.push((key[i], Matrix::identity(4)));
            b.linear(terms, constant_of(constant, i, bits / 4))
        };
        state = moved_bits(&substituted, |bit| from[bit]).into_iter().enumerate().map(cell).collect();
    }
    b.output("block", &state);
    b.finish()
}

fn decrypt(name: &str, bits: usize) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(inverse_s_box()));
    let mut state = b.input("block", bits / 4, 4);
    let keys = b.uniform_input("round_keys", bits / 4 * rounds(bits), 4);
    let to = destinations(bits);
    let constants: Vec<u8> = round_constants().take(rounds(bits)).collect();
    for (constant, key) in constants.iter().zip(keys.chunks(bits / 4)).rev() {
        let cell = |i: usize| b.xor_constant(&[state[i], key[i]], constant_of(*constant, i, bits / 4));
        let keyed: Vec<Wire> = (0..bits / 4).map(cell).collect();
        state = moved_bits(&keyed, |bit| to[bit]).into_iter().map(|terms| b.linear(terms, 0)).collect();
        state = b.lookup_each(s, &state);
    }
    b.output("block", &state);
    b.finish()
}

/// Where each bit goes.
fn destinations(bits: usize) -> Vec<usize> {
    let to = |i: usize| 4 * (i / 16) + bits / 4 * ((3 * (i % 16 / 4) + i % 4) % 4) + i % 4;
    (0..bits).map(to).collect()
}

/// What a round adds to nibble i beside the key: the top bit of the six last ones, and always that of the
/// first.
fn constant_of(constant: u8, i: usize, nibbles: usize) -> u8 {
    let from_last = nibbles - 1 - i;
    let bit = if from_last < 6 { constant >> from_last & 1 } else { u8::from(i == 0) };
    bit << 3
}

/// The S-box.
pub fn s_box() -> Table {
    Table::new("GIFT S-box", 4, 4, S.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t1) = (g.and(x0, x1), g.and(x0, x2));
        let t2 = g.and(x3, x1 ^ t1);
        let t3 = g.and(x2 ^ x3, x0 ^ t2);
        [!(x0 ^ x1 ^ x2 ^ x3 ^ t0), x0 ^ x2 ^ x3 ^ t0 ^ t1, x1 ^ x2 ^ t1 ^ t3, x0 ^ t2]
    })
}

/// Its inverse.
pub fn inverse_s_box() -> Table {
    s_box().inverse("GIFT inverse S-box").with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t1) = (g.and(x0, x3), g.and(x1, x3));
        let t2 = g.and(x0 ^ x1, x0 ^ x2 ^ t0);
        let t3 = g.and(x2 ^ t0, x1 ^ x3 ^ t2);
        [!(x1 ^ x2 ^ x3 ^ t0 ^ t2), x0 ^ x2 ^ x3 ^ t1 ^ t2 ^ t3, !(x0 ^ x1 ^ x2 ^ t0), !(x0 ^ x2 ^ t1)]
    })
}

const S: [u8; 16] = [1, 10, 4, 12, 6, 15, 3, 9, 2, 13, 11, 7, 5, 0, 8, 14];
