//! How often somebody may do something: a number of times at once, and once more after each pause.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The most that are remembered by name.
const MOST: usize = 4096;

/// What those have for whom there is no room in the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Together they have what one has.
    Share,
    /// All that they want.
    Free,
}

/// See the [module](self).
pub(crate) struct Allowance<K> {
    at_once: u32,
    pause: Duration,
    others: Others,
    /// When each has all of it again. Those that share are `None`.
    whole: Mutex<HashMap<Option<K>, Instant>>,
}

impl<K: Clone + Eq + Hash> Allowance<K> {
    /// Failures, by address. Strangers can fill the memory, and what they share is used up then: somebody
    /// whose address has none left may still log in, but not fail.
    pub(crate) fn of_failures() -> Allowance<K> {
        Allowance::new(20, Duration::from_secs(3), Others::Share)
    }

    /// Logins that succeed, by identity. Somebody who can fill the memory has very many identities, and could
    /// take what is shared from all others.
    pub(crate) fn of_logins() -> Allowance<K> {
        Allowance::new(500, Duration::from_millis(100), Others::Free)
    }

    fn new(at_once: u32, pause: Duration, others: Others) -> Allowance<K> {
        Allowance { at_once, pause, others, whole: Mutex::default() }
    }

    /// How long somebody has to wait until it is allowed; `None` if it is now.
    pub(crate) fn wait(&self, key: &K, now: Instant) -> Option<Duration> {
        let known = self.whole.lock();
        let whole = known.get(&Some(key.clone())).or_else(|| match known.len() < MOST {
            true => None,
            false => known.get(&None),
        });
        let left = whole?.saturating_duration_since(now);
        // Once more is allowed if one pause has passed.
        let of_others = (self.at_once - 1) * self.pause;
        (left > of_others).then(|| left - of_others)
    }

    /// Notes that somebody did it.
    pub(crate) fn note(&self, key: &K, now: Instant) {
        let mut known = self.whole.lock();
        let own = Some(key.clone());
        if known.len() >= MOST && !known.contains_key(&own) {
            known.retain(|_, whole| *whole > now);
        }
        let of = match known.len() < MOST || known.contains_key(&own) {
            true => own,
            false if self.others == Others::Free => return,
            false => None,
        };
        let whole = known.entry(of).or_insert(now);
        // What was under way together may be noted together: nobody has to wait longer for that.
        *whole = ((*whole).max(now) + self.pause).min(now + self.at_once * self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(3);

    #[test]
    fn somebody_may_do_it_some_times_at_once_and_once_more_now_and_then() {
        let (failures, began) = (Allowance::of_failures(), Instant::now());
        for _ in 0..20 {
            assert_eq!(failures.wait(&"a", began), None);
            failures.note(&"a", began);
        }
        assert_eq!(failures.wait(&"a", began), Some(PAUSE));
        assert_eq!(failures.wait(&"b", began), None, "others are not affected");
        let later = began + PAUSE;
        assert_eq!(failures.wait(&"a", later), None);
        failures.note(&"a", later);
        assert_eq!(failures.wait(&"a", later), Some(PAUSE));
        (0..1000).for_each(|_| failures.note(&"a", later));
        assert_eq!(failures.wait(&"a", later), Some(PAUSE), "it need not wait longer");
        assert_eq!(failures.wait(&"a", later + 20 * PAUSE), None);
    }

    #[test]
    fn the_memory_is_bounded_and_a_full_one_slows_down_strangers_only() {
        let (failures, now) = (Allowance::of_failures(), Instant::now());
        (0..20).for_each(|_| failures.note(&0, now));
        (1..MOST + 1000).for_each(|address| failures.note(&address, now));
        assert!(failures.whole.lock().len() <= MOST + 1);
        assert!(failures.wait(&0, now).is_some(), "it is not forgotten");
        assert_eq!(failures.wait(&1, now), None, "one that is known has its own");
        assert!(failures.wait(&(2 * MOST), now).is_some(), "further ones share what one has");
        let later = now + 20 * PAUSE;
        failures.note(&(2 * MOST), later);
        assert_eq!(failures.whole.lock().len(), 1, "what is over is forgotten");
    }

    #[test]
    fn somebody_with_very_many_identities_takes_nothing_from_others() {
        let (logins, now) = (Allowance::of_logins(), Instant::now());
        (0..500).for_each(|_| logins.note(&0, now));
        (1..3 * MOST).for_each(|identity| logins.note(&identity, now));
        assert!(logins.whole.lock().len() <= MOST);
        assert!(logins.wait(&0, now).is_some(), "it is not forgotten");
        assert_eq!(logins.wait(&(3 * MOST), now), None);
    }
}
