//! Names of keys that are being made or deleted: one request at a time for each.
//!
//! Otherwise two requests that make a key of the same name could be stored in a different order by different
//! nodes, and the nodes would hold different keys under that name.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use polyclave_api::{Reason, Refusal, key_of_component};

use polyclave_store::{Store, StoreError};

/// How long a request waits for the one before: a client can have the answers of all nodes a moment before
/// the nodes are done.
const WAIT: Duration = Duration::from_millis(500);

/// The names that are in use at one node.
pub(crate) struct Names {
    store: Arc<Store>,
    taken: Mutex<HashSet<String>>,
    changed: Condvar,
}

/// A name under which no other request makes or deletes a key until this is dropped.
pub(crate) struct Taken {
    names: Arc<Names>,
    name: String,
}

impl Names {
    pub(crate) fn new(store: Arc<Store>) -> Names {
        Names { store, taken: Mutex::default(), changed: Condvar::new() }
    }

    /// Releases for other workers what a request that is over could not release, because the store did not
    /// answer.
    pub(crate) fn release_leftovers(&self) -> Result<(), StoreError> {
        // Held, so that no request takes a name meanwhile.
        let taken = self.taken.lock();
        self.store.release_claims(|name| !taken.contains(key_of_component(name).unwrap_or(name)))
    }

    /// Takes a name.
    pub(crate) fn take(self: &Arc<Self>, name: &str) -> Result<Taken, Refusal> {
        let mut taken = self.taken.lock();
        self.changed.wait_while_for(&mut taken, |taken| taken.contains(name), WAIT);
        if !taken.insert(name.to_owned()) {
            let message = format!("another request is making or deleting the key '{name}'; try again later");
            return Err(Refusal::new(Reason::Busy, message));
        }
        Ok(Taken { names: self.clone(), name: name.to_owned() })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // For other workers, before other requests of this one.
        let has_taken = |name: &str| key_of_component(name).unwrap_or(name) == self.name;
        if let Err(e) = self.names.store.release_claims(has_taken) {
            tracing::warn!(error = %e, "other workers cannot make a key of a name for now; this is tried again");
        }
        self.names.taken.lock().remove(&self.name);
        self.names.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_store::testing::in_memory;

    #[test]
    fn a_name_is_taken_once_until_it_is_given_back() {
        let names = Arc::new(Names::new(Arc::new(in_memory().0)));
        let first = names.take("k").expect("free");
        assert!(names.take("l").is_ok());
        assert_eq!(names.take("k").err().map(|refusal| refusal.reason), Some(Reason::Busy));
        let waiting = std::thread::spawn({
            let names = names.clone();
            move || names.take("k").is_ok()
        });
        std::thread::sleep(WAIT / 5);
        drop(first);
        assert!(waiting.join().expect("no panic"));
    }
}
