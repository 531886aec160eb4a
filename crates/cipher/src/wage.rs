//! The permutation of WAGE (Aagaard et al., submission to the NIST lightweight competition, round 2): a shift
//! register of 37 words of 7 bits, 111 steps.
//!
//! Cells are its words, a byte of each in text, word 0 first. It has no key and no inverse here: WAGE as a
//! mode runs it one way only. A multiplication by w in the feedback is the only map that is not an XOR. What
//! the feedback put in comes back to it after 37 steps, so where no matrix is free a lookup takes at most
//! four views.

use std::sync::Arc;

use crate::{Builder, Cipher, Circuit, Form, Gates, Matrix, Table};

/// There is one.
pub fn ciphers() -> Vec<Cipher> {
    vec![Cipher {
        name: "wage-permutation".into(),
        key_bytes: 0,
        block_bytes: WORDS,
        tweak_bytes: 0,
        key_schedule: Arc::new(Builder::new("wage-permutation-keyschedule").finish()),
        encrypt: Arc::new(permutation()),
        decrypt: None,
    }]
}

const WORDS: usize = 37;
const STEPS: usize = 111;

fn permutation() -> Circuit {
    let mut b = Builder::new("wage-permutation-encrypt");
    let (wgp, sb) = (b.table(&Arc::new(wgp())), b.table(&Arc::new(s_box())));
    let mut state = b.input("block", WORDS, 7);
    let mut constants = round_constants();
    for _ in 0..STEPS {
        let [rc0, rc1] = [0, 1].map(|_| constants.next().unwrap_or_default());
        // The feedback reads all words as they were before the step.
        let mut terms =
            vec![(state[0], Matrix::of(7, 7, times_w)), (b.lookup(wgp, state[36]), Matrix::identity(7))];
        terms.extend([6, 8, 12, 13, 19, 24, 26, 30, 31].map(|i: usize| (state[i], Matrix::identity(7))));
        let feedback = b.linear(terms, rc1);
        let added = [(5, 8, sb, 0), (11, 15, sb, 0), (19, 18, wgp, rc0), (24, 27, sb, 0), (30, 34, sb, 0)];
        for (to, from, table, constant) in added {
            let y = b.lookup(table, state[from]);
            state[to] = b.xor_constant(&[state[to], y], constant);
        }
        state.rotate_left(1);
        state[WORDS - 1] = feedback;
    }
    b.output("block", &state);
    b.finish()
}

/// The LFSR of 7 bits from which every step takes two constants.
fn round_constants() -> impl Iterator<Item = u8> {
    std::iter::successors(Some(0x7f), |x: &u8| Some(x >> 1 | ((x ^ x >> 1) & 1) << 6))
}

/// By w in GF(2)\[w\]/(w^7 + w^3 + w^2 + w + 1), the most significant bit being that of w^0.
fn times_w(x: u8) -> u8 {
    x >> 1 ^ if x & 1 == 1 { 0x78 } else { 0 }
}

fn times(x: u8, y: u8) -> u8 {
    let mut power = x;
    (0..7).rev().fold(0, |product, bit| {
        let term = if y >> bit & 1 == 1 { power } else { 0 };
        power = times_w(power);
        product ^ term
    })
}

fn power(x: u8, exponent: usize) -> u8 {
    const ONE: u8 = 0x40;
    std::iter::repeat_n(x, exponent).fold(ONE, times)
}

/// The Welch-Gong permutation with decimation 13: y + (y+1)^33 + (y+1)^39 + (y+1)^41 + (y+1)^104 of y = x^13.
pub fn wgp() -> Table {
    let entry = |x: u8| {
        let y = power(x, 13);
        [33, 39, 41, 104].into_iter().fold(y, |sum, exponent| sum ^ power(y ^ 0x40, exponent))
    };
    Table::new("WAGE WGP", 7, 7, (0..128).map(entry).collect())
}

/// SB: five times R, then Q, then two negations; 18 ANDs.
pub fn s_box() -> Table {
    Table::from_gates("WAGE SB", |g, bits: [Form; 7]| {
        // Bit 0 of the specification is the most significant.
        let mut x = bits;
        x.reverse();
        for _ in 0..5 {
            q(g, &mut x);
            x = [6, 3, 0, 4, 2, 5, 1].map(|from: usize| x[from]);
        }
        q(g, &mut x);
        (x[0], x[2]) = (!x[0], !x[2]);
        x.reverse();
        x
    })
}

fn q(g: &mut Gates, x: &mut [Form; 7]) {
    let product = g.and(x[2], x[3]);
    x[0] ^= product;
    let product = g.and(x[5], x[6]);
    x[3] = !x[3] ^ product;
    let product = g.and(x[2], x[4]);
    x[5] = !x[5] ^ product;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_submission() {
        assert_eq!(wgp().entries()[..8], [0x00, 0x12, 0x0a, 0x4b, 0x66, 0x0c, 0x48, 0x73]);
        assert_eq!(wgp().entries()[0x78..], [0x24, 0x74, 0x7f, 0x3d, 0x69, 0x64, 0x62, 0x6f]);
        assert_eq!(s_box().entries()[..8], [0x2e, 0x1c, 0x6d, 0x2b, 0x35, 0x07, 0x7f, 0x3b]);
        assert_eq!(s_box().entries()[0x78..], [0x79, 0x51, 0x23, 0x3f, 0x73, 0x5b, 0x20, 0x5c]);
    }

    #[test]
    fn round_constants_begin_as_in_the_submission() {
        let first: Vec<u8> = round_constants().take(8).collect();
        assert_eq!(first, [0x7f, 0x3f, 0x1f, 0x0f, 0x07, 0x03, 0x01, 0x40]);
    }
}
