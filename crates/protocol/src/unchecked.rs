//! Which checks a value still needs. A value that was made from opened values is right only if the next check
//! of its session passes. Until then no other session may use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::{Error, Result};

/// The number of checks of one session that have passed.
#[derive(Clone, Default)]
pub(crate) struct Checks(Arc<AtomicU64>);

impl Checks {
    /// Counts a check that has passed.
    pub(crate) fn pass(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    /// What a value needs that is made now from openings of this session.
    pub(crate) fn next(&self) -> Unchecked {
        Unchecked(vec![(self.clone(), self.0.load(SeqCst))])
    }

    /// Refuses a value of another session that was not checked there. The next check of this session covers
    /// its own values.
    pub(crate) fn refuse_foreign(&self, value: &Unchecked) -> Result<()> {
        match value.pending().any(|(checks, _)| !Arc::ptr_eq(&checks.0, &self.0)) {
            true => Err(Error::misuse("the shared value comes from another session that has not checked it")),
            false => Ok(()),
        }
    }
}

/// The checks that a value needs, which nobody outside can name: sessions, and how many of their checks had
/// passed when the value was made.
#[derive(Clone, Default)]
pub struct Unchecked(Vec<(Checks, u64)>);

impl Unchecked {
    fn pending(&self) -> impl Iterator<Item = &(Checks, u64)> {
        self.0.iter().filter(|(checks, before)| checks.0.load(SeqCst) <= *before)
    }

    /// Whether some check is missing.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending().next().is_some()
    }

    /// What a value needs that is computed from values that need these.
    pub(crate) fn join<'a>(parts: impl IntoIterator<Item = &'a Unchecked>) -> Unchecked {
        let mut joined: Vec<(Checks, u64)> = Vec::new();
        for (checks, before) in parts.into_iter().flat_map(Unchecked::pending) {
            match joined.iter_mut().find(|(of, _)| Arc::ptr_eq(&of.0, &checks.0)) {
                Some((_, latest)) => *latest = (*latest).max(*before),
                None => joined.push((checks.clone(), *before)),
            }
        }
        Unchecked(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_value_needs_the_checks_of_all_its_parts() {
        let [first, second, third] = [(); 3].map(|()| Checks::default());
        let early = first.next();
        first.pass();
        let joined = Unchecked::join([&early, &first.next(), &second.next()]);
        assert!(joined.is_pending() && third.refuse_foreign(&joined).is_err());
        second.pass();
        assert!(third.refuse_foreign(&joined).is_err() && first.refuse_foreign(&joined).is_ok());
        first.pass();
        assert!(!joined.is_pending() && third.refuse_foreign(&joined).is_ok());
        assert!(!Unchecked::default().is_pending());
    }
}
