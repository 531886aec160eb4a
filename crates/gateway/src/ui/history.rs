//! What a node said in the last seconds, from which rates and latencies are computed; and whether its audit
//! log goes on from where it was.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use polyclave_api::{AuditEnd, LATENCY_BOUNDS_MS, Report};

/// Over how long rates are averaged.
const WINDOW: Duration = Duration::from_secs(5);
/// Over how long refusals are new.
const LATELY: Duration = Duration::from_secs(60);

/// What a node said, in order.
#[derive(Default)]
pub(super) struct History {
    starts: u64,
    samples: VecDeque<Sample>,
    audit: Option<AuditEnd>,
    contradiction: Option<String>,
}

struct Sample {
    at: Instant,
    /// By operation and outcome.
    requests: BTreeMap<(String, String), u64>,
    latencies: Vec<u64>,
}

impl Sample {
    fn total(&self) -> u64 {
        sum(self.requests.values())
    }
}

impl History {
    /// Adds a report.
    pub(super) fn add(&mut self, at: Instant, report: &Report) {
        // A node that was started again counts from 0.
        if report.starts != self.starts {
            self.samples.clear();
            self.starts = report.starts;
        }
        let counted =
            |r: &polyclave_api::RequestCount| ((r.operation.clone(), r.outcome.clone()), r.requests);
        let requests = report.requests.iter().map(counted).collect();
        self.samples.push_back(Sample { at, requests, latencies: report.latencies.clone() });
        while self.samples.front().is_some_and(|first| at.duration_since(first.at) > LATELY) {
            self.samples.pop_front();
        }
        self.note_audit(report.audit);
    }

    fn note_audit(&mut self, audit: Option<AuditEnd>) {
        let (Some(before), Some(now)) = (self.audit, audit) else {
            self.audit = audit.or(self.audit);
            return;
        };
        if now.number < before.number {
            let message =
                format!("it ended with line {} and now ends with line {}", before.number, now.number);
            self.contradiction.get_or_insert(message);
        } else if now.number == before.number && now.hash != before.hash {
            self.contradiction.get_or_insert(format!("line {} has another hash than before", now.number));
        }
        self.audit = audit;
    }

    /// How the audit log contradicts what was seen of it before.
    pub(super) fn contradiction(&self) -> Option<&str> {
        self.contradiction.as_deref()
    }

    /// Requests a second; `None` before there are two reports.
    pub(super) fn rate(&self) -> Option<f64> {
        let (first, last) = self.between(WINDOW)?;
        Some(per_second(last.total().saturating_sub(first.total()), first, last))
    }

    /// The same by operation.
    pub(super) fn rates(&self) -> BTreeMap<String, f64> {
        let mut rates = BTreeMap::new();
        if let Some((first, last)) = self.between(WINDOW) {
            for (key, count) in &last.requests {
                let before = first.requests.get(key).copied().unwrap_or_default();
                *rates.entry(key.0.clone()).or_insert(0.0) +=
                    per_second(count.saturating_sub(before), first, last);
            }
        }
        rates
    }

    /// How many requests ended with an outcome in the last minute, as far as this was seen.
    pub(super) fn lately(&self, outcome: &str) -> u64 {
        let of = |sample: &Sample| -> u64 {
            sum(sample.requests.iter().filter(|((_, o), _)| o == outcome).map(|(_, count)| count))
        };
        self.between(LATELY).map_or(0, |(first, last)| of(last).saturating_sub(of(first)))
    }

    /// How many requests of the last seconds took how long, by bucket.
    pub(super) fn latencies(&self) -> Vec<u64> {
        let Some((first, last)) = self.between(WINDOW) else { return Vec::new() };
        let pairs = last.latencies.iter().zip(first.latencies.iter().chain(std::iter::repeat(&0)));
        pairs.map(|(now, before)| now.saturating_sub(*before)).collect()
    }

    fn between(&self, window: Duration) -> Option<(&Sample, &Sample)> {
        let last = self.samples.back()?;
        let first = self.samples.iter().find(|sample| last.at.duration_since(sample.at) <= window)?;
        (first.at < last.at).then_some((first, last))
    }
}

/// A node may tell any numbers.
pub(super) fn sum<'n>(numbers: impl IntoIterator<Item = &'n u64>) -> u64 {
    numbers.into_iter().fold(0, |sum, number| sum.saturating_add(*number))
}

fn per_second(count: u64, first: &Sample, last: &Sample) -> f64 {
    count as f64 / last.at.duration_since(first.at).as_secs_f64()
}

/// The bound, in milliseconds, within which a part of requests was answered. `None` if there were none; the
/// last bound if it took longer.
pub(super) fn quantile(buckets: &[u64], part: f64) -> Option<u32> {
    let total = sum(buckets);
    let wanted = (total as f64 * part).ceil() as u64;
    let mut seen = 0_u64;
    let reached = |count: &u64| {
        seen = seen.saturating_add(*count);
        seen >= wanted
    };
    let bucket = buckets.iter().position(reached).filter(|_| total > 0)?;
    LATENCY_BOUNDS_MS.get(bucket).or(LATENCY_BOUNDS_MS.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket_whatever_numbers_a_node_tells() {
        assert_eq!(quantile(&[u64::MAX; 40], 0.5), Some(1));
        let mut buckets = [0; LATENCY_BOUNDS_MS.len() + 1];
        assert_eq!(quantile(&buckets, 0.5), None);
        (buckets[0], buckets[3]) = (98, 2);
        assert_eq!((quantile(&buckets, 0.5), quantile(&buckets, 0.99)), (Some(1), Some(5)));
        buckets[LATENCY_BOUNDS_MS.len()] = 100;
        assert_eq!(quantile(&buckets, 0.99), Some(60_000));
    }

    #[test]
    fn an_audit_log_that_does_not_go_on_from_where_it_was_is_told() {
        let end = |number, first| Some(AuditEnd { number, hash: [first; 32] });
        let mut history = History::default();
        for audit in [end(1, 1), end(1, 1), None, end(5, 2)] {
            history.note_audit(audit);
        }
        assert_eq!(history.contradiction(), None);
        let mut cut = History::default();
        cut.note_audit(end(5, 2));
        cut.note_audit(end(4, 2));
        cut.note_audit(end(9, 9));
        assert_eq!(cut.contradiction(), Some("it ended with line 5 and now ends with line 4"));
        history.note_audit(end(5, 3));
        assert_eq!(history.contradiction(), Some("line 5 has another hash than before"));
    }
}
