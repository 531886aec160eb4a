//! What large tables with random access need of the machine: rows fetched ahead of their use, and large pages.
//!
//! Both are hints: without them everything works, more slowly. Addresses are public here (positions in a table that come from
//! opened values).

/// Asks for the cache line of a byte, which will be read soon. Nothing happens beyond the end.
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

/// Asks for large pages behind the capacity of a vector, before it is filled: a table walked at random otherwise misses the
/// translation of nearly every address.
#[cfg_attr(target_os = "linux", allow(unsafe_code))]
pub fn prefer_large_pages(bytes: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE: usize = 2 << 20;
        let start = bytes.as_ptr().addr();
        let (first, end) = (start.next_multiple_of(PAGE), (start + bytes.capacity()) / PAGE * PAGE);
        if end.saturating_sub(first) >= LARGE {
            let pages = bytes.as_mut_ptr().wrapping_add(first - start);
            // SAFETY: the whole pages inside of the vector's own allocation; MADV_HUGEPAGE changes how they are backed, not
            // what they hold. A refusal is no error.
            let _ =
                unsafe { rustix::mm::madvise(pages.cast(), end - first, rustix::mm::Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
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
        prefer_large_pages(&mut Vec::new());
    }
}
