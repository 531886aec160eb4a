//! A limited number of keys in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::{StoredKey, Which};

/// The keys used last, by name and by how they were asked for.
#[derive(Debug)]
pub(super) struct Cache {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    keys: HashMap<(String, Which), (u64, Arc<StoredKey>)>,
    /// Counts uses, so that the key not used for longest is known.
    clock: u64,
    /// Counts changes of the store, so that a key that was read before a change is not kept after it.
    changes: u64,
}

impl Cache {
    pub(super) fn new(most: usize) -> Cache {
        Cache { most, held: Mutex::default() }
    }

    /// A key, or the number of changes so far, which the caller passes to `put` with the key that it reads.
    pub(super) fn get(&self, name: &str, which: Which) -> Result<Arc<StoredKey>, u64> {
        let mut held = self.lock();
        held.clock += 1;
        let now = held.clock;
        let changes = held.changes;
        let (used, key) = held.keys.get_mut(&(name.to_owned(), which)).ok_or(changes)?;
        *used = now;
        Ok(key.clone())
    }

    /// Keeps a key, unless the store has changed since the given number of changes.
    pub(super) fn put(&self, which: Which, key: &Arc<StoredKey>, changes: u64) {
        let mut held = self.lock();
        if held.changes != changes {
            return;
        }
        if held.keys.len() >= self.most {
            let oldest = held.keys.iter().min_by_key(|(_, (used, _))| *used).map(|(asked, _)| asked.clone());
            oldest.and_then(|asked| held.keys.remove(&asked));
        }
        held.clock += 1;
        let now = held.clock;
        held.keys.insert((key.info.properties.name.clone(), which), (now, key.clone()));
    }

    /// Notes that the store has changed the key of this name.
    pub(super) fn forget(&self, name: &str) {
        let mut held = self.lock();
        held.changes += 1;
        held.keys.retain(|(of, _), _| of != name);
    }

    /// Notes that the store has changed every key.
    pub(super) fn clear(&self) {
        let mut held = self.lock();
        held.changes += 1;
        held.keys.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().keys.len()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::key;
    use super::*;

    #[test]
    fn the_key_not_used_for_longest_makes_room() {
        let cache = Cache::new(2);
        for name in ["a", "b"] {
            let changes = cache.get(name, Which::Current).expect_err("not there yet");
            cache.put(Which::Current, &Arc::new(key(name, 1)), changes);
        }
        assert!(cache.get("a", Which::Current).is_ok());
        let changes = cache.get("c", Which::Current).expect_err("not there yet");
        cache.put(Which::Current, &Arc::new(key("c", 1)), changes);
        assert_eq!(cache.len(), 2);
        assert!(
            cache.get("a", Which::Current).is_ok()
                && cache.get("c", Which::Current).is_ok()
                && cache.get("b", Which::Current).is_err()
        );
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let cache = Cache::new(2);
        let changes = cache.get("a", Which::Current).expect_err("not there yet");
        cache.forget("a");
        cache.put(Which::Current, &Arc::new(key("a", 1)), changes);
        assert!(cache.get("a", Which::Current).is_err());
    }
}
