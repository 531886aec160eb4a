//! Which refusals of certificates the log tells. Strangers can show any number of certificates. They must not
//! fill the log, nor easily hide in it that a client was refused whom an operator looks for.
//!
//! So the log tells of each certificate at once, and again after a while. Beyond a number of different ones
//! it tells one a second, and how many it has not told.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A certificate is told of again after this time.
const AGAIN: Duration = Duration::from_secs(30);
/// So many different certificates are told of at once.
const MOST: usize = 64;
/// Beyond them, one in this time.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What the log has told.
#[derive(Default)]
pub(super) struct Refused {
    /// When each certificate was told of, by its digest.
    told: HashMap<[u8; 32], Instant>,
    last: Option<Instant>,
    untold: u64,
}

impl Refused {
    /// Whether to tell now that this certificate was refused; then with how many refusals that were not told.
    pub(super) fn tell(&mut self, certificate: [u8; 32], now: Instant) -> Option<u64> {
        let age = |at: Instant| now.saturating_duration_since(at);
        self.told.retain(|_, at| age(*at) < AGAIN);
        let has_room = self.told.len() < MOST;
        let may_tell = has_room || self.last.is_none_or(|at| age(at) >= TELL_EVERY);
        if self.told.contains_key(&certificate) || !may_tell {
            self.untold += 1;
            return None;
        }
        if has_room {
            self.told.insert(certificate, now);
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_is_told_of_and_a_flood_of_them_one_a_second() {
        let (mut refused, began) = (Refused::default(), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        let one = |number: u64| blake3::hash(&number.to_le_bytes()).into();
        assert_eq!(refused.tell(one(0), at(0)), Some(0));
        // The same one hides no other one.
        assert_eq!((0..100).find_map(|_| refused.tell(one(0), at(1))), None);
        assert_eq!(refused.tell(one(1), at(2)), Some(100));
        // Up to a number of them at once, then one a second.
        let told = (2..1000).filter(|number| refused.tell(one(*number), at(3)).is_some()).count();
        assert_eq!(told, MOST - 2);
        assert_eq!(refused.tell(one(1000), at(500)), None);
        assert_eq!(refused.tell(one(1001), at(1100)), Some(1000 - MOST as u64 + 1));
        assert_eq!(refused.tell(one(1002), at(1200)), None);
        assert_eq!(refused.tell(one(0), at(2500)), None, "it was told");
        // After a while it is told again, and nothing is remembered for longer.
        assert_eq!(refused.tell(one(0), at(40_000)), Some(2));
        assert_eq!(refused.told.len(), 1);
    }
}
