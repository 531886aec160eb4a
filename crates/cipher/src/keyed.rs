//! What keys of nodes are for: a cipher of the catalog, or HMAC.

use crate::hmac::{self, Additions};
use crate::{Cipher, catalog};

/// The cipher of this name that takes a key, or HMAC in the form of one. In any case of letters.
pub fn find(name: &str) -> Option<Cipher> {
    match hmac::hash_of(name) {
        Some(hash) => Some(hmac::cipher(hash, Additions::FewLevels)),
        None => catalog::find(name),
    }
}

/// The names that can be found.
pub fn names() -> Vec<String> {
    let of_catalog = catalog::all().into_iter().map(|cipher| cipher.name);
    of_catalog.chain(hmac::NAMES.map(String::from)).collect()
}
