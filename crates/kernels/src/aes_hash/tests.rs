//! Every implementation against the definition.

use aes::cipher::{BlockCipherEncrypt, KeyInit};

use super::*;

fn permuted(key: &[u8; 16], x: u128) -> u128 {
    let mut block: aes::Block = x.to_le_bytes().into();
    Aes128::new(key.into()).encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

#[test]
fn every_implementation_gives_the_hash_of_its_definition() {
    let key = b"sixteen byte key";
    for isa in AesIsa::available() {
        let hash = AesHash::with(isa, key);
        for first in [0, 1, 0xffff_fff0, u64::MAX - 20] {
            for len in (0..40).chain([100]) {
                let blocks: Vec<u128> = (0..len).map(|j| permuted(&[3; 16], j)).collect();
                let mut hashed = blocks.clone();
                hash.hash(first, &mut hashed);
                for (j, (x, hashed)) in blocks.into_iter().zip(hashed).enumerate() {
                    let inner = permuted(key, x);
                    let expected = permuted(key, inner ^ u128::from(first.wrapping_add(j as u64))) ^ inner;
                    assert_eq!(hashed, expected, "{isa:?}, tweak {first} + {j} of {len}");
                }
            }
        }
    }
}
