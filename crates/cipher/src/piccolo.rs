//! Piccolo-80 and Piccolo-128 (Shibutani et al., "Piccolo: an ultra-lightweight blockcipher", CHES 2011): a
//! generalised Feistel network of four words of 16 bits.
//!
//! Cells are nibbles, the high one of a byte first. The matrix of the round function is circ(2, 3, 1, 1) over
//! GF(2^4), written with 1 and 2 only: where no multiplication is free, the S-boxes before it take two views,
//! those behind it one. The key schedule only selects words and adds constants.

use std::sync::Arc;

use crate::permutation::{gathered, scattered};
use crate::{Builder, Cipher, Circuit, Matrix, Table, TableId, Wire};

/// By bits of the key.
pub fn ciphers() -> Vec<Cipher> {
    [80, 128].map(cipher).into()
}

fn cipher(key_bits: usize) -> Cipher {
    let name = format!("piccolo-{key_bits}");
    Cipher {
        key_bytes: key_bits / 8,
        block_bytes: 8,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(&name, key_bits)),
        encrypt: Arc::new(crypt(&format!("{name}-encrypt"), rounds(key_bits), true)),
        decrypt: Some(Arc::new(crypt(&format!("{name}-decrypt"), rounds(key_bits), false))),
        name,
    }
}

fn rounds(key_bits: usize) -> usize {
    if key_bits == 80 { 25 } else { 31 }
}

/// Four whitening words, then two words a round with their constants.
fn key_schedule(name: &str, key_bits: usize) -> Circuit {
    let mut b = Builder::new(&format!("{name}-keyschedule"));
    let key = b.uniform_input("key", key_bits / 4, 4);
    let words: Vec<&[Wire]> = key.chunks(4).collect();
    let (last, mask) = if key_bits == 80 { (3, 0x0f1e_2d3c) } else { (7, 0x6547_a98b) };
    let mut round_keys = Vec::new();
    for (high, low) in [(0, 1), (1, 0), (4, last), (last, 4)] {
        round_keys.extend([&words[high][..2], &words[low][2..]].concat());
    }
    for (j, word) in key_words(key_bits).into_iter().enumerate() {
        let c = (j / 2 + 1) as u32;
        let pair = (c << 27 | c << 17 | c << 10 | c) ^ mask;
        let constant = if j % 2 == 0 { pair >> 16 } else { pair & 0xffff };
        for (i, cell) in words[word].iter().enumerate() {
            round_keys.push(b.xor_constant(&[*cell], (constant >> (12 - 4 * i)) as u8 & 15));
        }
    }
    b.output("round_keys", &round_keys);
    b.finish()
}

/// Which word of the key each word of the rounds is.
fn key_words(key_bits: usize) -> Vec<usize> {
    if key_bits == 80 {
        return [2, 3, 0, 1, 2, 3, 4, 4, 0, 1].into_iter().cycle().take(2 * rounds(80)).collect();
    }
    let mut order = [0, 1, 2, 3, 4, 5, 6, 7];
    let word = |j: usize| {
        if (j + 2).is_multiple_of(8) {
            order = [2, 1, 6, 7, 0, 3, 4, 5].map(|from| order[from]);
        }
        order[(j + 2) % 8]
    };
    (0..2 * rounds(128)).map(word).collect()
}

/// Rounds in either order: each is undone by itself.
fn crypt(name: &str, rounds: usize, forward: bool) -> Circuit {
    let mut b = Builder::new(name);
    let s = b.table(&Arc::new(s_box()));
    let mut state = b.input("block", 16, 4);
    let keys = b.uniform_input("round_keys", 16 + 8 * rounds, 4);
    let (whitening, keys) = keys.split_at(16);
    let (before, after) = if forward { whitening.split_at(8) } else { (&whitening[8..], &whitening[..8]) };
    whiten(&mut b, &mut state, before);
    for step in 0..rounds {
        let round = if forward { step } else { rounds - 1 - step };
        for (half, key) in keys[8 * round..][..8].chunks(4).enumerate() {
            let word = &mut state[8 * half..][..8];
            let function = round_function(&mut b, s, &word[..4]);
            for i in 0..4 {
                word[4 + i] = b.xor(&[word[4 + i], function[i], key[i]]);
            }
        }
        if step + 1 < rounds {
            state = if forward { gathered(&state, &SHUFFLE) } else { scattered(&state, &SHUFFLE) };
        }
    }
    whiten(&mut b, &mut state, after);
    b.output("block", &state);
    b.finish()
}

/// Adds two words to the words 0 and 2.
fn whiten(b: &mut Builder, state: &mut [Wire], key: &[Wire]) {
    for (i, key) in key.iter().enumerate() {
        let at = i / 4 * 8 + i % 4;
        state[at] = b.xor(&[state[at], *key]);
    }
}

/// F: S-boxes, the matrix, S-boxes.
fn round_function(b: &mut Builder, s: TableId, word: &[Wire]) -> Vec<Wire> {
    let x = b.lookup_each(s, word);
    let (one, two) = (Matrix::identity(4), Matrix::of(4, 4, |x| x << 1 & 15 ^ x >> 3 ^ x >> 3 << 1));
    let mixed = |i: usize| {
        let at = |k: usize| x[(i + k) % 4];
        b.linear(vec![(at(0), two), (at(1), two), (at(1), one), (at(2), one), (at(3), one)], 0)
    };
    let mixed: Vec<Wire> = (0..4).map(mixed).collect();
    b.lookup_each(s, &mixed)
}

/// The S-box.
pub fn s_box() -> Table {
    Table::new("Piccolo S-box", 4, 4, S.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t2) = (g.and(x1, x2), g.and(x2, x3));
        let (t1, t3) = (g.and(x0, x2 ^ x3 ^ t0), g.and(x1, x0 ^ x3 ^ t2));
        [x1 ^ x2 ^ x3 ^ t1 ^ t3, !(x0 ^ x3 ^ t0 ^ t2 ^ t3), !(x1 ^ x2 ^ x3 ^ t0), !(x0 ^ x2 ^ x3 ^ t2)]
    })
}

const S: [u8; 16] = [14, 4, 11, 2, 3, 8, 0, 9, 1, 10, 7, 15, 6, 12, 5, 13];

/// Bytes 2 7 4 1 6 3 0 5, in nibbles.
const SHUFFLE: [u8; 16] = [4, 5, 14, 15, 8, 9, 2, 3, 12, 13, 6, 7, 0, 1, 10, 11];
