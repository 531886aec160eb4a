//! How many look at the page. Each has a place, and there are few. A browser that takes nothing any more,
//! such as that of a laptop that was closed, loses its place to others after a while. If there is no room,
//! the token that has most places loses one to a token that has fewer: so one token cannot keep others from
//! looking.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The most viewers at a time.
pub(crate) const MAX: usize = 16;
/// A viewer that takes nothing for this long has gone.
const STALLED: Duration = Duration::from_secs(20);

/// The present viewers.
#[derive(Default)]
pub(crate) struct Viewers {
    next: AtomicU64,
    /// The token of each viewer, and when the viewer last took something.
    places: Mutex<HashMap<u64, (Arc<str>, Instant)>>,
}

/// The place of one. It is free again when this is dropped.
pub(crate) struct Place {
    viewers: Arc<Viewers>,
    number: u64,
}

impl Viewers {
    /// A place for a token of this name, if there is one.
    pub(crate) fn place(self: &Arc<Viewers>, name: &str) -> Option<Place> {
        self.forget_the_stalled();
        let mut places = self.places.lock();
        if places.len() >= MAX {
            let greediest = places.values().map(|(of, _)| of).max_by_key(|of| count(&places, of))?.clone();
            if count(&places, &greediest) <= count(&places, name) + 1 {
                return None;
            }
            let own = places.iter().filter(|(_, (of, _))| *of == greediest);
            let oldest = own.map(|(number, _)| *number).min()?;
            places.remove(&oldest);
        }
        let number = self.next.fetch_add(1, Relaxed);
        places.insert(number, (name.into(), Instant::now()));
        Some(Place { viewers: self.clone(), number })
    }

    /// How many look.
    pub(crate) fn count(&self) -> usize {
        self.forget_the_stalled();
        self.places.lock().len()
    }

    fn forget_the_stalled(&self) {
        self.places.lock().retain(|_, (_, last)| last.elapsed() < STALLED);
    }
}

/// How many places a token has.
fn count(places: &HashMap<u64, (Arc<str>, Instant)>, name: &str) -> usize {
    places.values().filter(|(of, _)| &**of == name).count()
}

impl Place {
    /// Notes that something was taken. False if the place was given away.
    pub(crate) fn moves_on(&self) -> bool {
        self.viewers.places.lock().get_mut(&self.number).map(|(_, last)| *last = Instant::now()).is_some()
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
        let mut all: Vec<Place> = (0..MAX).map(|_| viewers.place("a").expect("room")).collect();
        assert!(viewers.place("a").is_none());
        all.pop();
        let again = viewers.place("a").expect("a place became free");
        let long_ago = Instant::now().checked_sub(STALLED).expect("the machine runs for longer");
        viewers.places.lock().insert(again.number, ("a".into(), long_ago));
        let other = viewers.place("a").expect("the place of the one that stalled");
        assert!(!again.moves_on() && other.moves_on());
        drop(again);
        assert_eq!(viewers.count(), MAX);
    }

    #[test]
    fn one_token_keeps_no_other_from_looking() {
        let viewers = Arc::new(Viewers::default());
        let greedy: Vec<Place> = (0..MAX).map(|_| viewers.place("greedy").expect("room")).collect();
        assert!(viewers.place("greedy").is_none(), "its own streams stay");
        let others: Vec<Place> =
            (0..MAX / 2).map(|_| viewers.place("b").expect("one of the greedy one's")).collect();
        assert!(viewers.place("b").is_none(), "it has as many");
        assert!(others.iter().all(Place::moves_on));
        assert_eq!(
            greedy.iter().map(Place::moves_on).position(|stays| stays),
            Some(MAX / 2),
            "the oldest have ended"
        );
        assert!(viewers.place("c").is_some_and(|place| place.moves_on()));
    }
}
