//! What the tests of several crates share: fuzzing of parsers of foreign bytes, on stable Rust, in ordinary
//! tests; an [`authority`] that signs certificates; a [`collector`] of traces; [`programs`] of others; what
//! is wrong with names of [`metrics`]; the pages of the [`book`]; and what tests read in [`sources`].
//!
//! A target is a `#[test]` that calls [`fuzz!`] with valid inputs and a property. The property is tried on
//! every valid input, on every file of `fuzz/corpus/TARGET` (what was found before, kept), and then on as
//! many inputs as [`QUICK`] says, which [`Foreign`] makes of them; `scripts/fuzz` asks for millions. bolero
//! makes the inputs random, shrinks one that fails, and can hand the same targets to a fuzzer that sees which
//! branches are taken.

pub mod authority;
pub mod book;
pub mod collector;
mod foreign;
pub mod metrics;
pub mod postgres;
pub mod programs;
pub mod relay;
pub mod sources;

use std::fs;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use bolero;
pub use foreign::Foreign;

/// Inputs of one target in an ordinary run of the tests: less than a second. `BOLERO_RANDOM_ITERATIONS` asks
/// for another number.
pub const QUICK: usize = 4000;

/// Tries a property on foreign bytes: `fuzz!("target", words, valid inputs, |bytes: &[u8]| ...)`. `words` are
/// what belongs to the format besides what is in the valid inputs: keywords, and numbers at its limits.
/// `fuzz!(quick = 400, "target", ...)` tries so many inputs in an ordinary run, if one takes longer than
/// those of a parser.
#[macro_export]
macro_rules! fuzz {
    (quick = $quick:expr, $target:literal, $words:expr, $valid:expr, $property:expr) => {{
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/", $target);
        let inputs = $crate::Foreign::new($valid, $crate::corpus(corpus.as_ref()), $words);
        $crate::run!($quick, inputs, $property)
    }};
    ($target:literal, $words:expr, $valid:expr, $property:expr) => {
        $crate::fuzz!(quick = $crate::QUICK, $target, $words, $valid, $property)
    };
}

/// The end of [`fuzz!`]: here, since bolero wants to be called in the test itself.
#[doc(hidden)]
#[macro_export]
macro_rules! run {
    ($quick:expr, $inputs:expr, $property:expr) => {{
        let (inputs, property) = ($inputs, $crate::Property::new($property));
        let seeds = inputs.seeds().len();
        inputs.seeds().iter().for_each(|seed| property.try_on(seed));
        $crate::bolero::check!()
            .with_iterations($quick)
            .with_generator(inputs)
            .for_each(|bytes: &Vec<u8>| property.try_on(bytes));
        property.assert_tried_besides(seeds, $quick);
    }};
}

/// What is to hold of any bytes. Counts on how many it was tried: a target whose inputs never arrive has
/// shown nothing.
#[doc(hidden)]
pub struct Property<F> {
    holds: F,
    tried: AtomicUsize,
}

// One that failed ends the test; nothing of it is looked at again.
impl<F> UnwindSafe for Property<F> {}
impl<F> RefUnwindSafe for Property<F> {}

impl<F: Fn(&[u8])> Property<F> {
    #[doc(hidden)]
    pub fn new(holds: F) -> Property<F> {
        Property { holds, tried: AtomicUsize::new(0) }
    }

    #[doc(hidden)]
    pub fn try_on(&self, bytes: &[u8]) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        (self.holds)(bytes);
    }

    /// That it was tried on as many inputs as were asked for, besides those that are valid.
    #[doc(hidden)]
    pub fn assert_tried_besides(&self, valid: usize, quick: usize) {
        let asked = std::env::var("BOLERO_RANDOM_ITERATIONS").ok().and_then(|asked| asked.parse().ok());
        let tried = self.tried.load(Ordering::Relaxed) - valid;
        println!("tried on {tried} inputs");
        assert!(tried >= asked.unwrap_or(quick), "it was tried on {tried} inputs only");
    }
}

/// The files of a folder, in the order of their names; none if it is not there.
#[doc(hidden)]
pub fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a file can be read")).collect()
}

/// Does something that may hold no more than `most` bytes of memory at a time.
pub fn within_memory<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let mut outcome = None;
    let held = allocation_counter::measure(|| outcome = Some(work())).bytes_max;
    assert!(held <= most as u64, "it held {held} bytes, and may hold {most}");
    outcome.expect("it was done")
}
