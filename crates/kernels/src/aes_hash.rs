//! A tweakable correlation-robust hash of blocks from one fixed-key AES: TMMO.
//!
//! `H(x, i) = P(P(x) ^ i) ^ P(x)` with `P = AES_key` (Guo, Katz, Wang and Yu 2020, "Efficient and secure
//! multiparty computation from fixed-key block ciphers", ePrint 2019/074). A block is a number of 128 bits,
//! its bytes little-endian. The key is public.
//!
//! Assumes that AES under a key that is new for every use is as good as a random permutation. With p
//! evaluations of AES by the attacker and q hashes under one key, of blocks at an unknown uniform offset, H
//! is then a tweakable circular correlation-robust function up to about (p q + q^2) / 2^128, constants aside:
//! 2^40 hashes leave some 88 bits of work against a key. To have that for every user of the hash, and not for
//! all of them together, each takes a key of its own. Tweaks must not come twice under one key.
//!
//! Cost: two AES calls a block.

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
pub(crate) mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes256;

use aes::Aes128;

use crate::isa::AesIsa;

/// The hash under one key.
pub struct AesHash {
    rounds: Rounds,
}

/// The expanded key.
enum Rounds {
    Portable(Box<Aes128>),
    #[cfg(target_arch = "x86_64")]
    Registers(AesIsa, Box<crate::aes_prg::aesni::RoundKeys>),
}

impl AesHash {
    /// Expands the key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self::with(AesIsa::best(), key)
    }

    /// Assumes that the processor has `isa`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn with(isa: AesIsa, key: &[u8; 16]) -> Self {
        let rounds = match isa {
            AesIsa::Portable => Rounds::Portable(portable::expand(key)),
            // SAFETY: these variants exist only where their instructions were detected, AES-NI with all.
            #[cfg(target_arch = "x86_64")]
            _ => Rounds::Registers(isa, unsafe { crate::aes_prg::aesni::RoundKeys::expand(key) }),
        };
        AesHash { rounds }
    }

    /// Replaces `blocks[j]` by its hash with the tweak `first + j`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn hash(&self, first: u64, blocks: &mut [u128]) {
        match &self.rounds {
            Rounds::Portable(cipher) => portable::hash(cipher, first, blocks),
            // SAFETY: these variants exist only where their instructions were detected, those of `vaes256`
            // with both.
            #[cfg(target_arch = "x86_64")]
            Rounds::Registers(isa, keys) => unsafe {
                match isa {
                    AesIsa::Vaes512 | AesIsa::Vaes256 => vaes256::hash(keys, first, blocks),
                    _ => aesni::hash(keys, first, blocks),
                }
            },
        }
    }
}
