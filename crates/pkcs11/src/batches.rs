//! Requests of several threads that are sent as one.
//!
//! A request costs the nodes about the same for one block as for a hundred. So if many threads encrypt a
//! block each, those that come while some requests are under way wait for one of them to end, and then all go
//! together. A request that comes while fewer are under way goes at once and alone: a program with one thread
//! sees no difference, and nobody waits for others to come.
//!
//! # When that is safe
//!
//! Only requests that are alike for the nodes go together: blocks that each stand by themselves (ECB), under
//! the same version of a key, in the same direction, for the same login. The nodes compute every block of a
//! request independently of the others, do not see the blocks, and judge a request by the client, the key,
//! the mode and the number of blocks, which is charged as it would be alone. The answer is cut at the places
//! where the data were joined, which do not depend on the data.
//!
//! # How long it takes
//!
//! A request has one deadline, from when it came: until then it waits for others, and its nodes are asked
//! again while they are busy. At the deadline a request that still waits goes alone, once. If others had
//! taken it along by then, its own answer counts, and theirs is dropped. So a request that waits takes at
//! most one try longer than it would alone. One that takes others along waits for no deadline of its own: it
//! takes as long as the joined request, and if that fails, one try more.
//!
//! What carries a nonce, a counter, a chain or a tag never goes together: a request has one of these.
//!
//! If the nodes refuse a joined request, or it fails, each of its requests is sent alone and has an outcome
//! of its own. So one that asks for more than is left of a budget fails no other. The same happens if the
//! thread that sends it panics. Encrypting a block twice in ECB reveals nothing, because it gives the same;
//! but the nodes charge it twice.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use zeroize::Zeroizing;

use crate::rv::Result;

/// How many requests of a kind are under way at most: enough to keep the nodes busy while the answer of
/// another one is on its way.
const MAX_RUNNING: usize = 2;
/// The most bytes of a request that goes with others. Longer ones gain nothing.
const MAX_JOINED_BYTES: usize = 4 << 10;
/// The most bytes that go together: one step of the nodes.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// How long a request waits for others at least, also in a program that wants no busy node asked again.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// What requests that go together have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    /// The address of the client of a login. Each request holds its client while it waits, so no two logins
    /// have the same.
    pub(crate) login: usize,
    /// The id of the version of the key.
    pub(crate) key: [u8; 16],
    pub(crate) encrypts: bool,
}

/// Requests by their kind.
#[derive(Default)]
pub(crate) struct Batches {
    queues: Mutex<HashMap<Kind, Queue>>,
}

#[derive(Default)]
struct Queue {
    running: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    data: Zeroizing<Vec<u8>>,
    seat: Arc<Seat>,
}

/// Where a thread waits for what happens to its request.
#[derive(Default)]
struct Seat {
    order: Mutex<Option<Order>>,
    is_ordered: Condvar,
}

enum Order {
    /// To send its own request together with these.
    Lead(Vec<Waiting>),
    Done(Zeroizing<Vec<u8>>),
    /// To send it alone, since the others failed or never came to it.
    Alone,
}

impl Seat {
    fn tell(&self, order: Order) {
        *self.order.lock() = Some(order);
        self.is_ordered.notify_one();
    }

    /// `None` if no order came until then.
    fn wait(&self, until: Instant) -> Option<Order> {
        let mut order = self.order.lock();
        while order.is_none() && !self.is_ordered.wait_until(&mut order, until).timed_out() {}
        order.take()
    }
}

impl Batches {
    /// What `work` makes of the data, perhaps together with data of other threads: as many bytes as it is
    /// given, each block by itself. `until` is the deadline.
    pub(crate) fn run(
        &self,
        kind: &Kind,
        data: &[u8],
        until: Instant,
        work: impl Fn(&[u8]) -> Result<Zeroizing<Vec<u8>>>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if data.is_empty() || data.len() > MAX_JOINED_BYTES {
            return work(data);
        }
        let others = match self.begin(kind, data, until.max(Instant::now() + MIN_WAIT)) {
            Order::Lead(others) => Others(others),
            Order::Done(made) => return Ok(made),
            Order::Alone => return work(data),
        };
        let turn = Turn { batches: self, kind };
        if others.0.is_empty() {
            return work(data);
        }
        let total = data.len() + others.0.iter().map(|other| other.data.len()).sum::<usize>();
        let mut all = Zeroizing::new(Vec::with_capacity(total));
        all.extend_from_slice(data);
        others.0.iter().for_each(|other| all.extend_from_slice(&other.data));
        match work(&all) {
            Ok(mut made) if made.len() == total => {
                others.give(&made[data.len()..]);
                made.truncate(data.len());
                Ok(made)
            }
            Ok(_) | Err(_) => {
                drop(others);
                drop(turn);
                work(data)
            }
        }
    }

    /// Goes at once if few are under way, or waits until then.
    fn begin(&self, kind: &Kind, data: &[u8], until: Instant) -> Order {
        let seat = {
            let mut queues = self.queues.lock();
            let queue = queues.entry(kind.clone()).or_default();
            if queue.running < MAX_RUNNING {
                queue.running += 1;
                return Order::Lead(Vec::new());
            }
            let seat = Arc::new(Seat::default());
            queue.waiting.push_back(Waiting { data: Zeroizing::new(data.to_vec()), seat: seat.clone() });
            seat
        };
        seat.wait(until).unwrap_or_else(|| self.leave(kind, &seat))
    }

    /// A request waits no longer. It goes alone, unless it got an order at the last moment. A request that
    /// took its data along gives its order to a seat where nobody waits. It cannot be ordered to lead any
    /// more: that is ordered while the queues are locked.
    fn leave(&self, kind: &Kind, seat: &Arc<Seat>) -> Order {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(kind) {
            queue.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.seat, seat));
        }
        seat.order.lock().take().unwrap_or(Order::Alone)
    }

    /// A request of a kind has ended: the next ones go.
    fn end(&self, kind: &Kind) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(kind) else { return };
        if let Some(first) = queue.waiting.pop_front() {
            let (mut others, mut total) = (Vec::new(), first.data.len());
            while let Some(len) = queue.waiting.front().map(|next| next.data.len())
                && total + len <= MAX_BATCH_BYTES
            {
                total += len;
                others.extend(queue.waiting.pop_front());
            }
            first.seat.tell(Order::Lead(others));
            return;
        }
        queue.running -= 1;
        if queue.running == 0 {
            queues.remove(kind);
        }
    }
}

/// The right to have a request under way. It passes on to those who wait, also after an error or a panic.
struct Turn<'b> {
    batches: &'b Batches,
    kind: &'b Kind,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.batches.end(self.kind);
    }
}

/// Requests whose outcome depends on this thread. Those that are given nothing are told to go alone.
struct Others(Vec<Waiting>);

impl Others {
    fn give(mut self, mut made: &[u8]) {
        for other in self.0.drain(..) {
            let (own, rest) = made.split_at(other.data.len());
            made = rest;
            other.seat.tell(Order::Done(Zeroizing::new(own.to_vec())));
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|other| other.seat.tell(Order::Alone));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use cryptoki_sys::CKR_FUNCTION_FAILED;

    use super::*;
    use crate::rv::Rv;

    fn kind(key: u8) -> Kind {
        Kind { login: 1, key: [key; 16], encrypts: true }
    }

    /// Longer than a test takes.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    fn flipped(data: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(data.iter().map(|byte| !byte).collect())
    }

    /// As many requests as may run are held back until `count` others wait. The first of those that wait then
    /// leads them.
    fn together(
        count: u8,
        work: impl Fn(&Batches, &[u8]) -> Result<Zeroizing<Vec<u8>>> + Sync,
    ) -> Vec<std::thread::Result<Result<Zeroizing<Vec<u8>>>>> {
        let (batches, held) = (Batches::default(), Mutex::new(()));
        let hold = |_: &[u8]| {
            drop(held.lock());
            Ok(Zeroizing::new(vec![0]))
        };
        let outcomes = std::thread::scope(|scope| {
            let holding = held.lock();
            let wait_for = |running: usize, waiting: usize| loop {
                let is_so = batches
                    .queues
                    .lock()
                    .get(&kind(1))
                    .is_some_and(|queue| (queue.running, queue.waiting.len()) == (running, waiting));
                if is_so {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            for running in 1..=MAX_RUNNING {
                scope.spawn(|| batches.run(&kind(1), &[0], later(), hold));
                wait_for(running, 0);
            }
            let mut threads = Vec::new();
            for number in 0..count {
                let (batches, work) = (&batches, &work);
                let data = vec![number; 1 + number as usize];
                threads.push(
                    scope.spawn(move || batches.run(&kind(1), &data, later(), |data| work(batches, data))),
                );
                wait_for(MAX_RUNNING, threads.len());
            }
            drop(holding);
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        assert!(batches.queues.lock().is_empty(), "everything has ended");
        outcomes
    }

    #[test]
    fn who_waits_goes_with_others_and_gets_what_is_its_own() {
        let sent = AtomicUsize::new(0);
        let outcomes = together(9, |_, data| {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok(flipped(data))
        });
        for (number, outcome) in (0..).zip(outcomes) {
            let made = outcome.expect("no panic").expect("done");
            assert_eq!(*made, vec![!number; 1 + number as usize]);
        }
        assert_eq!(sent.into_inner(), 1, "all waited when the first of those under way ended");
    }

    #[test]
    fn one_that_the_nodes_refuse_fails_no_other() {
        let refused = Rv(CKR_FUNCTION_FAILED);
        let outcomes =
            together(6, |_, data| if data.contains(&3) { Err(refused) } else { Ok(flipped(data)) });
        for (number, outcome) in (0..).zip(outcomes) {
            let outcome = outcome.expect("no panic");
            assert_eq!(outcome.is_ok(), number != 3, "{number}");
            assert!(
                outcome.is_err() || outcome.is_ok_and(|made| *made == vec![!number; 1 + number as usize])
            );
        }
    }

    #[test]
    fn answers_of_another_length_are_not_given_to_anybody() {
        let outcomes = together(3, |_, data| match data.len() {
            1..=3 => Ok(flipped(data)),
            _ => Ok(Zeroizing::new(vec![0; 2])),
        });
        for (number, outcome) in (0..).zip(outcomes) {
            assert_eq!(*outcome.expect("no panic").expect("done"), vec![!number; 1 + number as usize]);
        }
    }

    #[test]
    fn a_panic_of_the_thread_that_sends_leaves_nobody_waiting() {
        let outcomes = together(5, |_, data| {
            assert!(data.iter().all(|byte| *byte == data[0]), "several at once");
            Ok(flipped(data))
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1, "who led the others");
        for (number, outcome) in (0..).zip(outcomes) {
            if let Ok(made) = outcome {
                assert_eq!(*made.expect("done"), vec![!number; 1 + number as usize]);
            }
        }
    }

    #[test]
    fn who_goes_alone_after_the_others_failed_keeps_no_other_from_going() {
        let refused = Rv(CKR_FUNCTION_FAILED);
        let outcomes = together(3, |batches, data| {
            let is_together = data.iter().any(|byte| *byte != data[0]);
            let until = later();
            while !is_together && !batches.queues.lock().is_empty() {
                assert!(Instant::now() < until, "its turn is still taken");
                std::thread::sleep(Duration::from_millis(1));
            }
            if is_together { Err(refused) } else { Ok(flipped(data)) }
        });
        for (number, outcome) in (0..).zip(outcomes) {
            assert_eq!(*outcome.expect("no panic").expect("done"), vec![!number; 1 + number as usize]);
        }
    }

    /// A request that has waited until its deadline goes alone: before others took it along, and after.
    #[test]
    fn nobody_waits_longer_than_until_the_deadline() {
        let batches = Batches::default();
        let is_waiting =
            |count| batches.queues.lock().get(&kind(1)).is_some_and(|q| q.waiting.len() == count);
        let wait_for = |condition: &dyn Fn() -> bool| {
            while !condition() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let (first, second) = (Mutex::new(()), Mutex::new(()));
        let (led, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let (holds_first, holds_second) = (first.lock(), second.lock());
            for held in [&first, &second] {
                scope.spawn(|| {
                    batches.run(&kind(1), &[0], later(), |data| {
                        drop(held.lock());
                        Ok(flipped(data))
                    })
                });
            }
            wait_for(&|| batches.queues.lock().get(&kind(1)).is_some_and(|q| q.running == MAX_RUNNING));
            let now = Instant::now();
            assert_eq!(*batches.run(&kind(1), &[5], now, |data| Ok(flipped(data))).expect("done"), [!5]);
            assert!(is_waiting(0), "it has left");
            // One leads another, and does not end before the other has.
            let leader = scope.spawn(|| {
                batches.run(&kind(1), &[6], later(), |data| {
                    led.store(data.len(), Ordering::SeqCst);
                    let until = later();
                    while is_over.load(Ordering::SeqCst) == 0 {
                        assert!(Instant::now() < until, "the other one waits for it");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Ok(flipped(data))
                })
            });
            wait_for(&|| is_waiting(1));
            let follower = scope.spawn(|| {
                let soon = Instant::now() + Duration::from_secs(2);
                let made = batches.run(&kind(1), &[7, 8], soon, |data| Ok(flipped(data)));
                is_over.store(1, Ordering::SeqCst);
                made
            });
            wait_for(&|| is_waiting(2) || is_over.load(Ordering::SeqCst) == 1);
            drop(holds_first);
            assert_eq!(*follower.join().expect("no panic").expect("done"), [!7, !8]);
            assert_eq!(*leader.join().expect("no panic").expect("done"), [!6]);
            drop(holds_second);
        });
        assert!(matches!(led.into_inner(), 1 | 3), "on a busy machine the follower has left before");
        assert!(batches.queues.lock().is_empty(), "everything has ended");
    }

    #[test]
    fn empty_and_long_requests_and_other_kinds_do_not_wait() {
        let batches = Batches::default();
        // Within a request of a kind, as many as may run and one more: the innermost would wait for ever if
        // it were of the same kind.
        fn nested(batches: &Batches, kinds: &[(Kind, usize)]) -> Result<Zeroizing<Vec<u8>>> {
            let Some(((kind, len), rest)) = kinds.split_first() else { return Ok(Zeroizing::default()) };
            batches.run(kind, &vec![0; *len], later(), |data| nested(batches, rest).map(|_| flipped(data)))
        }
        let mut kinds = vec![(kind(1), 16); MAX_RUNNING];
        kinds.extend([(kind(1), MAX_JOINED_BYTES + 1), (kind(1), 0), (kind(2), 16)]);
        kinds.push((Kind { encrypts: false, ..kind(1) }, 16));
        kinds.push((Kind { login: 2, ..kind(1) }, 16));
        assert_eq!(nested(&batches, &kinds).expect("done").len(), 16);
    }
}
