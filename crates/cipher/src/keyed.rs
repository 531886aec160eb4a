//! What keys of nodes are for: a cipher of the catalog, or HMAC.

use crate::hmac::Additions;
use crate::{Cipher, catalog, hmac};

/// The cipher of this name that takes a key, or HMAC in the form of one. In any case of letters.
pub fn find(name: &str) -> Option<Cipher> {
    match name.eq_ignore_ascii_case(hmac::NAME) {
        true => Some(hmac::cipher(Additions::FewLevels)),
        false => catalog::find(name),
    }
}

/// The names that can be found.
pub fn names() -> Vec<String> {
    catalog::all().into_iter().map(|cipher| cipher.name).chain([hmac::NAME.into()]).collect()
}
