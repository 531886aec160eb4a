//! How many look at the page. Each has a place, and there are few. A browser that takes nothing any more, such as that of a laptop that was
//! closed, loses its place to others after a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The most who look at once.
pub(crate) const MOST: usize = 16;
/// Whoever takes nothing for so long does not look.
const STALLED: Duration = Duration::from_secs(20);

/// Those who look.
#[derive(Default)]
pub(crate) struct Viewers {
    next: AtomicU64,
    /// When each took something last.
    places: Mutex<HashMap<u64, Instant>>,
}

/// The place of one. It is free again when this is dropped.
pub(crate) struct Place {
    viewers: Arc<Viewers>,
    number: u64,
}

impl Viewers {
    /// A place, if there is one.
    pub(crate) fn place(self: &Arc<Viewers>) -> Option<Place> {
        self.forget_the_stalled();
        let mut places = self.places.lock();
        if places.len() >= MOST {
            return None;
        }
        let number = self.next.fetch_add(1, Relaxed);
        places.insert(number, Instant::now());
        Some(Place { viewers: self.clone(), number })
    }

    /// How many look.
    pub(crate) fn count(&self) -> usize {
        self.forget_the_stalled();
        self.places.lock().len()
    }

    fn forget_the_stalled(&self) {
        self.places.lock().retain(|_, last| last.elapsed() < STALLED);
    }
}

impl Place {
    /// Notes that something was taken. False if the place was given away.
    pub(crate) fn moves_on(&self) -> bool {
        self.viewers.places.lock().get_mut(&self.number).map(|last| *last = Instant::now()).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.viewers.places.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_one_that_stalls_is_given_away() {
        let viewers = Arc::new(Viewers::default());
        let mut all: Vec<Place> = (0..MOST).map(|_| viewers.place().expect("room")).collect();
        assert!(viewers.place().is_none());
        all.pop();
        let again = viewers.place().expect("a place became free");
        let long_ago = Instant::now().checked_sub(STALLED).expect("the machine runs for longer");
        viewers.places.lock().insert(again.number, long_ago);
        let other = viewers.place().expect("the place of the one that stalled");
        assert!(!again.moves_on() && other.moves_on());
        drop(again);
        assert_eq!(viewers.count(), MOST);
    }
}
