//! Blocks of transfers, in memory that is reused.
//!
//! Extensions are made in batches of some megabytes. If every batch took fresh memory, most of the time would
//! go to having it mapped, cleared and wiped. So memory goes back to where it came from: it is wiped when its
//! last user is dropped, and need not be wiped before. There is never more of it than was in use at one time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_kernels::memory::{prefer_large_pages, wipe};

/// Memory for blocks, wiped when it is dropped.
#[derive(Default)]
pub(super) struct Pool {
    spare: Mutex<Vec<Vec<u128>>>,
}

/// Blocks of 128 bits that are secrets. They are wiped when they and the transfers that made them are gone.
#[derive(Default)]
pub struct Blocks {
    words: Vec<u128>,
    home: Arc<Pool>,
}

impl Pool {
    /// Takes memory for `count` blocks; what they hold is undefined.
    pub(super) fn take(self: &Arc<Pool>, count: usize) -> Blocks {
        let mut words = self.spared(count).unwrap_or_else(|| {
            let mut words = Vec::with_capacity(count);
            prefer_large_pages(&mut words);
            words
        });
        words.resize(count, 0);
        Blocks { words, home: self.clone() }
    }

    /// Unused memory for `count` blocks. If all unused pieces are too small, one is given up, because a
    /// larger one will replace it.
    fn spared(&self, count: usize) -> Option<Vec<u128>> {
        let mut spare = self.spare.lock();
        match spare.iter().rposition(|words| words.capacity() >= count) {
            Some(i) => Some(spare.swap_remove(i)),
            None => {
                spare.pop().iter_mut().for_each(wipe);
                None
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.spare.get_mut().iter_mut().for_each(wipe);
    }
}

impl Deref for Blocks {
    type Target = [u128];

    fn deref(&self) -> &[u128] {
        &self.words
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut [u128] {
        &mut self.words
    }
}

/// Blocks in memory of their own, which belongs to no pool.
#[cfg(test)]
impl FromIterator<u128> for Blocks {
    fn from_iter<I: IntoIterator<Item = u128>>(words: I) -> Self {
        Blocks { words: words.into_iter().collect(), home: Arc::default() }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        if words.capacity() > 0 {
            self.home.spare.lock().push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_never_more_than_was_in_use() {
        let pool = Arc::new(Pool::default());
        let spare = || pool.spare.lock().iter().map(Vec::capacity).collect::<Vec<_>>();
        let (first, second) = (pool.take(100), pool.take(200));
        let memory = second.as_ptr();
        drop((first, second));
        assert_eq!(spare(), [100, 200]);
        let again = pool.take(150);
        assert_eq!((again.as_ptr(), again.len()), (memory, 150));
        let larger = pool.take(300);
        assert!(spare().is_empty());
        drop((again, larger));
        assert_eq!(spare(), [200, 300]);
        drop(pool.take(0));
        assert_eq!(spare().len(), 2);
    }
}
