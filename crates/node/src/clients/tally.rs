//! How many requests this node has answered, how, and how fast, for monitoring
//! ([`Report`](polyclave_api::Report)). The metrics have the same. But they are global to a process, which
//! may have several nodes, and can only be read by a program that reaches the node's machine.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use polyclave_api::{LATENCY_BOUNDS_MS, RequestCount};

/// The counts since the start.
#[derive(Default)]
pub(crate) struct Tally(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// By operation and outcome. There are few of both.
    requests: BTreeMap<(&'static str, &'static str), u64>,
    latencies: [u64; LATENCY_BOUNDS_MS.len() + 1],
}

impl Tally {
    /// Counts a request.
    pub(crate) fn count(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        let bucket = LATENCY_BOUNDS_MS.partition_point(|bound| took > Duration::from_millis((*bound).into()));
        let mut counts = self.0.lock();
        *counts.requests.entry((operation, outcome)).or_default() += 1;
        counts.latencies[bucket] += 1;
    }

    /// All counts, and how many requests took how long.
    pub(crate) fn read(&self) -> (Vec<RequestCount>, Vec<u64>) {
        let counts = self.0.lock();
        let requests = counts.requests.iter().map(|((operation, outcome), requests)| RequestCount {
            operation: (*operation).into(),
            outcome: (*outcome).into(),
            requests: *requests,
        });
        (requests.collect(), counts.latencies.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_outcome_and_by_the_time_that_they_took() {
        let tally = Tally::default();
        let ms = Duration::from_millis;
        tally.count("seal", "done", ms(1));
        tally.count("seal", "done", ms(1) + Duration::from_nanos(1));
        tally.count("seal", "denied", ms(60_001));
        let (requests, latencies) = tally.read();
        let seen: Vec<_> = requests.iter().map(|r| (r.outcome.as_str(), r.requests)).collect();
        assert_eq!(seen, [("denied", 1), ("done", 2)]);
        assert_eq!((latencies[0], latencies[1], latencies[LATENCY_BOUNDS_MS.len()]), (1, 1, 1));
    }
}
