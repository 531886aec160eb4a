//! The hash, computed by the `aes` crate.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

pub(crate) fn expand(key: &[u8; 16]) -> Box<Aes128> {
    Box::new(Aes128::new(key.into()))
}

/// See [`super::AesHash::hash`].
pub(super) fn hash(cipher: &Aes128, first: u64, blocks: &mut [u128]) {
    let mut tweak = first;
    for eight in blocks.chunks_mut(8) {
        let mut inner = [Block::default(); 8];
        inner.iter_mut().zip(eight.iter()).for_each(|(inner, block)| *inner = block.to_le_bytes().into());
        cipher.encrypt_blocks(&mut inner);
        let mut outer = inner;
        for outer in &mut outer {
            *outer = (u128::from_le_bytes((*outer).into()) ^ u128::from(tweak)).to_le_bytes().into();
            tweak = tweak.wrapping_add(1);
        }
        cipher.encrypt_blocks(&mut outer);
        // Only as many as there are blocks; the tweaks of a last piece run on and are not used again.
        for ((block, inner), outer) in eight.iter_mut().zip(inner).zip(outer) {
            *block = u128::from_le_bytes(inner.into()) ^ u128::from_le_bytes(outer.into());
        }
    }
}
