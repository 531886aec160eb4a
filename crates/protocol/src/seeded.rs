//! Randomness from a seed, for tests that compare messages byte by byte. A program with this code is never
//! shipped (`cli/tests/it/shipped.rs`).

use std::cell::RefCell;

const _: () = assert!(
    option_env!("POLYCLAVE_SHIP").is_none(),
    "POLYCLAVE_SHIP is set, and what ships must not contain randomness from seeds: build the program alone, without packages that turn on the feature `seeded`"
);

thread_local! {
    static SEEDED: RefCell<Option<blake3::OutputReader>> = const { RefCell::new(None) };
}

/// Does some work for which this thread draws from the extended output of BLAKE3 on a seed, and not from the
/// operating system. Other threads draw as always.
pub fn with_seed<T>(seed: &[u8], work: impl FnOnce() -> T) -> T {
    let output = blake3::Hasher::new().update(seed).finalize_xof();
    let before = SEEDED.replace(Some(output));
    let outcome = work();
    SEEDED.set(before);
    outcome
}

/// Overwrites bytes by the next ones of this thread's seed. `false` if it has none.
pub(crate) fn fill(out: &mut [u8]) -> bool {
    SEEDED.with_borrow_mut(|seeded| seeded.as_mut().map(|output| output.fill(out)).is_some())
}
