//! The order in which requests go to the nodes.
//!
//! The number of requests that are with the nodes at once is limited. The others wait in lines: one line for
//! each token and each KMS. A place that becomes free goes to the lines in turn, so that one token with a
//! thousand requests delays another one's single request by no more than one of its own.
//!
//! Requests that are with the nodes at the same time slow each other down, too. So a line has few places
//! while other lines ask now and then. It has one place while the nodes have a request of another line in
//! which nobody waits. A line that is alone has all places.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The part of all places that a line has beside others.
const PART: usize = 4;
/// A line that asked within this time is another one, for the others.
const RECENT: Duration = Duration::from_secs(60);

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
    /// The lines that asked lately, the next one first.
    lines: VecDeque<Waiters>,
}

struct Waiters {
    name: Arc<str>,
    /// How many places it has.
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
    last: Instant,
}

/// A place with the nodes. When it is dropped, it goes to the next request in line.
pub(crate) struct Place {
    /// None if it was given back already.
    places: Option<Arc<Places>>,
    line: Arc<str>,
}

/// Too many wait in a line already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Queue {
    pub(crate) fn new(most: usize, waiting_each: usize) -> Queue {
        Queue(Arc::new(Places { most, waiting_each, state: Mutex::default() }))
    }

    /// Waits in a line for a place.
    pub(crate) async fn place(&self, line: &Arc<str>) -> Result<Place, Full> {
        let called = {
            let mut state = self.0.state.lock();
            let own = state.line(line, Instant::now());
            // Some may have given up.
            own.waiting.retain(|call| !call.is_closed());
            if own.waiting.len() >= self.0.waiting_each {
                return Err(Full);
            }
            let (call, called) = oneshot::channel();
            own.waiting.push_back(call);
            self.0.give(state);
            called
        };
        called.await.map_err(|_| Full)
    }

    /// How many have a place, and how many wait.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let state = self.0.state.lock();
        (state.taken, state.lines.iter().map(|line| line.waiting.len()).sum())
    }
}

impl State {
    /// The line of a name, which asks now. Those that have not asked for long are forgotten.
    fn line(&mut self, name: &Arc<str>, now: Instant) -> &mut Waiters {
        self.lines.retain(|line| line.taken > 0 || !line.waiting.is_empty() || now - line.last < RECENT);
        let known = self.lines.iter().position(|line| line.name == *name);
        let at = known.unwrap_or_else(|| {
            let (name, waiting) = (name.clone(), VecDeque::new());
            self.lines.push_back(Waiters { name, taken: 0, waiting, last: now });
            self.lines.len() - 1
        });
        self.lines[at].last = now;
        &mut self.lines[at]
    }

    /// The next request that gets a place. The line is the last one then.
    fn next(&mut self, most: usize, now: Instant) -> Option<(Arc<str>, oneshot::Sender<Place>)> {
        if self.taken >= most {
            return None;
        }
        let may_have_more = |line: &Waiters| {
            let others = || self.lines.iter().filter(|other| other.name != line.name);
            let most_of_it = if others().any(|other| other.taken > 0 && other.waiting.is_empty()) {
                1
            } else if others().any(|other| now - other.last < RECENT) {
                (most / PART).max(1)
            } else {
                most
            };
            line.taken < most_of_it
        };
        let at = self.lines.iter().position(|line| !line.waiting.is_empty() && may_have_more(line))?;
        let mut line = self.lines.remove(at)?;
        let call = line.waiting.pop_front()?;
        let name = line.name.clone();
        line.taken += 1;
        self.taken += 1;
        self.lines.push_back(line);
        Some((name, call))
    }

    fn give_back(&mut self, name: &Arc<str>) {
        self.taken -= 1;
        if let Some(line) = self.lines.iter_mut().find(|line| line.name == *name) {
            line.taken -= 1;
        }
    }
}

impl Places {
    /// Gives free places to the next requests.
    fn give(self: &Arc<Places>, mut state: parking_lot::MutexGuard<'_, State>) {
        while let Some((line, call)) = state.next(self.most, Instant::now()) {
            if let Err(mut returned) = call.send(Place { places: Some(self.clone()), line }) {
                // It has given up.
                returned.places = None;
                state.give_back(&returned.line);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(places) = self.places.take() else { return };
        let mut state = places.state.lock();
        state.give_back(&self.line);
        places.give(state);
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
        let mut waiting: Waiting = Box::pin(async move { queue.place(&line.into()).await });
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
        look(&mut (Box::pin(async move { queue.place(&line.into()).await }) as Waiting)).expect("at once")
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

    #[test]
    fn a_line_has_a_part_of_the_places_while_others_ask_and_all_of_them_alone() {
        let queue = Queue::new(8, 100);
        let mut own: Vec<Place> = (0..8).map(|_| now(&queue, "a").expect("it is alone")).collect();
        let mut more: Vec<Waiting> = (0..8).map(|_| wait(&queue, "a")).collect();
        let mut other = wait(&queue, "b");
        // Its next places go to others, until it has no more than its part.
        own.pop();
        let other_place = look(&mut other).expect("the next place").expect("a place");
        own.truncate(1);
        assert!(more.iter_mut().all(|waiting| look(waiting).is_none()), "one beside one that nobody follows");
        assert_eq!(queue.lengths(), (2, 8));
        drop(other_place);
        own.push(look(&mut more[0]).expect("its turn").expect("a place"));
        assert!(more[1..].iter_mut().all(|waiting| look(waiting).is_none()), "it has its part");
        // Another one need not wait, however many wait in that line. If more wait there, too, each has its
        // part.
        let others = [now(&queue, "b"), now(&queue, "b")].map(|place| place.expect("at once"));
        let following = wait(&queue, "b");
        own.pop();
        own.push(look(&mut more[1]).expect("its turn").expect("a place"));
        assert!(look(&mut more[2]).is_none());
        drop(following);
        // The other one was not heard of for long.
        for line in &mut queue.0.state.lock().lines {
            let long_ago = Instant::now().checked_sub(RECENT).expect("the machine runs for longer");
            line.last = if &*line.name == "b" { long_ago } else { line.last };
        }
        drop(others);
        own.extend(
            more[2..8].iter_mut().map(|waiting| look(waiting).expect("it is alone").expect("a place")),
        );
        assert_eq!(queue.lengths().0, 8);
    }
}
