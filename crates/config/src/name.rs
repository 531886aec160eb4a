//! Names of nodes, clients and keys, and which characters they may have.

use crate::{Error, Result};

/// The longest name.
const MAX: usize = 64;

/// A name is 1 to 64 letters, digits, `-`, `_` or `.`, and does not begin with a `.` or `-`. `of` says what
/// it names.
pub fn check_name(of: &str, name: &str) -> Result<()> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let fits = (1..=MAX).contains(&name.len()) && name.bytes().all(letter) && !name.starts_with(['.', '-']);
    let wrong = || {
        let shown: String = name.chars().take(MAX).collect();
        Error::misuse(format!(
            "{shown:?} cannot name a {of}: take 1 to {MAX} letters, digits, '-', '_' or '.', a letter or digit first"
        ))
    };
    fits.then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_paths_or_options_are_refused() {
        for good in ["a", "node-1", "Key_2.old", &"x".repeat(64)] {
            assert!(check_name("key", good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-f", "a/b", "a b", "é", "a\n", "a*", &"x".repeat(65)] {
            assert!(check_name("key", bad).is_err(), "{bad}");
        }
    }
}
