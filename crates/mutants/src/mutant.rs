//! A mutant: one small change of the text of one file.

use std::ops::Range;
use std::path::PathBuf;

/// One change of one file.
#[derive(Clone)]
pub struct Mutant {
    /// The number of its switch, in its package. The first is 1.
    pub id: u32,
    pub file: PathBuf,
    /// Changes whenever the file does: a result is of this text only.
    pub source: u64,
    /// Place and change, in the words of cargo-mutants.
    pub name: String,
    pub change: Change,
}

/// A change of the text of a file, such that a switch can turn it on. Ranges are bytes.
#[derive(Clone)]
pub enum Change {
    /// A function returns `value` at once. Its first statement begins at `at`.
    Return { at: usize, value: String },
    /// An expression is another one.
    Replace { host: Range<usize>, by: String },
    /// A statement is left out.
    Omit { host: Range<usize> },
    /// An arm of a match is never taken. Its pattern ends at `pattern_end`; it may have a condition already.
    NeverTaken { pattern_end: usize, guard: Option<Range<usize>> },
    /// None of these, so no switch can turn it on.
    Other,
}
