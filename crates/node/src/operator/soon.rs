//! Keys about which a person has to do something soon, counted for the metrics.

use std::collections::HashMap;

use polyclave_api::{KeyInfo, VersionState};
use polyclave_store::Store;

use crate::keys::states::state_at;
use crate::operator::report::{Newest, end, left};

/// The part of a budget below which a key is nearly spent.
const LOW: f64 = 0.1;
/// A key that expires within so many seconds is counted.
const SOON: u64 = 7 * 24 * 3600;

/// See the [module](self).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeysOfSoon {
    /// Active keys whose newest version has less than a tenth of its budget left.
    pub(crate) nearly_spent: u64,
    /// Keys whose newest version expires within a week, and is not removed then.
    pub(crate) expiring: u64,
}

impl KeysOfSoon {
    /// Those of a store. `None` if it cannot be read, which is why the node is not ready.
    pub(crate) fn of_store(store: &Store, now: u64) -> Option<KeysOfSoon> {
        Some(KeysOfSoon::count(&store.readable_keys().ok()?, &store.spent_of_all().ok()?, now))
    }

    fn count(infos: &[KeyInfo], spent: &HashMap<[u8; 16], u64>, now: u64) -> KeysOfSoon {
        let mut soon = KeysOfSoon::default();
        let newest = Newest::of(infos);
        for info in infos.iter().filter(|info| newest.has(info)) {
            let is_active = state_at(info, now) == VersionState::Active && info.component.is_none();
            let left = left((spent.get(&info.account).copied().unwrap_or(0), info));
            soon.nearly_spent += u64::from(is_active && left < LOW);
            let expires = end(info).filter(|(_, is_removed)| !is_removed).map(|(at, _)| at);
            soon.expiring += u64::from(expires.is_some_and(|at| at > now && at - now < SOON));
        }
        soon
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Lifetime, Mode, NewKey, Origin};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key(id: u8, change: impl FnOnce(&mut NewKey)) -> KeyInfo {
        let mut new = NewKey::for_modes(&format!("k{id}"), "aes-128", &[Mode::Gcm], 100);
        change(&mut new);
        KeyInfo::first(new, [id; 16], Origin::Generated, NOW - 10, vec![1; 5])
    }

    #[test]
    fn a_key_that_was_rotated_needs_nothing_more() {
        let spent = HashMap::from([([1; 16], 100), ([2; 16], 0)]);
        let old = key(1, |new| new.expires = Some(NOW + 10));
        let both = KeysOfSoon { nearly_spent: 1, expiring: 1 };
        assert_eq!(KeysOfSoon::count(std::slice::from_ref(&old), &spent, NOW), both);
        let next = KeyInfo { version: 2, ..key(2, |new| new.name = "k1".into()) };
        for infos in [[old.clone(), next.clone()], [next, old]] {
            assert_eq!(KeysOfSoon::count(&infos, &spent, NOW), KeysOfSoon::default());
        }
    }

    #[test]
    fn keys_that_are_nearly_spent_or_expire_are_counted() {
        let expires = |at: u64| move |new: &mut NewKey| new.expires = Some(at);
        let infos = [
            key(1, |_| ()),
            key(2, |_| ()),
            key(3, expires(NOW + SOON - 1)),
            key(4, expires(NOW + SOON)),
            key(5, expires(NOW - 1)),
            key(6, |new| new.lifetime = Lifetime::Session { seconds: 60 }),
        ];
        let spent = HashMap::from([([1; 16], 90), ([2; 16], 91), ([5; 16], 100)]);
        // Key 5 has expired: it encrypts nothing more, and its budget does not matter.
        assert_eq!(KeysOfSoon::count(&infos, &spent, NOW), KeysOfSoon { nearly_spent: 1, expiring: 1 });
    }
}
