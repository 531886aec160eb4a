//! The counter stream, computed by the `aes` crate, which wipes its round keys itself.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

pub(super) fn expand(key: &[u8; 16]) -> Box<Aes128> {
    Box::new(Aes128::new(key.into()))
}

/// Writes the blocks numbered from `counter`.
pub(super) fn encrypt_counters(cipher: &Aes128, nonce: u64, counter: u64, blocks: &mut [[u8; 16]]) {
    let mut number = counter;
    // Batches stay in the first-level cache between the writing of the counters and the encryption.
    for batch in blocks.chunks_mut(64) {
        for block in batch.iter_mut() {
            block[..8].copy_from_slice(&nonce.to_le_bytes());
            block[8..].copy_from_slice(&number.to_le_bytes());
            number = number.wrapping_add(1);
        }
        let batch: &mut [Block] = Array::cast_slice_from_core_mut(batch);
        cipher.encrypt_blocks(batch);
    }
}
