//! Every implementation against the `aes` crate and FIPS 197, and the stream against its definition.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::*;

const KEY: [u8; 16] = *b"sixteen byte key";
const NONCE: u64 = 0xfedc_ba98_7654_3210;

/// Block `number` of the stream, from its definition.
fn block(key: &[u8; 16], nonce: u64, number: u64) -> [u8; 16] {
    let mut block: aes::Block = (u128::from(nonce) | u128::from(number) << 64).to_le_bytes().into();
    Aes128::new(key.into()).encrypt_block(&mut block);
    block.into()
}

fn stream(nonce: u64, numbers: core::ops::Range<u64>) -> Vec<u8> {
    numbers.flat_map(|number| block(&KEY, nonce, number)).collect()
}

#[test]
fn every_implementation_gives_the_block_of_fips_197() {
    // Appendix C.1: the plaintext as nonce and counter.
    let key = core::array::from_fn(|i| i as u8);
    let plaintext: [u8; 16] = core::array::from_fn(|i| 0x11 * i as u8);
    let expected: u128 = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a;
    let (nonce, counter) = plaintext.split_at(8);
    for isa in AesIsa::available() {
        let mut prg = AesPrg::with(isa, &key, u64::from_le_bytes(nonce.try_into().unwrap()));
        prg.counter = u64::from_le_bytes(counter.try_into().unwrap());
        let mut out = [0; 16];
        prg.fill(&mut out);
        assert_eq!(u128::from_be_bytes(out), expected, "{isa:?}");
    }
}

#[test]
fn every_implementation_gives_the_stream_of_its_definition() {
    let expected = stream(NONCE, 0..150);
    for isa in AesIsa::available() {
        for len in (0..300).chain([511, 512, 513, 1023, 1024, 1025, 1999, 2400]) {
            let mut out = vec![0; len];
            AesPrg::with(isa, &KEY, NONCE).fill(&mut out);
            assert_eq!(out, expected[..len], "{isa:?}, {len} bytes");
        }
    }
}

#[test]
fn keys_and_nonces_of_all_kinds_give_the_stream_of_their_definition() {
    for isa in AesIsa::available() {
        for seed in 0..64 {
            let key: [u8; 16] = block(&KEY, 1, seed);
            let nonce = u64::from_le_bytes(*key.first_chunk().unwrap()) >> (seed % 64);
            let mut out = [0; 48];
            AesPrg::with(isa, &key, nonce).fill(&mut out);
            assert_eq!(out.as_chunks().0, [0, 1, 2].map(|number| block(&key, nonce, number)), "{isa:?}");
        }
    }
}

#[test]
fn the_counter_crosses_two_to_the_32_and_carries_nothing_into_the_nonce() {
    for isa in AesIsa::available() {
        for start in [(1 << 32) - 37, u64::MAX - 100, 1 << 40] {
            let mut prg = AesPrg::with(isa, &KEY, u64::MAX);
            prg.counter = start;
            let mut out = vec![0; 16 * 90];
            prg.fill(&mut out);
            assert_eq!(out, stream(u64::MAX, start..start + 90), "{isa:?} from {start}");
        }
    }
}

proptest! {
    #[test]
    fn pieces_of_any_size_make_the_same_stream(pieces in prop::collection::vec(0..700usize, 0..12)) {
        let mut whole = vec![0; pieces.iter().sum()];
        AesPrg::new(&KEY, NONCE).fill(&mut whole);
        for isa in AesIsa::available() {
            let mut prg = AesPrg::with(isa, &KEY, NONCE);
            let mut out = vec![0; whole.len()];
            let mut rest = out.as_mut_slice();
            for &piece in &pieces {
                let (head, tail) = rest.split_at_mut(piece);
                prg.fill(head);
                rest = tail;
            }
            prop_assert!(out == whole, "{:?}", isa);
        }
    }
}

#[test]
fn another_nonce_is_another_stream() {
    let [a, b] = [0, 1].map(|nonce| {
        let mut out = [0; 64];
        AesPrg::new(&KEY, nonce).fill(&mut out);
        out
    });
    assert!(a.as_chunks::<16>().0.iter().all(|block| !b.as_chunks::<16>().0.contains(block)));
}
