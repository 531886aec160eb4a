//! What a device and the servers agree on: a cipher in counter mode (NIST SP 800-38A, section 6.5), and its
//! counter blocks.
//!
//! Why counter mode: every bit of a block carries readings, a message ends where its last reading does, and
//! equal readings do not look equal, as they would in ECB. It is sound as long as no counter block comes
//! twice under one key: a device numbers its messages, must not forget the last number when it loses power,
//! and takes a fresh key before the numbers run out. With blocks of 64 bits a keystream is told from a random
//! one after about 2^32 blocks; no key comes near that many.
//!
//! What it does not do: authenticate. Whoever flips a bit of a ciphertext flips that bit of a reading,
//! unnoticed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Bytes of a device's key, whatever the cipher.
pub const KEY_BYTES: usize = 16;
/// Bytes of a reading: a number of 16 bits without sign, big-endian.
pub const READING_BYTES: usize = 2;

/// What readings are encrypted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Encryption {
    /// A lightweight cipher: blocks of 64 bits, four readings each.
    #[value(name = "skinny-64-128")]
    Skinny64_128,
    /// Blocks of 128 bits, eight readings each.
    #[value(name = "aes-128")]
    Aes128,
}

impl Encryption {
    /// The cipher's name in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Encryption::Skinny64_128 => "skinny-64-128",
            Encryption::Aes128 => "aes-128",
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        match self {
            Encryption::Skinny64_128 => 8,
            Encryption::Aes128 => 16,
        }
    }

    /// Blocks of a message of so many readings.
    pub fn blocks(self, readings: usize) -> usize {
        (readings * READING_BYTES).div_ceil(self.block_bytes())
    }

    /// The block whose encryption covers block `block` of message `message`: zeros, both numbers in 32 bits
    /// each.
    pub fn counter_block(self, message: u32, block: u32) -> Vec<u8> {
        let mut counter = vec![0; self.block_bytes() - 8];
        counter.extend(message.to_be_bytes());
        counter.extend(block.to_be_bytes());
        counter
    }
}
