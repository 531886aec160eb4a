//! How often logins from one address may fail. Each address has a number of failures at once, and gets one
//! back every few seconds. An address that has none left is refused before anything of its request is read.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The failures that somebody has at once, and after which time one comes back.
const AT_ONCE: u32 = 20;
const EVERY: Duration = Duration::from_secs(3);
/// The most addresses that are remembered. Further ones share what one has.
const MOST: usize = 4096;

/// See the [module](self). By address: when all of its failures have come back.
pub(crate) struct Failures<A> {
    by_address: Mutex<HashMap<Option<A>, Instant>>,
}

impl<A: Clone + Eq + Hash> Failures<A> {
    pub(crate) fn new() -> Failures<A> {
        Failures { by_address: Mutex::default() }
    }

    /// For how long an address has to wait before it may try to log in; `None` if it may now.
    pub(crate) fn wait(&self, address: &A, now: Instant) -> Option<Duration> {
        let known = self.by_address.lock();
        let whole = known.get(&Some(address.clone())).or_else(|| match known.len() < MOST {
            true => None,
            false => known.get(&None),
        });
        // It may fail once more if one has come back.
        let left = whole?.saturating_duration_since(now);
        (left > (AT_ONCE - 1) * EVERY).then(|| left - (AT_ONCE - 1) * EVERY)
    }

    /// Notes that a login failed.
    pub(crate) fn note(&self, address: &A, now: Instant) {
        let mut known = self.by_address.lock();
        let own = Some(address.clone());
        if known.len() >= MOST && !known.contains_key(&own) {
            known.retain(|_, whole| *whole > now);
        }
        let of = if known.len() < MOST || known.contains_key(&own) { own } else { None };
        let whole = known.entry(of).or_insert(now);
        // Logins that were under way together may fail together: nobody has to wait longer for them.
        *whole = ((*whole).max(now) + EVERY).min(now + AT_ONCE * EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_some_failures_at_once_and_one_more_now_and_then() {
        let (failures, began) = (Failures::new(), Instant::now());
        for _ in 0..AT_ONCE {
            assert_eq!(failures.wait(&"a", began), None);
            failures.note(&"a", began);
        }
        assert_eq!(failures.wait(&"a", began), Some(EVERY));
        assert_eq!(failures.wait(&"b", began), None, "others are not affected");
        let later = began + EVERY;
        assert_eq!(failures.wait(&"a", later), None);
        failures.note(&"a", later);
        assert_eq!(failures.wait(&"a", later), Some(EVERY));
        (0..1000).for_each(|_| failures.note(&"a", later));
        assert_eq!(failures.wait(&"a", later), Some(EVERY), "it need not wait longer");
        assert_eq!(failures.wait(&"a", later + AT_ONCE * EVERY), None);
    }

    #[test]
    fn the_memory_is_bounded_and_a_full_one_slows_down_strangers_only() {
        let (failures, now) = (Failures::new(), Instant::now());
        (0..AT_ONCE).for_each(|_| failures.note(&0, now));
        (1..MOST + 1000).for_each(|address| failures.note(&address, now));
        assert!(failures.by_address.lock().len() <= MOST + 1);
        assert!(failures.wait(&0, now).is_some(), "it is not forgotten");
        assert_eq!(failures.wait(&1, now), None, "one that is known has failures of its own");
        assert!(failures.wait(&(2 * MOST), now).is_some(), "further ones share what one has");
        let later = now + AT_ONCE * EVERY;
        failures.note(&(2 * MOST), later);
        assert_eq!(failures.by_address.lock().len(), 1, "what is over is forgotten");
    }
}
