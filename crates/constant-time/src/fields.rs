//! Elements one at a time and in rows, of every field.

use std::hint::black_box;

use polyclave_field::{Gf2_16, Gf2_40, Gf2_42, Gf2_64, Gf2_128, Gf128, Gf256, MacField, Word, tower};

use crate::{Subject, secrets};

/// More than any register holds, and no whole number of them.
const LEN: usize = 77;

pub const SUBJECTS: &[Subject] = &[
    ("field: GF(2^8)", gf256),
    ("field: GF(2^16)", gf2_16),
    ("field: GF(2^128) of GCM", gf128),
    ("field: GF(2^40)", mac_field::<Gf2_40>),
    ("field: GF(2^42)", mac_field::<Gf2_42>),
    ("field: GF(2^64)", mac_field::<Gf2_64>),
    ("field: GF(2^128)", mac_field::<Gf2_128>),
];

fn gf256() {
    for byte in secrets::bytes(LEN).chunks_exact(2) {
        let (a, b) = (Gf256(byte[0]), Gf256(byte[1]));
        black_box((a * b, a.inverse_or_zero(), Gf128::embed(a)));
    }
}

fn gf2_16() {
    let words = secrets::bytes(2 * LEN);
    let mut row: Vec<u16> = words.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let other = row.clone();
    Gf2_16::multiply_row(&mut row, &other);
    Gf2_16::add_multiple(&mut row, &other, 0x1234);
    black_box((Gf2_16::multiply(row[0], row[1]), Gf2_16::inner_product(&row, &other)));
}

fn gf128() {
    let (a, b) = (Gf128::from_bytes(secrets::block()), Gf128::from_bytes(secrets::block()));
    black_box((a * b, a.inverse_or_zero(), tower::split(a), tower::embed(tower::split(b)[0])));
    black_box(tower::join(tower::split(a * b)));
}

fn mac_field<F: MacField>() {
    let [a, b] = [0, 1].map(|_| secrets::words::<F::Word>(LEN, F::BITS));
    let mut cells = secrets::bytes(LEN);
    cells.iter_mut().for_each(|cell| *cell &= 0xff >> (8 - F::CELL_BITS));
    for ((a, b), cell) in a.iter().zip(&b).zip(&cells) {
        black_box((F::multiply(*a, *b), F::embed(*cell), F::project(*a)));
        // What a loop makes of a bit.
        let masked = (0..F::BITS).fold(F::Word::ZERO, |sum, i| sum ^ b.and(a.shift_right(i).spread()));
        black_box(masked);
    }
    let mut row = vec![F::Word::ZERO; LEN];
    F::multiply_rows(&mut row, &a, &b);
    F::combine(&mut row, &[(&a, F::Word::ONE), (&b, F::Word::ONE.shift_left(5))], F::Word::ONE);
    F::embed_row(&mut row, &cells);
    F::project_row(&mut cells, &b);
    let mut bytes = vec![0; LEN * F::BYTES];
    F::write_row(&row, &mut bytes);
    F::read_row(&bytes, &mut row);
    black_box((F::inner_product(&a, &row), F::embedded_inner_product(&a, &cells)));
}
