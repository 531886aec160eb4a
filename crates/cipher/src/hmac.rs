//! HMAC-SHA-256 (RFC 2104, FIPS 198-1) of messages that nobody may see, under a key that nobody may see.
//!
//! The key is used twice, each time alone in the first block of a hash. So all that is kept of it is the two
//! states behind these blocks ([`cipher`]). Every further block of a message is one compression, and the code
//! is one more, of the hash of the message.
//!
//! Circuits are Boolean ([`crate::boolean`]): cells have one bit. ANDs and levels of one compression:
//!
//! | | few ANDs | few levels |
//! |---|---|---|
//! | block of the message | 22,520, 1,607 | 46,408, 462 |
//! | block that everybody knows | 16,120, 1,607 | 34,296, 461 |
//!
//! A message has blocks that everybody knows if it ends with a block, or leaves no room for its length there:
//! then another block of nothing but filling follows. The schedule of such a block is computed in the clear
//! ([`schedule`]).

use std::sync::{Arc, LazyLock};

use crate::boolean::sha256::{compressed, compressed_by_schedule, initial_state};
use crate::boolean::words::number;
use crate::boolean::{BooleanBuilder, Word, words_of};
use crate::{Builder, Cipher, Circuit};

pub use crate::boolean::sha256::{Additions, BLOCK, SCHEDULE, schedule, scheduled};

/// What keys for it name as their cipher.
pub const NAME: &str = "hmac-sha-256";

/// Bytes of a code.
pub const CODE: usize = 32;

/// Bytes of keys that are brought along. Shorter ones are weak. A key of more bytes than a block is hashed,
/// so it need not be much longer.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// Bits of a state.
const STATE: usize = 256;

/// The byte behind the last one of a message.
const END: u8 = 0x80;

/// Made when they are first needed.
static OF_FEW_ANDS: LazyLock<Cipher> = LazyLock::new(|| made(Additions::FewAnds));
static OF_FEW_LEVELS: LazyLock<Cipher> = LazyLock::new(|| made(Additions::FewLevels));

/// HMAC as the nodes see a cipher, which makes keys for it like keys of ciphers: a key of one block, filled
/// up with zeros (step 3 of FIPS 198-1, section 4), whose round keys are two states, and the code of a
/// message of 32 bytes as the encryption of a block. It has no inverse.
pub fn cipher(how: Additions) -> Cipher {
    match how {
        Additions::FewAnds => OF_FEW_ANDS.clone(),
        Additions::FewLevels => OF_FEW_LEVELS.clone(),
    }
}

fn made(how: Additions) -> Cipher {
    Cipher {
        name: NAME.into(),
        key_bytes: BLOCK,
        block_bytes: CODE,
        tweak_bytes: 0,
        key_schedule: Arc::new(key_schedule(how)),
        encrypt: Arc::new(code_of_32_bytes(how)),
        decrypt: None,
    }
}

/// Whether keys of this cipher are keys for HMAC.
pub fn is_hmac(cipher: &Cipher) -> bool {
    cipher.name == NAME
}

/// `key` to `round_keys`: the state of the inner hash behind the key, and that of the outer hash.
fn key_schedule(how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{NAME}-keyschedule"));
    let key = words_of(&b.input("key", 8 * BLOCK, true), 32);
    let initial: Vec<Word> = initial_state().map(|word| number(word.into(), 32)).collect();
    let mut states = Vec::new();
    for padding in [0x3636_3636, 0x5c5c_5c5c] {
        let padded: Vec<Word> = key.iter().map(|word| plus(word, padding)).collect();
        states.extend(compressed(&mut b, how, padded, &initial));
    }
    b.output_words("round_keys", &states);
    b.finish()
}

/// The sum of bits with a constant: negations.
fn plus(word: &Word, constant: u32) -> Word {
    word.iter().enumerate().map(|(i, bit)| if constant >> i & 1 == 1 { !*bit } else { *bit }).collect()
}

/// `block`, a whole message, and `round_keys` to `block`, its code.
fn code_of_32_bytes(how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(NAME);
    let message = b.input_words("block", 8, 32);
    let states = words_of(&b.input("round_keys", 2 * STATE, true), 32);
    let hash = compressed(&mut b, how, filled_up(message), &states[..8]);
    let code = compressed(&mut b, how, filled_up(hash), &states[8..]);
    b.output_words("block", &code);
    b.finish()
}

/// A last block of 32 bytes behind the block of the key.
fn filled_up(mut words: Vec<Word>) -> Vec<Word> {
    let filling = filling(CODE as u64, 0);
    let constants = filling[CODE..].as_chunks().0.iter().map(|word| u32::from_be_bytes(*word));
    words.extend(constants.map(|word| number(word.into(), 32)));
    words
}

/// `round_keys` to `inner` and `outer`, the two states. No AND.
pub fn states() -> Circuit {
    let mut b = Builder::new(&format!("{NAME}-states"));
    let states = b.uniform_input("round_keys", 2 * STATE, 1);
    b.output("inner", &states[..STATE]);
    b.output("outer", &states[STATE..]);
    b.finish()
}

/// `block` of a message, and `state` to the next `state`.
pub fn block(how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{NAME}-block"));
    let block = b.input_words("block", 16, 32);
    let state = b.input_words("state", 8, 32);
    let next = compressed(&mut b, how, block, &state);
    b.output_words("state", &next);
    b.finish()
}

/// `schedule` of a block that everybody knows, as [`schedule`] writes it, and `state` to the next `state`.
pub fn known_block(how: Additions) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("{NAME}-known-block"));
    let schedule = b.input_words("schedule", 64, 32);
    let state = b.input_words("state", 8, 32);
    let next = compressed_by_schedule(&mut b, how, schedule, &state);
    b.output_words("state", &next);
    b.finish()
}

/// The block of the outer hash behind that of the key: `hash` of the message and `filling` to `block`. No
/// AND.
pub fn hash_block() -> Circuit {
    let mut b = Builder::new(&format!("{NAME}-hash-block"));
    let hash = b.input("hash", STATE, 1);
    let filling = b.input("filling", 8 * BLOCK, 1);
    b.output("block", &[&hash, &filling[STATE..]].concat());
    b.finish()
}

/// The last block of a message, of which it has `bytes` bytes there: `block` and `filling` to `block`. What a
/// client gave behind these bytes has no influence. No AND.
pub fn last_block(bytes: usize) -> Circuit {
    let mut b = Builder::new(&format!("{NAME}-last-{bytes}-bytes"));
    let block = b.input("block", 8 * BLOCK, 1);
    let filling = b.input("filling", 8 * BLOCK, 1);
    b.output("block", &[&block[..8 * bytes], &filling[8 * bytes..]].concat());
    b.finish()
}

/// The first bytes of a code: `code` to `code`. No AND.
pub fn beginning(bytes: usize) -> Circuit {
    let mut b = Builder::new(&format!("{NAME}-first-{bytes}-bytes"));
    let code = b.input("code", STATE, 1);
    b.output("code", &code[..8 * bytes]);
    b.finish()
}

/// The blocks of a message of so many bytes behind the block of the key.
pub fn blocks(bytes: u64) -> u64 {
    // A byte that marks the end, and 8 of the length.
    (bytes + 9).div_ceil(BLOCK as u64)
}

/// What a message of so many bytes is filled up with in a block, the first one having number 0, and zeros
/// where the block has bytes of the message.
pub fn filling(bytes: u64, block: u64) -> [u8; BLOCK] {
    let mut filling = [0; BLOCK];
    if bytes / BLOCK as u64 == block {
        filling[(bytes % BLOCK as u64) as usize] = END;
    }
    if block + 1 == blocks(bytes) {
        let bits = 8 * (BLOCK as u64 + bytes);
        filling[BLOCK - 8..].copy_from_slice(&bits.to_be_bytes());
    }
    filling
}
