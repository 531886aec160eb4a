//! Circuits of single bits with XOR, NOT and AND: for protocols that are fast at these, and for exchange with
//! other programs ([`crate::bristol`]).
//!
//! They are ordinary circuits. Cells have one bit. The only lookup is in [`and_table`], on a cell of two
//! bits, and one linear map makes this cell from the operands. So [`Circuit::lookups`] is the number of ANDs
//! and [`Circuit::layers`] their depth. Ports hold bytes as in other circuits, with the most significant bit
//! of the first byte in the first cell. Numbers are big-endian.
//!
//! [`expand`] turns a cipher of the catalog into such a circuit.

mod arithmetic;
mod builder;
mod decomposition;
mod emit;
mod expand;
mod inversion;
pub(crate) mod sha2;
mod sums;
pub mod words;

use std::sync::Arc;

use crate::{Cipher, Circuit, Direction, catalog};

pub use arithmetic::{adder, comparator};
pub use builder::{Bit, BooleanBuilder, Word, words_of};
pub use emit::and_table;
pub use expand::expand;
pub use sha2::sha256_compression;

/// The cipher of this name in the catalog as Boolean circuits.
pub fn cipher(name: &str) -> Option<Cipher> {
    catalog::find(name).map(expanded)
}

/// A cipher with its circuits [expanded](expand).
pub fn expanded(cipher: Cipher) -> Cipher {
    Cipher {
        key_schedule: Arc::new(expand(&cipher.key_schedule)),
        encrypt: Arc::new(expand(&cipher.encrypt)),
        decrypt: cipher.decrypt.map(|circuit| Arc::new(expand(&circuit))),
        ..cipher
    }
}

/// A name, and the function that makes the circuit with that name.
pub type Named = (&'static str, fn() -> Circuit);

/// The circuits that are shipped as files (folder `circuits`), by name. Each is made when it is asked for:
///
/// * `aes-128`: `block` and `round_keys` to `block`;
/// * `aes-128-with-keyschedule`, `des`: `block` and `key` to `block`;
/// * `adder-64`: `a` and `b` to `sum`, modulo 2^64; `comparator-64`: `a` and `b` to `less`;
/// * `sha-256`: `block` and `state` to `state`, the compression function.
pub fn circuits() -> Vec<Named> {
    vec![
        ("aes-128", || expand(&known("aes-128").encrypt)),
        ("aes-128-with-keyschedule", || with_key_schedule("aes-128")),
        ("des", || with_key_schedule("des")),
        ("adder-64", || adder(64)),
        ("comparator-64", || comparator(64)),
        ("sha-256", sha256_compression),
    ]
}

/// The circuit of this name in [`circuits`], in any case of letters.
pub fn find(name: &str) -> Option<Circuit> {
    circuits().into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, make)| make())
}

fn known(name: &str) -> Cipher {
    catalog::find(name).expect("the catalog has it")
}

fn with_key_schedule(name: &str) -> Circuit {
    expand(&known(name).circuit_with_key_schedule(Direction::Encrypt).expect("every cipher encrypts"))
}
