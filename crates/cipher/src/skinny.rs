//! SKINNY, all six versions (Beierle et al., "The SKINNY family of block ciphers and its low-latency variant
//! MANTIS", CRYPTO 2016, ePrint 2016/660).
//!
//! Cells are the nibbles or bytes of the state, row by row. The whole tweakey goes in as `key`; the round
//! keys are the eight cells that a round adds, so the LFSRs of the tweakey are maps in the key schedule only.
//! MixColumns is binary: a round takes one view of each S-box.

use std::sync::Arc;

use crate::permutation::gathered;
use crate::{Builder, Cipher, Circuit, Form, Gates, Matrix, Table, Wire};

/// Blocks of 64 and of 128 bits, tweakeys of one to three times as many.
pub fn ciphers() -> Vec<Cipher> {
    [(4, 1, 32), (4, 2, 36), (4, 3, 40), (8, 1, 40), (8, 2, 48), (8, 3, 56)]
        .map(|(bits, tweakeys, rounds)| Version { bits, tweakeys, rounds }.cipher())
        .into()
}

#[derive(Clone, Copy)]
struct Version {
    bits: u8,
    /// Blocks in the tweakey.
    tweakeys: usize,
    rounds: usize,
}

impl Version {
    fn cipher(self) -> Cipher {
        let block_bytes = 2 * usize::from(self.bits);
        Cipher {
            name: self.name(),
            key_bytes: block_bytes * self.tweakeys,
            block_bytes,
            tweak_bytes: 0,
            key_schedule: Arc::new(self.key_schedule()),
            encrypt: Arc::new(self.encrypt()),
            decrypt: Some(Arc::new(self.decrypt())),
        }
    }

    fn name(self) -> String {
        let block = 16 * usize::from(self.bits);
        format!("skinny-{block}-{}", block * self.tweakeys)
    }

    /// `key`, the tweakey, to the eight cells of each round. The first block of the tweakey is only permuted.
    fn key_schedule(self) -> Circuit {
        let mut b = Builder::new(&format!("{}-keyschedule", self.name()));
        let key = b.uniform_input("key", 16 * self.tweakeys, self.bits);
        let mut blocks: Vec<Vec<Wire>> = key.chunks(16).map(<[Wire]>::to_vec).collect();
        let mut round_keys = Vec::new();
        for _ in 0..self.rounds {
            for cell in 0..8 {
                round_keys.push(b.xor(&blocks.iter().map(|block| block[cell]).collect::<Vec<_>>()));
            }
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = gathered(block, &TWEAKEY_PERMUTATION);
                if i > 0 {
                    let lfsr = lfsr(self.bits, i);
                    block[..8].iter_mut().for_each(|cell| *cell = b.linear(vec![(*cell, lfsr)], 0));
                }
            }
        }
        b.output("round_keys", &round_keys);
        b.finish()
    }

    fn encrypt(self) -> Circuit {
        let mut b = Builder::new(&format!("{}-encrypt", self.name()));
        let s = b.table(&Arc::new(s_box(self.bits)));
        let mut state = b.input("block", 16, self.bits);
        let keys = b.uniform_input("round_keys", 8 * self.rounds, self.bits);
        for (constant, key) in round_constants().zip(keys.chunks(8)) {
            let substituted = b.lookup_each(s, &state);
            state = add_constant_and_key(&mut b, &substituted, constant, key);
            // ShiftRows goes to the right.
            let at = |row: usize, column: usize| state[4 * row + (column + 4 - row) % 4];
            let mixed = |row: usize, b: &mut Builder| -> Vec<Wire> {
                let rows: &[usize] = [&[0, 2, 3][..], &[0], &[1, 2], &[0, 2]][row];
                (0..4).map(|c| b.xor(&rows.iter().map(|r| at(*r, c)).collect::<Vec<_>>())).collect()
            };
            state = (0..4).flat_map(|row| mixed(row, &mut b)).collect();
        }
        b.output("block", &state);
        b.finish()
    }

    fn decrypt(self) -> Circuit {
        let mut b = Builder::new(&format!("{}-decrypt", self.name()));
        let s = b.table(&Arc::new(inverse_s_box(self.bits)));
        let mut state = b.input("block", 16, self.bits);
        let keys = b.uniform_input("round_keys", 8 * self.rounds, self.bits);
        let constants: Vec<u8> = round_constants().take(self.rounds).collect();
        for (constant, key) in constants.iter().zip(keys.chunks(8)).rev() {
            let unmixed = |i: usize, b: &mut Builder| {
                let (row, column) = (i / 4, (i + i / 4) % 4);
                let rows: &[usize] = [&[1][..], &[1, 2, 3], &[1, 3], &[0, 3]][row];
                b.xor(&rows.iter().map(|r| state[4 * r + column]).collect::<Vec<_>>())
            };
            state = (0..16).map(|i| unmixed(i, &mut b)).collect();
            state = add_constant_and_key(&mut b, &state, *constant, key);
            state = b.lookup_each(s, &state);
        }
        b.output("block", &state);
        b.finish()
    }
}

/// AddConstants and AddRoundTweakey.
fn add_constant_and_key(b: &mut Builder, state: &[Wire], constant: u8, key: &[Wire]) -> Vec<Wire> {
    let constants = [(0, constant & 15), (4, constant >> 4), (8, 2)];
    let sum = |(i, x): (usize, &Wire)| {
        let constant = constants.iter().find(|(at, _)| *at == i).map_or(0, |(_, c)| *c);
        match key.get(i) {
            Some(key) => b.xor_constant(&[*x, *key], constant),
            None if constant != 0 => b.xor_constant(&[*x], constant),
            None => *x,
        }
    };
    state.iter().enumerate().map(sum).collect()
}

/// The 6-bit LFSR of the rounds, which GIFT shares: from 0, moved before it is used.
pub(crate) fn round_constants() -> impl Iterator<Item = u8> {
    let next = |rc: &u8| Some(rc << 1 & 0x3f | (rc >> 5 ^ rc >> 4 ^ 1) & 1);
    std::iter::successors(next(&0), next)
}

/// The LFSR on the cells of the tweakey's block 1 or 2 (TK2, TK3).
fn lfsr(bits: u8, block: usize) -> Matrix {
    match (bits, block) {
        (4, 1) => Matrix::of(4, 4, |x| x << 1 & 15 | (x >> 3 ^ x >> 2) & 1),
        (4, _) => Matrix::of(4, 4, |x| x >> 1 | ((x ^ x >> 3) & 1) << 3),
        (_, 1) => Matrix::of(8, 8, |x| x << 1 | (x >> 7 ^ x >> 5) & 1),
        (_, _) => Matrix::of(8, 8, |x| x >> 1 | ((x ^ x >> 6) & 1) << 7),
    }
}

/// The S-box on cells of 4 or 8 bits.
pub fn s_box(bits: u8) -> Table {
    if bits == 8 {
        return Table::from_gates("SKINNY S8", |g, mut x: [Form; 8]| {
            for iteration in 0..4 {
                mix_eight(g, &mut x);
                x = if iteration < 3 { EIGHT.map(|from| x[from]) } else { LAST_EIGHT.map(|from| x[from]) };
            }
            x
        });
    }
    Table::new("SKINNY S4", 4, 4, S4.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t2) = (g.and(x1, x2), g.and(x2, x3));
        let (t1, t3) = (g.and(x0, x2 ^ x3 ^ t0), g.and(x1, x0 ^ x3 ^ t2));
        [x1 ^ x2 ^ x3 ^ t1 ^ t3, x0 ^ x3 ^ t0 ^ t2 ^ t3, !(x1 ^ x2 ^ x3 ^ t0), !(x0 ^ x2 ^ x3 ^ t2)]
    })
}

/// Its inverse.
pub fn inverse_s_box(bits: u8) -> Table {
    if bits == 8 {
        return Table::from_gates("SKINNY inverse S8", |g, mut x: [Form; 8]| {
            for iteration in (0..4).rev() {
                let order = if iteration < 3 { EIGHT } else { LAST_EIGHT };
                x = std::array::from_fn(|i| x[order.iter().position(|from| *from == i).unwrap_or(i)]);
                mix_eight(g, &mut x);
            }
            x
        });
    }
    s_box(4).inverse("SKINNY inverse S4").with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t1) = (g.and(x0, x3), g.and(x2, x3));
        let (t2, t3) = (g.and(x1, x0 ^ x2 ^ x3 ^ t1), g.and(x2, x0 ^ x1 ^ t0));
        [!(x0 ^ x1 ^ x2 ^ t2 ^ t3), !(x0 ^ x2 ^ x3 ^ t1), x0 ^ x1 ^ x2 ^ t0 ^ t1, x2 ^ x3 ^ t0 ^ t2]
    })
}

/// The two NORs of an iteration of S8.
fn mix_eight(g: &mut Gates, x: &mut [Form; 8]) {
    let (upper, lower) = (g.nor(x[7], x[6]), g.nor(x[3], x[2]));
    x[4] ^= upper;
    x[0] ^= lower;
}

/// Where the bits 0 to 7 come from between the iterations of S8, and after the last.
const EIGHT: [usize; 8] = [5, 3, 0, 4, 6, 7, 1, 2];
const LAST_EIGHT: [usize; 8] = [0, 2, 1, 3, 4, 5, 6, 7];

const S4: [u8; 16] = [12, 6, 9, 0, 1, 10, 2, 11, 3, 8, 5, 13, 4, 14, 7, 15];

const TWEAKEY_PERMUTATION: [u8; 16] = [9, 15, 8, 13, 10, 14, 12, 11, 0, 1, 2, 3, 4, 5, 6, 7];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_is_that_of_the_paper() {
        let s = s_box(8);
        assert_eq!(s.entries()[..8], [0x65, 0x4c, 0x6a, 0x42, 0x4b, 0x63, 0x43, 0x6b]);
        assert_eq!(s.entries()[0xf8..], [0xd2, 0xf2, 0xde, 0xfe, 0xd7, 0xf7, 0xdf, 0xff]);
        assert_eq!(s.inverse("SKINNY inverse S8").entries(), inverse_s_box(8).entries());
    }
}
