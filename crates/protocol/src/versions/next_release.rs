//! Releases that do not exist yet, for tests of what two releases do together. A program with this code is
//! never shipped (`cli/tests/it/shipped.rs`). With `POLYCLAVE_NEXT_RELEASE=1` it speaks one version more of
//! every wire and format, and knows one feature more; with 2 it is the release after that.

use std::sync::OnceLock;

use super::Feature;

/// The releases to come.
const RELEASES: [&str; 2] = ["the next release", "the release after the next"];

/// What they know.
pub(super) static FEATURES: &[Feature] =
    &[Feature { name: "example", bit: 63, release: RELEASES[0], about: "Nothing: it is there for tests" }];

fn ahead() -> usize {
    static AHEAD: OnceLock<usize> = OnceLock::new();
    *AHEAD.get_or_init(|| {
        let wanted = std::env::var("POLYCLAVE_NEXT_RELEASE").ok().and_then(|n| n.parse().ok());
        wanted.unwrap_or(0).min(RELEASES.len())
    })
}

/// The release that this program is said to be.
pub(super) fn release() -> Option<&'static str> {
    ahead().checked_sub(1).map(|number| RELEASES[number])
}

/// The versions that come after those of the table.
pub(super) fn later(
    brought: &'static [(u8, &'static str)],
) -> impl DoubleEndedIterator<Item = (u8, &'static str)> {
    let (newest, _) = *brought.last().expect("there is a first version");
    RELEASES.into_iter().take(ahead()).enumerate().map(move |(i, of)| (newest + 1 + i as u8, of))
}
