//! What keys of nodes are for: a cipher of the catalog, or HMAC.

use crate::circuit::Port;
use crate::{Cipher, catalog, hmac};

/// The cipher of this name that takes a key, or HMAC in the form of one. In any case of letters.
pub fn find(name: &str) -> Option<Cipher> {
    match hmac::hash_of(name) {
        Some(hash) => Some(hmac::cipher(hash)),
        None => catalog::find(name),
    }
}

/// The names that can be found.
pub fn names() -> Vec<String> {
    let of_catalog = catalog::all().into_iter().map(|cipher| cipher.name);
    of_catalog.chain(hmac::NAMES.map(String::from)).collect()
}

/// Cells of a key of a cipher, or for HMAC, and the bits of each.
pub fn key_shape(cipher: &Cipher) -> (usize, u8) {
    match hmac::is_hmac(cipher) {
        true => (8 * cipher.key_bytes, 1),
        false => shape(&cipher.key_schedule.inputs()[0]),
    }
}

/// Cells of what is kept of such a key, and the bits of each: round keys, or the states of HMAC.
pub fn round_keys_shape(cipher: &Cipher) -> (usize, u8) {
    match hmac::hash_of(&cipher.name) {
        Some(hash) => (2 * 8 * hash.state_bytes(), 1),
        None => shape(&cipher.key_schedule.outputs()[0]),
    }
}

fn shape(port: &Port) -> (usize, u8) {
    (port.cells.len(), port.bits)
}
