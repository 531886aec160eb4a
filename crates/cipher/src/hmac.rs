//! HMAC with SHA-2 (RFC 2104, FIPS 198-1) of messages that nobody may see, under a key that nobody may see.
//!
//! The key is used twice, each time alone in the first block of a hash ([`padded`]). So all that is kept of
//! it is the two states behind these blocks ([`round_keys`]). Every further block of a message is one
//! compression, and the code is one more, of the hash of the message ([`last_block`]).
//!
//! All of this is one circuit, the compression of a [`block`], with as many lanes as there are blocks, and
//! circuits without an AND around it. SHA-384 and SHA-512 have the same one ([`Sha2::compression`]).
//!
//! Circuits are Boolean ([`crate::boolean`]): cells have one bit. ANDs and levels of one compression:
//!
//! | | few ANDs | few levels |
//! |---|---|---|
//! | SHA-256, block | 22,520, 1,607 | 46,408, 462 |
//! | SHA-256, block that everybody knows | 16,120, 1,607 | 34,296, 461 |
//! | SHA-384, SHA-512, block | 57,896, 3,303 | 134,632, 656 |
//! | SHA-384, SHA-512, block that everybody knows | 40,824, 3,303 | 97,784, 655 |
//!
//! A message has blocks that everybody knows if it ends with a block, or leaves no room for its length there:
//! then another block of nothing but filling follows. The schedule of such a block is computed in the clear
//! ([`schedule`]).

use std::sync::{Arc, LazyLock};

use crate::boolean::BooleanBuilder;
use crate::boolean::sha2::{compressed, compressed_by_schedule};
use crate::{Builder, Cipher, Circuit, Wire};

pub use crate::boolean::sha2::{Additions, Sha2, schedule, scheduled};

/// What keys for it name as their cipher, in the order of [`Sha2::ALL`].
pub const NAMES: [&str; 3] = ["hmac-sha-256", "hmac-sha-384", "hmac-sha-512"];

/// Bytes of keys that are brought along. Shorter ones are weak. A key of more bytes than a block is hashed,
/// so it need not be much longer.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// The fewest bytes to which a code is cut.
pub const LEAST_CODE: usize = 16;

/// The byte behind the last one of a message.
const END: u8 = 0x80;

/// The bytes that are added to the key for the inner hash and for the outer one.
const PADS: [u8; 2] = [0x36, 0x5c];

/// What keys for HMAC with a hash name as their cipher.
pub const fn name(hash: Sha2) -> &'static str {
    NAMES[hash as usize]
}

/// The hash of keys of this cipher, in any case of letters; `None` if they are not keys for HMAC.
pub fn hash_of(cipher: &str) -> Option<Sha2> {
    Sha2::ALL.into_iter().find(|hash| name(*hash).eq_ignore_ascii_case(cipher))
}

/// Bytes of codes: the whole one, and what it may be cut to.
pub fn code_bytes(hash: Sha2) -> std::ops::RangeInclusive<usize> {
    LEAST_CODE..=hash.hash_bytes()
}

/// Keys for HMAC in the form of a cipher: a key of one block, filled up with zeros (step 3 of FIPS 198-1,
/// section 4), and "blocks" that are codes. It has the sizes of a cipher and no circuits, as a permutation
/// has no key schedule: the circuits of this module take their place.
pub fn cipher(hash: Sha2) -> Cipher {
    static NONE: LazyLock<Arc<Circuit>> = LazyLock::new(|| Arc::new(Builder::new("none").finish()));
    Cipher {
        name: name(hash).into(),
        key_bytes: hash.block_bytes(),
        block_bytes: hash.hash_bytes(),
        tweak_bytes: 0,
        key_schedule: NONE.clone(),
        encrypt: NONE.clone(),
        decrypt: None,
    }
}

/// Whether keys of this cipher are keys for HMAC.
pub fn is_hmac(cipher: &Cipher) -> bool {
    hash_of(&cipher.name).is_some()
}

/// The state with which each hash begins, in bytes.
pub fn initial_state(hash: Sha2) -> Vec<u8> {
    let word = |word: u64| word.to_be_bytes().into_iter().skip(8 - hash.word_bytes());
    hash.initial_state().flat_map(word).collect()
}

/// `key` to `inner` and `outer`, the first blocks of the two hashes. No AND.
pub fn padded(hash: Sha2) -> Circuit {
    let mut b = Builder::new(&format!("{}-padded", name(hash)));
    let key = b.input("key", 8 * hash.block_bytes(), 1);
    for (output, pad) in ["inner", "outer"].into_iter().zip(PADS) {
        let bit = |(i, bit): (usize, &Wire)| b.xor_constant(&[*bit], pad >> (7 - i % 8) & 1);
        let block: Vec<Wire> = key.iter().enumerate().map(bit).collect();
        b.output(output, &block);
    }
    b.finish()
}

/// `inner` and `outer`, the states behind the first blocks, to `round_keys`: all that is kept of a key. No
/// AND.
pub fn round_keys(hash: Sha2) -> Circuit {
    let mut b = Builder::new(&format!("{}-round-keys", name(hash)));
    let states = ["inner", "outer"].map(|input| b.input(input, 8 * hash.state_bytes(), 1));
    b.output("round_keys", &states.concat());
    b.finish()
}

/// `round_keys` to `inner` and `outer`, the two states. No AND.
pub fn states(hash: Sha2) -> Circuit {
    let state = 8 * hash.state_bytes();
    let mut b = Builder::new(&format!("{}-states", name(hash)));
    let states = b.input("round_keys", 2 * state, 1);
    b.output("inner", &states[..state]);
    b.output("outer", &states[state..]);
    b.finish()
}

/// `block` and `state` to the next `state`.
pub fn block(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{}-block", name(hash.compression())));
    let block = b.input_words("block", 16, hash.word_bits());
    let state = b.input_words("state", 8, hash.word_bits());
    let next = compressed(&mut b, hash, how, block, &state);
    b.output_words("state", &next);
    b.finish()
}

/// `schedule` of a block that everybody knows, as [`schedule`] writes it, and `state` to the next `state`.
pub fn known_block(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{}-known-block", name(hash.compression())));
    let words = hash.schedule_bytes() / hash.word_bytes();
    let schedule = b.input_words("schedule", words, hash.word_bits());
    let state = b.input_words("state", 8, hash.word_bits());
    let next = compressed_by_schedule(&mut b, hash, how, schedule, &state);
    b.output_words("state", &next);
    b.finish()
}

/// The last block of a hash: `given`, of which the first `kept` bytes are hashed, and `filling` to `block`.
/// What was given behind these bytes has no influence. No AND.
pub fn last_block(hash: Sha2, last: Last) -> Circuit {
    let (given, kept) = match last {
        Last::OfMessage(kept) => (hash.block_bytes(), kept),
        Last::OfHash => (hash.state_bytes(), hash.hash_bytes()),
    };
    let mut b = Builder::new(&format!("{}-last-{kept}-bytes", name(hash)));
    let given = b.input("given", 8 * given, 1);
    let filling = b.input("filling", 8 * hash.block_bytes(), 1);
    b.output("block", &[&given[..8 * kept], &filling[8 * kept..]].concat());
    b.finish()
}

/// What is hashed in a last block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Last {
    /// So many bytes of a message, given in a block.
    OfMessage(usize),
    /// The hash of the message, given as the state of the inner hash.
    OfHash,
}

/// The first bytes of a code: `state` of the outer hash to `code`. No AND.
pub fn beginning(hash: Sha2, bytes: usize) -> Circuit {
    let mut b = Builder::new(&format!("{}-first-{bytes}-bytes", name(hash)));
    let state = b.input("state", 8 * hash.state_bytes(), 1);
    b.output("code", &state[..8 * bytes]);
    b.finish()
}

/// The blocks of a message of so many bytes behind the block of the key.
pub fn blocks(hash: Sha2, bytes: u64) -> u64 {
    // A byte that marks the end, and the length, which has two words.
    (bytes + 1 + 2 * hash.word_bytes() as u64).div_ceil(hash.block_bytes() as u64)
}

/// What a message of so many bytes is filled up with in a block, the first one having number 0, and zeros
/// where the block has bytes of the message.
pub fn filling(hash: Sha2, bytes: u64, block: u64) -> Vec<u8> {
    let of_block = hash.block_bytes() as u64;
    let mut filling = vec![0; hash.block_bytes()];
    if bytes / of_block == block {
        filling[(bytes % of_block) as usize] = END;
    }
    if block + 1 == blocks(hash, bytes) {
        let bits = 8 * (of_block + bytes);
        // The first half of a length of 16 bytes stays 0.
        filling[hash.block_bytes() - 8..].copy_from_slice(&bits.to_be_bytes());
    }
    filling
}
