//! How much of the limits of rules is used up: requests and blocks of each client, in the present hour and
//! day of the clock (UTC).
//!
//! Each node counts the requests that it serves, for itself, also those that then fail, and only in memory: a
//! node that starts anew starts from 0. So a limit of N a day allows a client that asks other nodes each
//! time, or whose nodes are started anew, more than N. A limit that must never be exceeded is a key's budget,
//! which is durable and which all nodes share.
//!
//! A library (governor) does not fit: its buckets fill up again all the time, so that twice the limit fits
//! into some hour, and it forgets what was counted if another rule changes.

use std::collections::HashMap;

use parking_lot::Mutex;
use polyclave_config::{Moment, Rule};

/// Beyond so many counts, those of days before are forgotten.
const MANY: usize = 10_000;

/// What clients have used, by the rule and the client.
#[derive(Default)]
pub(crate) struct Rates(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    by_rule_and_client: HashMap<(String, String), Used>,
    /// How many there may be before some are forgotten.
    prune_beyond: usize,
}

/// What a client has used of a rule.
#[derive(Default)]
struct Used {
    hour: u64,
    day: u64,
    /// Requests and blocks, in the hour and in the day.
    in_hour: [u64; 2],
    in_day: [u64; 2],
}

impl Rates {
    /// Counts requests and blocks if they are within all limits of the rule; nothing otherwise. Returns
    /// whether they were counted.
    pub(crate) fn admit(&self, rule: &Rule, client: &str, amounts: [u64; 2], at: Moment) -> bool {
        let mut all = self.0.lock();
        if all.by_rule_and_client.len() > all.prune_beyond.max(MANY) {
            // Those of this day count.
            all.by_rule_and_client.retain(|_, used| used.day >= at.day());
            all.prune_beyond = 2 * all.by_rule_and_client.len();
        }
        let used = all.by_rule_and_client.entry((rule.name.clone(), client.to_owned())).or_default();
        // A clock that is put back must not give anything back.
        if at.hour() > used.hour {
            (used.hour, used.in_hour) = (at.hour(), [0; 2]);
        }
        if at.day() > used.day {
            (used.day, used.in_day) = (at.day(), [0; 2]);
        }
        let limits = [
            (&used.in_hour, [rule.requests_per_hour, rule.blocks_per_hour]),
            (&used.in_day, [rule.requests_per_day, rule.blocks_per_day]),
        ];
        let within = |used: &[u64; 2], most: [Option<std::num::NonZeroU64>; 2]| {
            (0..2).all(|i| most[i].is_none_or(|most| used[i].saturating_add(amounts[i]) <= most.get()))
        };
        let admitted = limits.into_iter().all(|(used, most)| within(used, most));
        if admitted {
            for used in [&mut used.in_hour, &mut used.in_day] {
                (0..2).for_each(|i| used[i] = used[i].saturating_add(amounts[i]));
            }
        }
        admitted
    }

    /// Forgets the counts of rules that are gone.
    pub(crate) fn keep(&self, rules: &[Rule]) {
        self.0.lock().by_rule_and_client.retain(|(name, _), _| rules.iter().any(|rule| rule.name == *name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn at(text: &str) -> Moment {
        text.parse().expect("a moment")
    }

    #[test]
    fn what_is_beyond_a_limit_is_not_admitted_until_the_next_hour_or_day() {
        let rule = Rule {
            name: "r".into(),
            requests_per_hour: NonZeroU64::new(2),
            blocks_per_day: NonZeroU64::new(10),
            ..Rule::default()
        };
        let rates = Rates::default();
        let admit = |client: &str, amounts, moment: &str| rates.admit(&rule, client, amounts, at(moment));
        assert!(admit("alice", [1, 0], "2026-11-24T10:00:00Z"));
        assert!(admit("alice", [1, 0], "2026-11-24T10:59:59Z"));
        assert!(!admit("alice", [1, 0], "2026-11-24T10:59:59Z"));
        assert!(admit("bob", [1, 0], "2026-11-24T10:59:59Z"), "each client has its own");
        assert!(admit("alice", [1, 9], "2026-11-24T11:00:00Z"));
        assert!(!admit("alice", [0, 2], "2026-11-24T11:00:00Z"), "two blocks do not fit");
        assert!(admit("alice", [0, 1], "2026-11-24T11:00:00Z"), "what was not admitted was not counted");
        assert!(!admit("alice", [0, 1], "2026-11-24T23:00:00Z"));
        assert!(!admit("alice", [0, u64::MAX], "2026-11-24T23:00:00Z"));
        assert!(admit("alice", [0, 10], "2026-11-25T00:00:00Z"), "the next day");
    }

    #[test]
    fn a_clock_that_is_put_back_gives_nothing_back() {
        let rule = Rule { name: "r".into(), requests_per_hour: NonZeroU64::new(1), ..Rule::default() };
        let rates = Rates::default();
        assert!(rates.admit(&rule, "alice", [1, 0], at("2026-11-24T10:00:00Z")));
        assert!(!rates.admit(&rule, "alice", [1, 0], at("2026-11-24T09:00:00Z")));
        rates.keep(&[]);
        assert!(rates.admit(&rule, "alice", [1, 0], at("2026-11-24T10:00:00Z")), "the rule was removed");
    }
}
