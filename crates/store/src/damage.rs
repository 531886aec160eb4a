//! Keys whose records cannot be read. They are noted for the operator, and do not prevent the use of other
//! keys.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};
use polyclave_api::KeyInfo;

use super::engine::Table;
use super::entry::Entry;
use super::versions::{Which, label_of, record_of};
use super::{KeyState, Result, Store, StoreError};

/// Names of keys with a record that could not be read at the last attempt.
#[derive(Debug, Default)]
pub(super) struct Damage(Mutex<BTreeSet<String>>);

impl Damage {
    /// Notes whether the record of a key that was just read could be read.
    pub(super) fn note<T>(&self, name: &str, read: &Result<T>) {
        match read {
            Err(StoreError::Corrupt { .. }) => self.lock().insert(name.into()),
            _ => self.lock().remove(name),
        };
    }

    /// Forgets the damage of a key and its versions: what is still damaged is noted again.
    pub(super) fn forget(&self, name: &str) {
        self.lock().retain(|label| {
            let rest = label.strip_prefix(name);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock()
    }
}

impl Store {
    /// Names of keys with a record that could not be read.
    pub fn damaged(&self) -> Vec<String> {
        self.damage.lock().iter().cloned().collect()
    }

    /// Notes that the shares of a version could be read and make no sense.
    pub fn note_unusable(&self, info: &KeyInfo) {
        let label = label_of(&record_of(&info.properties.name, info.version));
        self.damage.note::<()>(&label, &Err(StoreError::corrupt(&label)));
    }

    /// The announced keys that can be read, in order of their names.
    pub fn readable_keys(&self) -> Result<Vec<KeyInfo>> {
        self.engine.read(|records| {
            let mut infos = Vec::new();
            records.each_readable(Table::Keys, |name, entry: Result<Entry>| {
                match entry {
                    Ok(Entry { info, state: KeyState::Announced, .. }) => infos.push(info),
                    Ok(_) => {}
                    damaged => self.damage.note(&label_of(name), &damaged),
                }
                Ok(())
            })?;
            Ok(infos)
        })
    }

    /// Reads every key once, to find the damaged ones. Returns their names.
    pub fn look_over(&self) -> Result<Vec<String>> {
        for info in self.readable_keys()? {
            // Reading notes any damage.
            let _ = self.load(&info.properties.name, Which::Id(info.id));
        }
        Ok(self.damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn damaged_keys_are_found_and_the_others_are_listed() {
        let (store, disk) = in_memory();
        for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
            store.put_pending(&key(name, seed)).expect("put");
            store.announce(name, [seed; 16]).expect("announced");
        }
        assert_eq!(store.look_over().expect("read"), Vec::<String>::new());
        store.damage_record(Table::Keys, b"a");
        store.damage_shares([2; 16]);
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.look_over().expect("read"), ["a", "b"]);
        let listed: Vec<String> =
            store.readable_keys().expect("read").into_iter().map(|k| k.properties.name).collect();
        assert_eq!(listed, ["b", "c"], "what b is can be read, its shares cannot");
        assert!(matches!(store.key("b"), Err(StoreError::Corrupt { .. })));
        store.damage_shares([2; 16]);
        store.key("b").expect("mended").expect("there");
        assert_eq!(store.damaged(), ["a"]);
    }
}
