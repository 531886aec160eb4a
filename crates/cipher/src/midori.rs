//! Midori64 and Midori128 (Banik et al., "Midori: a block cipher for low energy", ASIACRYPT 2015, ePrint
//! 2015/1142).
//!
//! Cells are the nibbles or bytes of the state, column by column. The matrix is binary and every S-box an
//! involution: decryption runs the rounds backwards with the same tables, one view of each. MANTIS and CRAFT
//! take their S-box from here.

use std::sync::Arc;

use crate::permutation::{gathered, scattered};
use crate::{Builder, Cipher, Circuit, Form, Gates, Table, TableId, Wire};

/// Blocks of 64 and of 128 bits; keys have 128.
pub fn ciphers() -> Vec<Cipher> {
    [4, 8].map(cipher).into()
}

fn cipher(bits: u8) -> Cipher {
    Cipher {
        name: name(bits),
        key_bytes: 16,
        block_bytes: 2 * usize::from(bits),
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(bits)),
        encrypt: Arc::new(encrypt(bits)),
        decrypt: Some(Arc::new(decrypt(bits))),
    }
}

fn name(bits: u8) -> String {
    format!("midori{}", 16 * usize::from(bits))
}

fn rounds(bits: u8) -> usize {
    if bits == 4 { 16 } else { 20 }
}

/// The whitening key, and the key that each round adds to its constant: for blocks of 64 bits K0 + K1, K0 and
/// K1, for those of 128 the key alone, which is all of them.
fn key_schedule(bits: u8) -> Circuit {
    let mut b = Builder::new(&format!("{}-keyschedule", name(bits)));
    let key = b.uniform_input("key", 128 / usize::from(bits), bits);
    let round_keys = match bits {
        4 => [b.xor_each(&key[..16], &key[16..]), key].concat(),
        _ => key,
    };
    b.output("round_keys", &round_keys);
    b.finish()
}

/// The ports and tables of both directions.
struct Parts {
    state: Vec<Wire>,
    keys: Vec<Wire>,
    /// The S-boxes. Cell i has `tables[i % 4]`.
    tables: [TableId; 4],
}

impl Parts {
    fn declare(b: &mut Builder, bits: u8) -> Parts {
        let tables =
            [0, 1, 2, 3].map(|i| b.table(&Arc::new(if bits == 4 { s_box_0() } else { s_box_of_cell(i) })));
        let state = b.input("block", 16, bits);
        let keys = b.uniform_input("round_keys", if bits == 4 { 48 } else { 16 }, bits);
        Parts { state, keys, tables }
    }

    fn whitening(&self) -> &[Wire] {
        &self.keys[..16]
    }

    fn round_key(&self, round: usize) -> &[Wire] {
        if self.keys.len() == 16 { &self.keys } else { &self.keys[16 + 16 * (round % 2)..][..16] }
    }

    fn substituted(&self, b: &mut Builder, state: &[Wire]) -> Vec<Wire> {
        state.iter().enumerate().map(|(i, x)| b.lookup(self.tables[i % 4], *x)).collect()
    }
}

fn encrypt(bits: u8) -> Circuit {
    let mut b = Builder::new(&format!("{}-encrypt", name(bits)));
    let parts = Parts::declare(&mut b, bits);
    let mut state = b.xor_each(&parts.state, parts.whitening());
    for round in 0..rounds(bits) - 1 {
        let shuffled = gathered(&parts.substituted(&mut b, &state), &SHUFFLE);
        let cell = |i: usize| {
            let [x, y, z] = others_of_column(&shuffled, i);
            b.xor_constant(&[x, y, z, parts.round_key(round)[i]], constant(round, i))
        };
        state = (0..16).map(cell).collect();
    }
    state = parts.substituted(&mut b, &state);
    state = b.xor_each(&state, parts.whitening());
    b.output("block", &state);
    b.finish()
}

fn decrypt(bits: u8) -> Circuit {
    let mut b = Builder::new(&format!("{}-decrypt", name(bits)));
    let parts = Parts::declare(&mut b, bits);
    let mut state = b.xor_each(&parts.state, parts.whitening());
    state = parts.substituted(&mut b, &state);
    for round in (0..rounds(bits) - 1).rev() {
        let key = parts.round_key(round);
        let keyed: Vec<Wire> =
            (0..16).map(|i| b.xor_constant(&[state[i], key[i]], constant(round, i))).collect();
        let mixed: Vec<Wire> = (0..16).map(|i| b.xor(&others_of_column(&keyed, i))).collect();
        state = parts.substituted(&mut b, &scattered(&mixed, &SHUFFLE));
    }
    state = b.xor_each(&state, parts.whitening());
    b.output("block", &state);
    b.finish()
}

/// What the matrix circ(0, 1, 1, 1) adds for a cell.
fn others_of_column(state: &[Wire], i: usize) -> [Wire; 3] {
    [1, 2, 3].map(|k| state[i / 4 * 4 + (i + k) % 4])
}

/// What a round adds to cell i beside the key. (The paper's matrices of digits of pi are hit row by row,
/// though the state is written column by column.)
fn constant(round: usize, i: usize) -> u8 {
    (CONSTANTS[round] >> (15 - i) & 1) as u8
}

/// Sb0, an involution, which MANTIS and CRAFT use too.
pub fn s_box_0() -> Table {
    Table::new("Midori Sb0", 4, 4, SB0.into()).with_gates(|g, [x0, x1, x2, x3]| {
        let (t0, t2) = (g.and(x0, x2), g.and(x0 ^ x2, x3));
        let (t1, t3) = (g.and(x1, x0 ^ x3 ^ t0), g.and(x1 ^ x3, x0 ^ x1 ^ t2));
        [t0 ^ t1 ^ t2 ^ t3, x0 ^ x2 ^ t0 ^ t2, !(x0 ^ x1 ^ x3 ^ t1 ^ t2 ^ t3), !(x1 ^ t3)]
    })
}

/// Sb1, an involution. No four ANDs compute it.
pub fn s_box_1() -> Table {
    Table::new("Midori Sb1", 4, 4, SB1.into()).with_gates(sb1)
}

fn sb1(g: &mut Gates, [x0, x1, x2, x3]: [Form; 4]) -> [Form; 4] {
    let t0 = g.and(x0, x1 ^ x2);
    let t1 = g.and(x3, x2 ^ t0);
    let t2 = g.and(x0 ^ x2 ^ x3, x0 ^ x2 ^ t0);
    let t3 = g.and(x1, x0 ^ t1 ^ t2);
    let t4 = g.and(x0 ^ x1 ^ x3, x0 ^ t0 ^ t2);
    [!(x0 ^ x2 ^ t0 ^ t4), x0 ^ t2, x0 ^ x1 ^ x3 ^ t0 ^ t2 ^ t3, x2 ^ x3 ^ t0 ^ t1 ^ t3 ^ t4]
}

/// SSb of the cells i, i + 4, .. of Midori128: the bits in another order, two Sb1, and back.
pub fn s_box_of_cell(i: usize) -> Table {
    Table::from_gates(&format!("Midori SSb{i}"), |g, x: [Form; 8]| {
        // The paper counts bits from the most significant.
        let from = ORDERS[i].map(|bit| 7 - bit);
        let [high, low] =
            [0, 4].map(|k| sb1(g, [x[from[k + 3]], x[from[k + 2]], x[from[k + 1]], x[from[k]]]));
        let mut y = x;
        for k in 0..4 {
            (y[from[k]], y[from[k + 4]]) = (high[3 - k], low[3 - k]);
        }
        y
    })
}

const SB0: [u8; 16] = [12, 10, 13, 3, 14, 11, 15, 7, 8, 9, 1, 5, 0, 2, 4, 6];
const SB1: [u8; 16] = [1, 0, 5, 3, 14, 2, 15, 7, 13, 10, 9, 11, 12, 8, 4, 6];

const ORDERS: [[usize; 8]; 4] =
    [[4, 1, 6, 3, 0, 5, 2, 7], [1, 6, 7, 0, 5, 2, 3, 4], [2, 3, 4, 1, 6, 7, 0, 5], [7, 4, 1, 2, 3, 0, 5, 6]];

const SHUFFLE: [u8; 16] = [0, 10, 5, 15, 14, 4, 11, 1, 9, 3, 12, 6, 7, 13, 2, 8];

const CONSTANTS: [u16; 19] = [
    0x15b3, 0x78c0, 0xa435, 0x6213, 0x104f, 0xd170, 0x0266, 0x0bcc, 0x9481, 0x40b8, 0x7197, 0x228e, 0x5130,
    0xf8ca, 0xdf90, 0x7c81, 0x1c24, 0x23b4, 0x628a,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_boxes_are_involutions() {
        let eight = [0, 1, 2, 3].map(s_box_of_cell);
        for table in eight.iter().chain(&[s_box_0(), s_box_1()]) {
            assert_eq!(table.inverse(table.name()).entries(), table.entries(), "{}", table.name());
        }
    }
}
