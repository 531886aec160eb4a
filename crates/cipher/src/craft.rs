//! CRAFT (Beierle et al., "CRAFT: lightweight tweakable block cipher with efficient protection against DFA
//! attacks", ToSC 2019(1)).
//!
//! Cells are the nibbles of the state, row by row. The S-box is Sb0 of Midori; matrix, permutation and S-box
//! are involutions. Key and tweak are only added, so the round keys are the key; the tweak comes with each
//! block.

use std::sync::Arc;

use crate::midori::s_box_0;
use crate::permutation::gathered;
use crate::{Builder, Cipher, Circuit, Wire};

/// There is one.
pub fn ciphers() -> Vec<Cipher> {
    vec![Cipher {
        name: "craft".into(),
        key_bytes: 16,
        block_bytes: 8,
        tweak_bytes: 8,
        key_schedule: Arc::new(key_schedule()),
        encrypt: Arc::new(encrypt()),
        decrypt: Some(Arc::new(decrypt())),
    }]
}

const ROUNDS: usize = 32;

/// The round keys are the two halves of the key.
fn key_schedule() -> Circuit {
    let mut b = Builder::new("craft-keyschedule");
    let key = b.uniform_input("key", 32, 4);
    b.output("round_keys", &key);
    b.finish()
}

/// Key and tweak, and the tweak in its other order.
struct Tweakey {
    keys: Vec<Wire>,
    tweaks: [Vec<Wire>; 2],
}

impl Tweakey {
    fn declare(b: &mut Builder) -> Tweakey {
        let tweak = b.input("tweak", 16, 4);
        let keys = b.uniform_input("round_keys", 32, 4);
        Tweakey { keys, tweaks: [gathered(&tweak, &TWEAK_PERMUTATION), tweak] }
    }

    /// K0 + T, K1 + T, K0 + Q(T), K1 + Q(T) in turn.
    fn cells(&self, round: usize, i: usize) -> [Wire; 2] {
        [self.keys[16 * (round % 2) + i], self.tweaks[1 - round % 4 / 2][i]]
    }
}

fn encrypt() -> Circuit {
    let mut b = Builder::new("craft-encrypt");
    let s = b.table(&Arc::new(s_box_0()));
    let mut state = b.input("block", 16, 4);
    let tweakey = Tweakey::declare(&mut b);
    for round in 0..ROUNDS {
        let cell = |i: usize| {
            let added = [&mixed(&state, i)[..], &tweakey.cells(round, i)].concat();
            b.xor_constant(&added, constant(round, i))
        };
        state = (0..16).map(cell).collect();
        if round + 1 < ROUNDS {
            state = b.lookup_each(s, &gathered(&state, &PERMUTATION));
        }
    }
    b.output("block", &state);
    b.finish()
}

fn decrypt() -> Circuit {
    let mut b = Builder::new("craft-decrypt");
    let s = b.table(&Arc::new(s_box_0()));
    let mut state = b.input("block", 16, 4);
    let tweakey = Tweakey::declare(&mut b);
    for round in (0..ROUNDS).rev() {
        if round + 1 < ROUNDS {
            state = gathered(&b.lookup_each(s, &state), &PERMUTATION);
        }
        let cell = |i: usize| {
            let [key, tweak] = tweakey.cells(round, i);
            b.xor_constant(&[state[i], key, tweak], constant(round, i))
        };
        let keyed: Vec<Wire> = (0..16).map(cell).collect();
        state = (0..16).map(|i| b.xor(&mixed(&keyed, i))).collect();
    }
    b.output("block", &state);
    b.finish()
}

/// What MixColumn, an involution, adds for a cell: rows 2 and 3 to row 0, row 3 to row 1.
fn mixed(state: &[Wire], i: usize) -> Vec<Wire> {
    let rows: &[usize] = [&[0, 2, 3][..], &[1, 3], &[2], &[3]][i / 4];
    rows.iter().map(|row| state[4 * row + i % 4]).collect()
}

/// What a round adds to a cell: the states of two LFSRs of 4 and 3 bits.
fn constant(round: usize, i: usize) -> u8 {
    match i {
        4 => FOUR_BITS[round % 15],
        5 => THREE_BITS[round % 7],
        _ => 0,
    }
}

const FOUR_BITS: [u8; 15] = [1, 8, 4, 2, 9, 12, 6, 11, 5, 10, 13, 14, 15, 7, 3];
const THREE_BITS: [u8; 7] = [1, 4, 2, 5, 6, 7, 3];

const PERMUTATION: [u8; 16] = [15, 12, 13, 14, 10, 9, 8, 11, 6, 5, 4, 7, 1, 2, 3, 0];
const TWEAK_PERMUTATION: [u8; 16] = [12, 10, 15, 5, 14, 8, 9, 2, 11, 3, 7, 4, 6, 0, 1, 13];
