//! Everything that is drawn in a simulation: one stream of bytes from its seed.

use std::ffi::{c_int, c_void};

use crate::machines::real;
use crate::machines::world;

/// A stream of bytes from a seed.
pub(crate) struct Random {
    stream: blake3::OutputReader,
    drawn: [u8; 1024],
    used: usize,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave simulation 1");
        hasher.update(&seed.to_le_bytes());
        Random { stream: hasher.finalize_xof(), drawn: [0; 1024], used: 1024 }
    }

    /// The next bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.used == self.drawn.len() {
                self.stream.fill(&mut self.drawn);
                self.used = 0;
            }
            *byte = self.drawn[self.used];
            self.used += 1;
        }
    }

    /// A number below `bound`, which must not be 0. (Not quite uniform: nothing here needs that.)
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

/// `getrandom` of Linux: bytes of the simulation's stream in its threads.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(bytes: *mut c_void, len: usize, flags: u32) -> isize {
    if !world::is_inside() {
        return real::getrandom(bytes, len, flags);
    }
    // SAFETY: the caller gives room for so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), len) };
    world::with(|world| world.random.fill(bytes));
    len as isize
}

/// `getentropy`: the same.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(bytes: *mut c_void, len: usize) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { getrandom(bytes, len, 0) } {
        count if count == len as isize => 0,
        _ => -1,
    }
}
