//! A time in which no line could be written: how long it lasted and how many events have no line. It is
//! recorded in a line when writing works again.

use polyclave_store::Gap;

use super::line::Line;

/// The operation of the line that records a gap.
pub(super) const OPERATION: &str = "gap";

/// A gap that begins.
pub(super) fn begun(since: String) -> Gap {
    Gap { since, ..Gap::default() }
}

/// The detail of the line. Its number of blocks is the number of events.
pub(super) fn detail(gap: &Gap) -> String {
    format!("since={} served={}", gap.since, gap.served)
}

/// The gap that a line records; `None` if it is another line.
pub(super) fn of(line: &Line) -> Option<Gap> {
    if line.operation != OPERATION {
        return None;
    }
    let field = |name: &str| line.detail.split(' ').find_map(|word| word.strip_prefix(name));
    let since = field("since=").unwrap_or("?").to_owned();
    let served = field("served=").and_then(|n| n.parse().ok()).unwrap_or(line.blocks);
    Some(Gap { since, events: line.blocks, served })
}
