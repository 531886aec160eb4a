//! Vectors of shares and of material, and the pool their memory comes from.
//!
//! Wiping a vector after each use costs as much as computing it, and so do fresh pages. So memory returns to
//! the session's pool without being wiped, and the next user overwrites it. It is wiped when the last holder
//! of the pool is dropped.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_kernels::memory::prefer_large_pages;
use zeroize::Zeroize;

/// Free memory of one session.
#[derive(Clone, Default)]
pub struct Pool(Arc<Free>);

#[derive(Default)]
struct Free(Mutex<Vec<Vec<u8>>>);

/// A request gets at most this many times the memory that it asked for.
const WASTE: usize = 2;
/// Smaller pieces count as this size.
const MIN: usize = 4096;

/// Vectors are aligned to a cache line, so that a register that is read never lies across two lines.
const LINE: usize = 64;

/// Shares of a vector, one byte or more each; it begins a line.
#[derive(Default)]
pub struct Shares {
    bytes: Vec<u8>,
    /// Where the vector begins.
    start: usize,
    pool: Pool,
}

impl Pool {
    /// A vector with unspecified contents. The caller has to overwrite it.
    pub fn take(&self, len: usize) -> Shares {
        let len = len + LINE;
        let mut free = self.0.0.lock();
        // The smallest that fits, and none that is far too large: large ones are for large requests.
        let capacities = free.iter().map(Vec::capacity).enumerate();
        let fitting = capacities.filter(|(_, capacity)| (len..=WASTE * len.max(MIN)).contains(capacity));
        let smallest = fitting.min_by_key(|(_, capacity)| *capacity);
        let mut bytes = match smallest {
            Some((at, _)) => free.swap_remove(at),
            None => {
                let mut fresh = Vec::with_capacity(len.max(MIN));
                prefer_large_pages(&mut fresh);
                fresh
            }
        };
        // Within the capacity: nothing moves, no copy stays behind.
        let start = bytes.as_ptr().addr().wrapping_neg() % LINE;
        bytes.resize(start + len - LINE, 0);
        Shares { bytes, start, pool: self.clone() }
    }
}

#[cfg(test)]
impl Pool {
    /// Bytes that it holds, while none are handed out.
    pub(crate) fn bytes(&self) -> usize {
        self.0.0.lock().iter().map(Vec::capacity).sum()
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        if self.bytes.capacity() > 0 {
            let mut free = self.pool.0.0.lock();
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        let free = self.0.get_mut();
        free.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Deref for Shares {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl DerefMut for Shares {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_to_the_pool_and_is_used_again() {
        let pool = Pool::default();
        let first = pool.take(1000);
        let address = first.as_ptr();
        drop(first);
        let second = pool.take(500);
        assert_eq!(second.as_ptr(), address);
        let third = pool.take(500);
        assert_ne!(third.as_ptr(), address);
    }
}
