//! Whose request is asked of the nodes next.
//!
//! So many requests are with the nodes at once. Whoever else asks waits in a line of its own: one line for each token and each KMS. A place
//! that becomes free goes to the lines in turn, so that one token with a thousand requests delays another one's single request by no more than
//! one of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Queue(Arc<Places>);

struct Places {
    most: usize,
    waiting_each: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// The lines in which somebody waits, the next one first.
    lines: VecDeque<(String, VecDeque<oneshot::Sender<Place>>)>,
}

/// A place with the nodes. It goes to whoever is next when it is dropped.
pub(crate) struct Place(Option<Arc<Places>>);

/// Too many wait in a line already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Queue {
    pub(crate) fn new(most: usize, waiting_each: usize) -> Queue {
        Queue(Arc::new(Places { most, waiting_each, state: Mutex::default() }))
    }

    /// Waits in a line for a place.
    pub(crate) async fn place(&self, line: &str) -> Result<Place, Full> {
        let called = {
            let mut state = self.0.state.lock();
            if state.taken < self.0.most {
                state.taken += 1;
                return Ok(Place(Some(self.0.clone())));
            }
            let known = state.lines.iter().position(|(name, _)| name == line);
            let at = known.unwrap_or_else(|| {
                state.lines.push_back((line.into(), VecDeque::new()));
                state.lines.len() - 1
            });
            let waiting = &mut state.lines[at].1;
            // Some may have given up.
            waiting.retain(|call| !call.is_closed());
            if waiting.len() >= self.0.waiting_each {
                return Err(Full);
            }
            let (call, called) = oneshot::channel();
            waiting.push_back(call);
            called
        };
        called.await.map_err(|_| Full)
    }

    /// How many have a place, and how many wait.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let state = self.0.state.lock();
        (state.taken, state.lines.iter().map(|(_, waiting)| waiting.len()).sum())
    }
}

impl Places {
    /// Whoever is next. If nobody waits, the place is free.
    fn next(&self) -> Option<oneshot::Sender<Place>> {
        let mut state = self.state.lock();
        while let Some((name, mut waiting)) = state.lines.pop_front() {
            let Some(call) = waiting.pop_front() else { continue };
            if !waiting.is_empty() {
                state.lines.push_back((name, waiting));
            }
            return Some(call);
        }
        state.taken -= 1;
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = self.0.take() else { return };
        while let Some(call) = places.next() {
            match call.send(Place(Some(places.clone()))) {
                Ok(()) => return,
                // It has given up. The place goes on to the next one, here and not when it is dropped.
                Err(mut returned) => drop(returned.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Result<Place, Full>>>>;

    /// Somebody who has begun to wait.
    fn wait(queue: &Queue, line: &'static str) -> Waiting {
        let queue = queue.clone();
        let mut waiting: Waiting = Box::pin(async move { queue.place(line).await });
        assert!(look(&mut waiting).is_none());
        waiting
    }

    fn look(waiting: &mut Waiting) -> Option<Result<Place, Full>> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn now(queue: &Queue, line: &'static str) -> Result<Place, Full> {
        let queue = queue.clone();
        look(&mut (Box::pin(async move { queue.place(line).await }) as Waiting)).expect("at once")
    }

    #[test]
    fn lines_take_turns_however_many_wait_in_each() {
        let queue = Queue::new(1, 8);
        let mut place = now(&queue, "a").expect("free");
        let mut all: Vec<(&str, Waiting)> =
            ["a", "a", "a", "b", "c", "b"].map(|line| (line, wait(&queue, line))).into();
        let mut order = Vec::new();
        while !all.is_empty() {
            drop(place);
            let (at, next) = all
                .iter_mut()
                .enumerate()
                .find_map(|(i, (_, waiting))| Some((i, look(waiting)?)))
                .expect("one of them is next");
            place = next.expect("a place");
            order.push(all.remove(at).0);
            assert!(all.iter_mut().all(|(_, waiting)| look(waiting).is_none()), "one place, one at a time");
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
        drop(place);
        assert_eq!(queue.lengths(), (0, 0));
    }

    #[test]
    fn a_full_line_refuses_and_no_other_line_is_affected() {
        let queue = Queue::new(1, 2);
        let place = now(&queue, "a").expect("free");
        let first = wait(&queue, "a");
        let second = wait(&queue, "a");
        assert_eq!(now(&queue, "a").err(), Some(Full));
        let other = wait(&queue, "b");
        drop(first);
        let third = wait(&queue, "a");
        assert_eq!(now(&queue, "a").err(), Some(Full), "whoever gave up has made room for one");
        drop((place, second, third, other));
        assert_eq!(queue.lengths(), (0, 0));
    }

    #[test]
    fn places_of_those_who_give_up_are_not_lost() {
        let queue = Queue::new(1, 100);
        let place = now(&queue, "a").expect("free");
        let mut last = wait(&queue, "z");
        let gone: Vec<Waiting> = (0..100).map(|_| wait(&queue, "a")).collect();
        drop(gone);
        drop(place);
        let held = look(&mut last).expect("its turn").expect("a place");
        let called = wait(&queue, "b");
        drop(held);
        // It was called, and never looks.
        drop(called);
        assert!(now(&queue, "a").is_ok());
    }
}
