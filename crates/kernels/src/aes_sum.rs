//! The sum of the images of many blocks under one fixed-key AES, `AES_K(d_1) ^ .. ^ AES_K(d_n)`, and each
//! image by itself.
//!
//! A hash of a list of different blocks (Damgard, Nielsen, Nielsen and Ranellucci 2016, section 3.3). Equal
//! blocks cancel and order is lost, so a caller that needs either writes a position into the blocks. Blocks
//! are numbers of 128 bits, their bytes little-endian; the key is public. Assumes that AES under a key that
//! is new for every use is as good as a random permutation. Cost: one AES call a block.

#[cfg(target_arch = "x86_64")]
mod aesni;
#[cfg(target_arch = "x86_64")]
mod vaes256;

use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;

use crate::aes_hash::portable::expand;
use crate::isa::AesIsa;

/// Sums under one key.
pub struct AesSum {
    rounds: Rounds,
}

/// The expanded key.
enum Rounds {
    Portable(Box<Aes128>),
    #[cfg(target_arch = "x86_64")]
    Registers(AesIsa, Box<crate::aes_prg::aesni::RoundKeys>),
}

impl AesSum {
    /// Expands the key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self::with(AesIsa::best(), key)
    }

    /// Assumes that the processor has `isa`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn with(isa: AesIsa, key: &[u8; 16]) -> Self {
        let rounds = match isa {
            AesIsa::Portable => Rounds::Portable(expand(key)),
            // SAFETY: these variants exist only where their instructions were detected, AES-NI with all.
            #[cfg(target_arch = "x86_64")]
            _ => Rounds::Registers(isa, unsafe { crate::aes_prg::aesni::RoundKeys::expand(key) }),
        };
        AesSum { rounds }
    }

    /// The sum of the blocks' images.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn of(&self, blocks: &[u128]) -> u128 {
        match &self.rounds {
            Rounds::Portable(cipher) => sum_portable(cipher, blocks),
            // SAFETY: these variants exist only where their instructions were detected, those of `vaes256`
            // with both.
            #[cfg(target_arch = "x86_64")]
            Rounds::Registers(isa, keys) => unsafe {
                match isa {
                    AesIsa::Vaes512 | AesIsa::Vaes256 => vaes256::sum(keys, blocks),
                    _ => aesni::sum(keys, blocks),
                }
            },
        }
    }
}

impl AesSum {
    /// Replaces every block d by `AES_K(d) ^ d`, a hash of blocks that come once (MMO).
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn hash_each(&self, blocks: &mut [u128]) {
        match &self.rounds {
            Rounds::Portable(cipher) => hash_each_portable(cipher, blocks),
            // SAFETY: these variants exist only where their instructions were detected, those of `vaes256`
            // with both.
            #[cfg(target_arch = "x86_64")]
            Rounds::Registers(isa, keys) => unsafe {
                match isa {
                    AesIsa::Vaes512 | AesIsa::Vaes256 => vaes256::hash_each(keys, blocks),
                    _ => aesni::hash_each(keys, blocks),
                }
            },
        }
    }
}

fn hash_each_portable(cipher: &Aes128, blocks: &mut [u128]) {
    blocks.iter_mut().for_each(|block| *block ^= sum_portable(cipher, &[*block]));
}

fn sum_portable(cipher: &Aes128, blocks: &[u128]) -> u128 {
    let image = |block: &u128| {
        let mut block: aes::Block = block.to_le_bytes().into();
        cipher.encrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    };
    blocks.iter().fold(0, |sum, block| sum ^ image(block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_implementation_gives_the_sum_of_its_definition() {
        let key = b"sixteen byte key";
        let cipher = expand(key);
        for isa in AesIsa::available() {
            let sum = AesSum::with(isa, key);
            for len in (0..40).chain([100]) {
                let blocks: Vec<u128> =
                    (0..len).map(|j: u128| j.wrapping_mul(u128::MAX / 1_000_003)).collect();
                assert_eq!(sum.of(&blocks), sum_portable(&cipher, &blocks), "{isa:?}, {len} blocks");
                let (mut hashed, mut expected) = (blocks.clone(), blocks);
                sum.hash_each(&mut hashed);
                hash_each_portable(&cipher, &mut expected);
                assert_eq!(hashed, expected, "{isa:?}");
            }
        }
    }

    #[test]
    fn one_block_gives_its_cipher() {
        // FIPS 197, appendix B.
        let key = 0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes();
        let plain = u128::from_le_bytes(0x3243f6a8885a308d313198a2e0370734_u128.to_be_bytes());
        let cipher = u128::from_le_bytes(0x3925841d02dc09fbdc118597196a0b32_u128.to_be_bytes());
        assert_eq!(AesSum::new(&key).of(&[plain]), cipher);
    }
}
