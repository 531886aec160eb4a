//! The counter stream with AES-NI, one block a register and eight in flight; the key expansion and the
//! last few blocks of the wider forms too.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use zeroize::Zeroize;

/// The eleven round keys of AES-128, wiped on drop.
#[repr(align(16))]
pub(crate) struct RoundKeys([[u8; 16]; 11]);

impl RoundKeys {
    /// FIPS 197, section 5.2.
    #[target_feature(enable = "aes,sse2")]
    pub(crate) fn expand(key: &[u8; 16]) -> Box<RoundKeys> {
        let mut keys = Box::new(RoundKeys::zero());
        keys.set(key);
        keys
    }

    /// Memory for round keys.
    pub(crate) fn zero() -> RoundKeys {
        RoundKeys([[0; 16]; 11])
    }

    /// Expands a key in place.
    #[target_feature(enable = "aes,sse2")]
    pub(crate) fn set(&mut self, key: &[u8; 16]) {
        self.0[0] = *key;
        self.derive::<0x01>(1);
        self.derive::<0x02>(2);
        self.derive::<0x04>(3);
        self.derive::<0x08>(4);
        self.derive::<0x10>(5);
        self.derive::<0x20>(6);
        self.derive::<0x40>(7);
        self.derive::<0x80>(8);
        self.derive::<0x1b>(9);
        self.derive::<0x36>(10);
    }

    /// Round key `round` from the one before it.
    #[inline]
    #[target_feature(enable = "aes,sse2")]
    fn derive<const CONSTANT: i32>(&mut self, round: usize) {
        let mut key = self.get(round - 1);
        let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(key));
        // Every word of the new key is the XOR of all words up to it: a prefix sum in two steps.
        key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
        key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
        store(&mut self.0[round], _mm_xor_si128(key, assist));
    }

    /// One round key in a register.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(crate) fn get(&self, round: usize) -> __m128i {
        // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
        unsafe { _mm_loadu_si128(self.0[round].as_ptr().cast()) }
    }
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Writes the blocks numbered from `counter`.
#[target_feature(enable = "aes,sse2")]
pub(super) fn encrypt_counters(keys: &RoundKeys, nonce: u64, counter: u64, blocks: &mut [[u8; 16]]) {
    let one = _mm_set_epi64x(1, 0);
    let mut number = _mm_set_epi64x(counter as i64, nonce as i64);
    let (batches, rest) = blocks.as_chunks_mut::<8>();
    for batch in batches {
        number = encrypt(keys, number, one, batch);
    }
    for block in rest {
        number = encrypt(keys, number, one, core::array::from_mut(block));
    }
}

/// Encrypts `N` successive numbers and returns the one after them.
#[inline]
#[target_feature(enable = "aes,sse2")]
fn encrypt<const N: usize>(
    keys: &RoundKeys,
    mut number: __m128i,
    one: __m128i,
    blocks: &mut [[u8; 16]; N],
) -> __m128i {
    let mut states = [number; N];
    for state in &mut states {
        *state = _mm_xor_si128(number, keys.get(0));
        number = _mm_add_epi64(number, one);
    }
    for round in 1..10 {
        let key = keys.get(round);
        for state in &mut states {
            *state = _mm_aesenc_si128(*state, key);
        }
    }
    for (state, block) in states.into_iter().zip(blocks) {
        store(block, _mm_aesenclast_si128(state, keys.get(10)));
    }
    number
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(block: &mut [u8; 16], vector: __m128i) {
    // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), vector) }
}
