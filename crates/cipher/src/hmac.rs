//! HMAC with SHA-2 (RFC 2104, FIPS 198-1) of messages that nobody may see, under a key that nobody may see.
//!
//! The key is used twice, each time alone in the first block of a hash. So all that is kept of it is the two
//! states behind these blocks ([`cipher`]). Every further block of a message is one compression, and the code
//! is one more, of the hash of the message.
//!
//! Circuits are Boolean ([`crate::boolean`]): cells have one bit. ANDs and levels of one compression:
//!
//! | SHA-256 | few ANDs | few levels |
//! |---|---|---|
//! | block of the message | 22,520, 1,607 | 46,408, 462 |
//! | block that everybody knows | 16,120, 1,607 | 34,296, 461 |
//! | hash of the message | 22,051, 1,607 | 45,933, 462 |
//!
//! | SHA-384, SHA-512 | few ANDs | few levels |
//! |---|---|---|
//! | block of the message | 57,896, 3,303 | 134,632, 656 |
//! | block that everybody knows | 40,824, 3,303 | 97,784, 655 |
//! | hash of the message, SHA-384 | 56,436, 3,303 | 132,351, 656 |
//! | hash of the message, SHA-512 | 56,947, 3,303 | 133,677, 656 |
//!
//! A message has blocks that everybody knows if it ends with a block, or leaves no room for its length there:
//! then another block of nothing but filling follows. The schedule of such a block is computed in the clear
//! ([`schedule`]).

use std::sync::{Arc, OnceLock};

use crate::boolean::sha2::{compressed, compressed_by_schedule};
use crate::boolean::words::number;
use crate::boolean::{BooleanBuilder, Word, words_of};
use crate::{Builder, Cipher, Circuit};

pub use crate::boolean::sha2::{Additions, Sha2, schedule};

/// What keys for it name as their cipher, in the order of [`Sha2::ALL`].
pub const NAMES: [&str; 3] = ["hmac-sha-256", "hmac-sha-384", "hmac-sha-512"];

/// Bytes of keys that are brought along. Shorter ones are weak. A key of more bytes than a block is hashed,
/// so it need not be much longer.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// The fewest bytes to which a code is cut.
pub const LEAST_CODE: usize = 16;

/// The byte behind the last one of a message.
const END: u8 = 0x80;

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

/// HMAC as the nodes see a cipher, which makes keys for it like keys of ciphers: a key of one block, filled
/// up with zeros (step 3 of FIPS 198-1, section 4), whose round keys are two states, and the code of a
/// message that is as long as a code as the encryption of a block. It has no inverse.
pub fn cipher(hash: Sha2, how: Additions) -> Cipher {
    /// Made when they are first needed.
    static MADE: [[OnceLock<Cipher>; 2]; 3] = [const { [const { OnceLock::new() }; 2] }; 3];
    MADE[hash as usize][how as usize].get_or_init(|| made(hash, how)).clone()
}

fn made(hash: Sha2, how: Additions) -> Cipher {
    Cipher {
        name: name(hash).into(),
        key_bytes: hash.block_bytes(),
        block_bytes: hash.hash_bytes(),
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(hash, how)),
        encrypt: Arc::new(code_of_short_message(hash, how)),
        decrypt: None,
    }
}

/// Whether keys of this cipher are keys for HMAC.
pub fn is_hmac(cipher: &Cipher) -> bool {
    hash_of(&cipher.name).is_some()
}

/// `key` to `round_keys`: the state of the inner hash behind the key, and that of the outer hash.
fn key_schedule(hash: Sha2, how: Additions) -> Circuit {
    let width = hash.word_bits();
    let mut b = BooleanBuilder::new(&format!("{}-keyschedule", name(hash)));
    let key = words_of(&b.input("key", 8 * hash.block_bytes(), true), width);
    let initial: Vec<Word> = hash.initial_state().map(|word| number(word, width)).collect();
    let mut states = Vec::new();
    for padding in [0x3636_3636_3636_3636, 0x5c5c_5c5c_5c5c_5c5c] {
        let padded: Vec<Word> = key.iter().map(|word| plus(word, padding)).collect();
        states.extend(compressed(&mut b, hash, how, padded, &initial));
    }
    b.output_words("round_keys", &states);
    b.finish()
}

/// The sum of bits with a constant: negations.
fn plus(word: &Word, constant: u64) -> Word {
    word.iter().enumerate().map(|(i, bit)| if constant >> i & 1 == 1 { !*bit } else { *bit }).collect()
}

/// `block`, a whole message, and `round_keys` to `block`, its code.
fn code_of_short_message(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(name(hash));
    let message = b.input_words("block", words_of_hash(hash), hash.word_bits());
    let states = words_of(&b.input("round_keys", 2 * 8 * hash.state_bytes(), true), hash.word_bits());
    let (inner, outer) = states.split_at(states.len() / 2);
    let state = compressed(&mut b, hash, how, filled_up(hash, &message), inner);
    let code = compressed(&mut b, hash, how, filled_up(hash, &state), outer);
    b.output_words("block", &code[..words_of_hash(hash)]);
    b.finish()
}

/// Words of a hash.
fn words_of_hash(hash: Sha2) -> usize {
    hash.hash_bytes() / hash.word_bytes()
}

/// A last block behind the block of the key: the words of a hash, and what it is filled up with. Of a state
/// that has more words, these are the hash.
fn filled_up(hash: Sha2, words: &[Word]) -> Vec<Word> {
    let of_hash = words_of_hash(hash);
    let filling = filling(hash, hash.hash_bytes() as u64, 0);
    let filling = hash.words(&filling).skip(of_hash).map(|word| number(word, hash.word_bits()));
    words[..of_hash].iter().cloned().chain(filling).collect()
}

/// `round_keys` to `inner` and `outer`, the two states. No AND.
pub fn states(hash: Sha2) -> Circuit {
    let state = 8 * hash.state_bytes();
    let mut b = Builder::new(&format!("{}-states", name(hash)));
    let states = b.uniform_input("round_keys", 2 * state, 1);
    b.output("inner", &states[..state]);
    b.output("outer", &states[state..]);
    b.finish()
}

/// `block` of a message, and `state` to the next `state`.
pub fn block(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{}-block", name(hash)));
    let block = b.input_words("block", 16, hash.word_bits());
    let state = b.input_words("state", 8, hash.word_bits());
    let next = compressed(&mut b, hash, how, block, &state);
    b.output_words("state", &next);
    b.finish()
}

/// `schedule` of a block that everybody knows, as [`schedule`] writes it, and `state` to the next `state`.
pub fn known_block(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{}-known-block", name(hash)));
    let words = hash.schedule_bytes() / hash.word_bytes();
    let schedule = b.input_words("schedule", words, hash.word_bits());
    let state = b.input_words("state", 8, hash.word_bits());
    let next = compressed_by_schedule(&mut b, hash, how, schedule, &state);
    b.output_words("state", &next);
    b.finish()
}

/// `hash`, the state of the inner hash at the end of a message, and `state` of the outer hash, to `code`.
pub fn code(hash: Sha2, how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{}-code", name(hash)));
    let inner = b.input_words("hash", 8, hash.word_bits());
    let outer = b.input_words("state", 8, hash.word_bits());
    let code = compressed(&mut b, hash, how, filled_up(hash, &inner), &outer);
    b.output_words("code", &code[..words_of_hash(hash)]);
    b.finish()
}

/// The last block of a message, of which it has `bytes` bytes there: `block` and `filling` to `block`. What a
/// client gave behind these bytes has no influence. No AND.
pub fn last_block(hash: Sha2, bytes: usize) -> Circuit {
    let mut b = Builder::new(&format!("{}-last-{bytes}-bytes", name(hash)));
    let block = b.input("block", 8 * hash.block_bytes(), 1);
    let filling = b.input("filling", 8 * hash.block_bytes(), 1);
    b.output("block", &[&block[..8 * bytes], &filling[8 * bytes..]].concat());
    b.finish()
}

/// The first bytes of a code: `code` to `code`. No AND.
pub fn beginning(hash: Sha2, bytes: usize) -> Circuit {
    let mut b = Builder::new(&format!("{}-first-{bytes}-bytes", name(hash)));
    let code = b.input("code", 8 * hash.hash_bytes(), 1);
    b.output("code", &code[..8 * bytes]);
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
