//! DES and Triple DES with two and three keys (FIPS 46-3, SP 800-67). Legacy: withdrawn for new encryption,
//! kept for systems that cannot change.
//!
//! Cells are single bits, numbered from 1 at the most significant as in the standard; a lookup takes a cell
//! of 6 bits put together from them, and its output bits are taken apart again. The key schedule only selects
//! bits, so it costs nothing; key parity bits are ignored. The permutations between the three DES of EDE
//! cancel, and the last round of one and the first of the next read the same half: 46 layers, not 48.

use std::sync::Arc;

use crate::{Builder, Cipher, Circuit, Matrix, Table, TableId, Wire};

/// DES, and EDE with three and with two keys.
pub fn ciphers() -> Vec<Cipher> {
    vec![cipher("des", &[0]), cipher("3des-ede3", &[0, 1, 2]), cipher("3des-ede2", &[0, 1, 0])]
}

/// `keys[i]` is which of the keys in the key string stage i uses.
fn cipher(name: &str, keys: &[usize]) -> Cipher {
    let distinct = keys.iter().max().map_or(0, |k| k + 1);
    Cipher {
        name: name.into(),
        key_bytes: 8 * distinct,
        block_bytes: 8,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(name, distinct)),
        encrypt: Arc::new(ede(name, keys, distinct, true)),
        decrypt: Some(Arc::new(ede(name, keys, distinct, false))),
    }
}

/// The 16 round keys of 48 bits of every key in the string.
fn key_schedule(name: &str, distinct: usize) -> Circuit {
    let mut b = Builder::new(&format!("{name}-keyschedule"));
    let key = b.uniform_input("key", 64 * distinct, 1);
    let mut round_keys = Vec::new();
    for k in key.chunks(64) {
        let mut halves: [Vec<Wire>; 2] = [select(k, &PC1[..28]), select(k, &PC1[28..])];
        for shift in SHIFTS {
            halves.iter_mut().for_each(|half| half.rotate_left(shift));
            round_keys.extend(select(&halves.concat(), &PC2));
        }
    }
    b.output("round_keys", &round_keys);
    b.finish()
}

/// Encrypt, decrypt, encrypt with the keys in order; or the inverse of that.
fn ede(name: &str, keys: &[usize], distinct: usize, forward: bool) -> Circuit {
    let direction = if forward { "encrypt" } else { "decrypt" };
    let mut b = Builder::new(&format!("{name}-{direction}"));
    let tables: Vec<TableId> = (0..8).map(|i| b.table(&Arc::new(s_box(i)))).collect();
    let block = b.input("block", 64, 1);
    let round_keys = b.uniform_input("round_keys", 768 * distinct, 1);
    let mut stages: Vec<(usize, bool)> =
        keys.iter().enumerate().map(|(i, k)| (*k, (i % 2 == 0) == forward)).collect();
    if !forward {
        stages.reverse();
    }

    let state = select(&block, &IP);
    let (mut left, mut right) = (state[..32].to_vec(), state[32..].to_vec());
    for (k, encrypts) in stages {
        for round in 0..16 {
            let round = if encrypts { round } else { 15 - round };
            let key = &round_keys[768 * k + 48 * round..][..48];
            let new_right = feistel(&mut b, &tables, &left, &right, key);
            left = std::mem::replace(&mut right, new_right);
        }
        // The halves are not swapped after round 16; IP of the next stage undoes the final permutation of
        // this one.
        std::mem::swap(&mut left, &mut right);
    }
    let pre_output = [left, right].concat();
    let mut ciphertext = vec![pre_output[0]; 64];
    IP.iter().zip(&pre_output).for_each(|(from, wire)| ciphertext[usize::from(*from) - 1] = *wire);
    b.output("block", &ciphertext);
    b.finish()
}

/// left + P(S(E(right) + key)).
fn feistel(b: &mut Builder, tables: &[TableId], left: &[Wire], right: &[Wire], key: &[Wire]) -> Vec<Wire> {
    let bit = Matrix::identity(1);
    let outputs: Vec<(Wire, u8)> = (0..8)
        .flat_map(|s| {
            let terms = (0..6).flat_map(|i| {
                let place = Matrix::place(6, 5 - i as u8);
                // E: row s has bits 4s .. 4s + 5 of the half, counted from 0, cyclically one to the left.
                [(right[(4 * s + i + 31) % 32], place), (key[6 * s + i], place)]
            });
            let x = b.linear(terms.collect(), 0);
            let y = b.lookup(tables[s], x);
            (0..4).map(move |i| (y, 3 - i))
        })
        .collect();
    let sum = |(i, left): (usize, &Wire)| {
        let (y, at) = outputs[usize::from(P[i]) - 1];
        b.linear(vec![(*left, bit), (y, Matrix::bit(4, at))], 0)
    };
    left.iter().enumerate().map(sum).collect()
}

/// The bits of the standard's numbers, from 1.
fn select(bits: &[Wire], numbers: &[u8]) -> Vec<Wire> {
    numbers.iter().map(|n| bits[usize::from(*n) - 1]).collect()
}

/// S-box `i` (0 to 7) on the 6 bits b1..b6: row b1 b6, column b2..b5.
pub fn s_box(i: usize) -> Table {
    let entry = |x: usize| S[i][(x >> 4 & 2 | x & 1) * 16 + (x >> 1 & 15)];
    Table::new(&format!("DES S{}", i + 1), 6, 4, (0..64).map(entry).collect())
}

const IP: [u8; 64] = [
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48,
    40, 32, 24, 16, 8, 57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61, 53, 45, 37, 29, 21,
    13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
];

const P: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6,
    22, 11, 4, 25,
];

const PC1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44,
    36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20,
    12, 4,
];

const PC2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52, 31, 37,
    47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

const SHIFTS: [usize; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

const S: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5,
        3, 8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14,
        10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9,
        11, 5, 0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12,
        0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11,
        15, 1, 13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3,
        11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10,
        14, 9, 10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11,
        12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9,
        8, 6, 4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9,
        10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11,
        3, 8, 9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7,
        6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15,
        8, 6, 1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15,
        14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14,
        9, 2, 7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0,
        3, 5, 6, 11,
    ],
];
