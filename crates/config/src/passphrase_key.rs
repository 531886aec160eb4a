//! A key from what a person remembers: Argon2id (RFC 9106) gives a key of XChaCha20-Poly1305. A file says
//! what it costs, so that later versions can raise the costs, and authenticates that.
//!
//! Lanes are parts of the memory that threads fill at the same time. The work and the memory of a guess are
//! the same with any number of them. So a user with several processors waits less for a key. An attacker has
//! enough guesses to keep all processors busy anyway, and gets no more guesses for the same price.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use polyclave_kernels::memory::prefer_large_pages;
use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use zeroize::Zeroizing;

use crate::{Error, Result};

/// What a guess costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    pub(crate) lanes: u32,
}

/// The most that a file may ask for.
const MAX: Cost = Cost { memory_kib: 4 << 20, passes: 64, lanes: 64 };

impl Cost {
    /// Refuses what no program writes.
    pub(crate) fn refuse_excessive(self) -> Result<()> {
        if self.memory_kib > MAX.memory_kib || self.passes > MAX.passes || self.lanes > MAX.lanes {
            return Err(Error::misuse(format!(
                "asks for {} KiB, {} passes and {} lanes, more than any program of Polyclave writes; restore it from a copy",
                self.memory_kib, self.passes, self.lanes
            )));
        }
        Ok(())
    }

    /// The cipher under a passphrase or PIN.
    pub(crate) fn cipher(self, secret: &[u8], salt: &[u8; 16]) -> Result<XChaCha20Poly1305> {
        let costs = Params::new(self.memory_kib, self.passes, self.lanes, Some(32));
        let costs = costs.map_err(|e| Error::misuse(format!("has costs that do not fit: {e}")))?;
        // Large pages: with small ones a third of the time goes into getting them from the system.
        let blocks = costs.block_count();
        let mut memory = Vec::with_capacity(blocks);
        prefer_large_pages(&mut memory);
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, costs);
        let mut key = Zeroizing::new([0; 32]);
        // Threads of its own, which have ended when this returns. Shared ones would outlive a library that is
        // unloaded, and be missing in the child of a fork.
        ThreadPoolBuilder::new()
            .num_threads(self.threads())
            .build_scoped(
                |thread| thread.run(),
                |pool| {
                    pool.install(|| {
                        (0..blocks).into_par_iter().map(|_| Block::default()).collect_into_vec(&mut memory);
                        argon2.hash_password_into_with_memory(secret, salt, &mut *key, &mut memory)
                    })
                },
            )
            .map_err(|e| Error::misuse(format!("no thread could be started to make a key: {e}")))?
            .map_err(|e| Error::misuse(format!("no key could be made from the passphrase: {e}")))?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }

    /// A thread for each lane, as far as there are processors.
    fn threads(self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.min(self.lanes as usize).max(1)
    }
}

#[cfg(test)]
mod tests {
    use chacha20poly1305::aead::Aead;

    use super::*;

    #[test]
    fn keys_are_those_of_rfc_9106_for_any_number_of_lanes() {
        for lanes in [1, 2, 4] {
            let cost = Cost { memory_kib: 64, passes: 2, lanes };
            let params = Params::new(64, 2, lanes, Some(32)).expect("they fit");
            // The crate has the vectors of the RFC among its tests, and takes the memory itself here.
            let mut key = [0; 32];
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_into(b"secret", &[7; 16], &mut key)
                .expect("made");
            let expected = XChaCha20Poly1305::new((&key).into()).encrypt(&[1; 24].into(), &b"text"[..]);
            let made = cost.cipher(b"secret", &[7; 16]).expect("made");
            assert_eq!(made.encrypt(&[1; 24].into(), &b"text"[..]), expected, "{lanes} lanes");
        }
    }

    #[test]
    fn what_no_program_writes_is_refused_before_anything_is_computed() {
        let most = Cost { memory_kib: 8, passes: 1, lanes: 64 };
        assert!(most.refuse_excessive().is_ok());
        for excessive in [
            Cost { lanes: 65, ..most },
            Cost { passes: 65, ..most },
            Cost { memory_kib: (4 << 20) + 1, ..most },
        ] {
            assert!(excessive.refuse_excessive().is_err(), "{excessive:?}");
        }
        // Too little memory for its lanes, and no lanes.
        for lanes in [64, 0] {
            assert!(Cost { memory_kib: 8, passes: 1, lanes }.cipher(b"secret", &[7; 16]).is_err());
        }
    }
}
