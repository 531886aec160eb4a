//! Key blocks of TR-31 (ASC X9 TR 31-2018, ANSI X9.143-2021), versions B and D: their form, and what they say
//! about a key.
//!
//! A block is printable ASCII: a header of 16 characters, optional blocks, the encrypted key in hexadecimal,
//! and a MAC in hexadecimal over all of the header and the key in the clear. The parser is strict. It takes
//! one way of writing, and nothing that the MAC does not cover is given a meaning. It knows no key: what it
//! returns is authentic only after the nodes have checked the MAC.
//!
//! | block | a key of the nodes |
//! |---|---|
//! | `D0`, mode of use `B` or `N`; `E`; `D` | encrypt and decrypt; encrypt; decrypt: in modes that encrypt |
//! | `M6`, mode of use `C`, `N` or `G` | mac, mode cmac |
//! | `K0`, mode of use `B` or `N`; `E`; `D` | wrap and unwrap; wrap; unwrap: without a mode |
//! | `K1`, the same | the same, mode tr31 |
//! | `B3`, mode of use `X` or `N` | derive or kdf |
//! | `P0`, `V1`, `V2`, `C0`, `M3`, `M6`, `B0`, `D0`, `E0`, `E1`, `E2`, `E4`, `K0` | a purpose of payments, if the new key is asked for with it |
//!
//! A key that is imported may be for less than its block allows, and not for more. A block that is exported
//! may allow less than the key is for, and not more. Exportability `N` keeps an imported key from leaving the
//! nodes again.

#[cfg(test)]
mod fuzz;
mod header;
mod parse;
mod payments;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// The most characters of a block. Everything before the key is computed on block by block.
pub const MAX_BLOCK: usize = 1024;

/// Characters of the header without optional blocks.
const HEADER: usize = 16;

/// How the key is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Under a key of Triple DES, with keys derived from it by CMAC.
    B,
    /// Under a key of AES.
    D,
}

impl Version {
    /// Of blocks under a key of this cipher; `None` if there are none.
    pub fn under(cipher: &str) -> Option<Version> {
        match cipher {
            "3des-ede2" | "3des-ede3" => Some(Version::B),
            "aes-128" | "aes-192" | "aes-256" => Some(Version::D),
            _ => None,
        }
    }

    /// Bytes of a block of the cipher, and of the MAC.
    pub fn block_bytes(self) -> usize {
        match self {
            Version::B => 8,
            Version::D => 16,
        }
    }

    fn letter(self) -> u8 {
        match self {
            Version::B => b'B',
            Version::D => b'D',
        }
    }

    /// Refuses a key of an algorithm that a key of this version does not protect well enough.
    pub fn protects(self, algorithm: u8) -> Result<(), String> {
        if self == Version::B && algorithm == b'A' {
            return Err("a key of AES is not protected by one of Triple DES: take version D".into());
        }
        Ok(())
    }
}

/// What a header says about a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockHeader {
    /// What the key is for: `D0`, `M6`, `K0`, `K1`, `B3`, or a purpose of payments.
    pub usage: [u8; 2],
    /// In which directions: `B`, `C`, `D`, `E`, `G`, `N` or `X`.
    pub mode_of_use: u8,
    /// `00` if it is not used.
    pub key_version: [u8; 2],
    /// `E`, `N` or `S`.
    pub exportability: u8,
}

/// A block, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBlock {
    /// How the key is protected.
    pub version: Version,
    /// `A` for AES, `T` for Triple DES, `D` for DES.
    pub algorithm: u8,
    /// What it says about the key.
    pub header: BlockHeader,
    /// All characters before the encrypted key: what the MAC covers in front of the key. Whole blocks.
    pub head: Vec<u8>,
    /// Whole blocks, at least one.
    pub encrypted: Vec<u8>,
    /// As long as a block.
    pub mac: Vec<u8>,
}

/// The letter for the algorithm of a cipher; `None` if a block cannot name it.
pub fn algorithm(cipher: &str) -> Option<u8> {
    match cipher {
        "aes-128" | "aes-192" | "aes-256" => Some(b'A'),
        "3des-ede2" | "3des-ede3" => Some(b'T'),
        "des" => Some(b'D'),
        _ => None,
    }
}
