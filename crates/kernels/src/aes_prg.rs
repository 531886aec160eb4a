//! AES-128 in counter mode as a pseudorandom generator.
//!
//! Block `j` of the stream is `AES_key(nonce || j)` (FIPS 197; the mode of NIST SP 800-38A with another
//! counter block), where nonce and `j` are eight bytes each, little-endian. The x86-64 forms keep eight
//! registers in flight and write straight into the output; elsewhere the `aes` crate does the rounds,
//! which is constant time with and without AES instructions.
//!
//! Assumes that a pair of key and nonce is used for one stream, and that a stream stays far below 2^64
//! blocks. Cost: one AES call for 16 bytes. Round keys and the unread rest of a block are wiped on drop;
//! what the compiler spilled to the stack is out of reach.

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vaes256;
#[cfg(target_arch = "x86_64")]
mod vaes512;

use aes::Aes128;
use zeroize::Zeroize;

use crate::isa::AesIsa;

type Block = [u8; 16];

/// The stream whose block `j` is `AES_key(nonce || j)`, both as eight bytes, little-endian.
pub struct AesPrg {
    rounds: Rounds,
    nonce: u64,
    /// The number of the next block.
    counter: u64,
    /// The last block, if only a part of it was read.
    partial: Block,
    /// How much of `partial` has been read.
    read: usize,
}

/// The expanded key. Boxed, so that moving a stream leaves no copy of the key behind.
enum Rounds {
    Portable(Box<Aes128>),
    #[cfg(target_arch = "x86_64")]
    Registers(AesIsa, Box<aesni::RoundKeys>),
}

impl AesPrg {
    /// The stream of a key and a nonce, at its beginning.
    pub fn new(key: &[u8; 16], nonce: u64) -> Self {
        Self::with(AesIsa::best(), key, nonce)
    }

    /// Assumes that the processor has `isa`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn with(isa: AesIsa, key: &[u8; 16], nonce: u64) -> Self {
        let rounds = match isa {
            AesIsa::Portable => Rounds::Portable(portable::expand(key)),
            // SAFETY: these variants exist only where their instructions were detected, AES-NI with all.
            #[cfg(target_arch = "x86_64")]
            _ => Rounds::Registers(isa, unsafe { aesni::RoundKeys::expand(key) }),
        };
        AesPrg { rounds, nonce, counter: 0, partial: [0; 16], read: 16 }
    }

    /// Overwrites `out` with the next bytes of the stream. However the calls are cut, their outputs put
    /// together are the stream.
    pub fn fill(&mut self, out: &mut [u8]) {
        let rest = &self.partial[self.read..];
        let (head, out) = out.split_at_mut(rest.len().min(out.len()));
        head.copy_from_slice(&rest[..head.len()]);
        self.read += head.len();

        let (blocks, tail) = out.as_chunks_mut::<16>();
        self.next_blocks(blocks);
        if !tail.is_empty() {
            let mut block = [0; 16];
            self.next_blocks(core::slice::from_mut(&mut block));
            tail.copy_from_slice(&block[..tail.len()]);
            self.partial = block;
            self.read = tail.len();
            block.zeroize();
        }
    }

    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    fn next_blocks(&mut self, blocks: &mut [Block]) {
        let (nonce, counter) = (self.nonce, self.counter);
        match &self.rounds {
            Rounds::Portable(cipher) => portable::encrypt_counters(cipher, nonce, counter, blocks),
            // SAFETY: these variants exist only where their instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Rounds::Registers(isa, keys) => unsafe {
                match isa {
                    AesIsa::Vaes512 => vaes512::encrypt_counters(keys, nonce, counter, blocks),
                    AesIsa::Vaes256 => vaes256::encrypt_counters(keys, nonce, counter, blocks),
                    _ => aesni::encrypt_counters(keys, nonce, counter, blocks),
                }
            },
        }
        self.counter = counter.wrapping_add(blocks.len() as u64);
    }
}

impl Drop for AesPrg {
    fn drop(&mut self) {
        self.partial.zeroize();
    }
}
