//! Memory for large tables: rows fetched before they are used, large pages, and fast wiping.
//!
//! The first two are hints: without them everything works, but more slowly. Addresses are public here
//! (positions in a table that come from opened values).

use core::ops::{Deref, DerefMut};

use zeroize::{DefaultIsZeroes, optimization_barrier};

/// Prefetches the cache line of a byte, which will be read soon. Nothing happens beyond the end.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE belongs to x86-64, and a prefetch has no effect on memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Asks for large pages behind the capacity of a vector, before it is filled: a table walked at random
/// otherwise misses the translation of nearly every address.
#[cfg_attr(target_os = "linux", allow(unsafe_code))]
pub fn prefer_large_pages<T>(table: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE: usize = 2 << 20;
        let start = table.as_ptr().addr();
        let (first, end) =
            (start.next_multiple_of(PAGE), (start + table.capacity() * size_of::<T>()) / PAGE * PAGE);
        if end.saturating_sub(first) >= LARGE {
            let pages = table.as_mut_ptr().wrapping_byte_add(first - start);
            // SAFETY: the whole pages inside of the vector's own allocation; MADV_HUGEPAGE changes how they
            // are backed, not what they hold. A refusal is no error.
            let _ =
                unsafe { rustix::mm::madvise(pages.cast(), end - first, rustix::mm::Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}

/// Overwrites everything that a vector holds or held in its present memory with zeros, and leaves it empty.
/// It does the same as `zeroize`, which writes element by element, but in the largest possible steps.
pub fn wipe<T: DefaultIsZeroes>(table: &mut Vec<T>) {
    table.fill(T::default());
    // Not beyond the capacity, so nothing moves.
    table.resize(table.capacity(), T::default());
    optimization_barrier(table.as_slice());
    table.clear();
}

/// A vector of secrets that is [wiped](wipe) on drop. It should not outgrow its capacity, because growing
/// leaves a copy behind.
#[derive(Default)]
pub struct Wiped<T: DefaultIsZeroes>(Vec<T>);

impl<T: DefaultIsZeroes> Wiped<T> {
    /// A vector of `len` zeros.
    pub fn zeros(len: usize) -> Wiped<T> {
        Wiped(vec![T::default(); len])
    }
}

impl<T: DefaultIsZeroes> Deref for Wiped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: DefaultIsZeroes> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: DefaultIsZeroes> Drop for Wiped<T> {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_change_nothing() {
        let mut bytes: Vec<u8> = Vec::with_capacity(5 << 20);
        prefer_large_pages(&mut bytes);
        bytes.resize(5 << 20, 7);
        prefetch(&bytes, 5 << 20);
        prefetch(&bytes, 1234);
        assert!(bytes.iter().all(|byte| *byte == 7));
        prefer_large_pages(&mut Vec::<u128>::new());
    }

    #[test]
    #[allow(unsafe_code)]
    fn wiping_reaches_what_was_cut_off() {
        let mut secret = vec![0x5a_u64; 1000];
        let (memory, capacity) = (secret.as_ptr(), secret.capacity());
        secret.truncate(10);
        wipe(&mut secret);
        assert!(secret.is_empty());
        assert_eq!((secret.as_ptr(), secret.capacity()), (memory, capacity));
        // SAFETY: the memory is the vector's, and all of it was written.
        let seen = unsafe { core::slice::from_raw_parts(memory, capacity) };
        assert!(seen.iter().all(|word| *word == 0));
    }
}
