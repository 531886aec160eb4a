//! Requests of several threads that are sent as one.
//!
//! A request costs the nodes about the same for one block as for a hundred. So if many threads encrypt a block each, those that come while
//! some requests are under way wait for one of them to end, and then all go together. A request that comes while fewer are under way goes
//! at once and alone: a program with one thread sees no difference, and nobody waits for others to come.
//!
//! # When that is safe
//!
//! Only what is the same for the nodes goes together: blocks that each stand by themselves (ECB), under the same version of a key, in the
//! same direction, for the same login. The nodes compute every block of a request independently of the others, see none of them, and judge
//! a request by the client, the key, the mode and the number of blocks, which is charged as it would be alone. The answer is cut at the
//! places where the data were joined, which do not depend on the data.
//!
//! What carries a nonce, a counter, a chain or a tag never goes together: a request has one of these.
//!
//! If the nodes refuse a joined request, or it fails, each of its requests is sent alone and has an outcome of its own. So one that asks
//! for more than is left of a budget fails no other. The same happens if the thread that sends it panics. Encrypting a block twice in ECB
//! reveals nothing, because it gives the same; but the nodes charge it twice.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use zeroize::Zeroizing;

use crate::rv::Result;

/// How many requests of a kind are under way at most: so many that the nodes are busy while the answer of another one is on its way.
const MOST_RUNNING: usize = 2;
/// The most bytes of a request that goes with others. Longer ones gain nothing.
const MOST_OF_ONE: usize = 4 << 10;
/// The most bytes that go together: one step of the nodes.
const MOST_TOGETHER: usize = 64 << 10;

/// What requests that go together have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    /// The address of the client of a login. Each request holds its client while it waits, so no two logins have the same.
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
    told: Mutex<Option<Told>>,
    is_told: Condvar,
}

enum Told {
    /// To send its own request together with these.
    Lead(Vec<Waiting>),
    Done(Zeroizing<Vec<u8>>),
    /// To send it alone, since the others failed or never came to it.
    Alone,
}

impl Seat {
    fn tell(&self, told: Told) {
        *self.told.lock() = Some(told);
        self.is_told.notify_one();
    }

    fn wait(&self) -> Told {
        let mut told = self.told.lock();
        loop {
            match told.take() {
                Some(told) => return told,
                None => self.is_told.wait(&mut told),
            }
        }
    }
}

impl Batches {
    /// What `work` makes of the data, perhaps together with data of other threads: as many bytes as it is given, each block by itself.
    pub(crate) fn run(
        &self,
        kind: &Kind,
        data: &[u8],
        work: impl Fn(&[u8]) -> Result<Zeroizing<Vec<u8>>>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if data.len() > MOST_OF_ONE {
            return work(data);
        }
        let others = match self.begin(kind, data) {
            Told::Lead(others) => Others(others),
            Told::Done(made) => return Ok(made),
            Told::Alone => return work(data),
        };
        let _turn = Turn { batches: self, kind };
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
                work(data)
            }
        }
    }

    /// Goes at once if few are under way, or waits.
    fn begin(&self, kind: &Kind, data: &[u8]) -> Told {
        let seat = {
            let mut queues = self.queues.lock();
            let queue = queues.entry(kind.clone()).or_default();
            if queue.running < MOST_RUNNING {
                queue.running += 1;
                return Told::Lead(Vec::new());
            }
            let seat = Arc::new(Seat::default());
            queue.waiting.push_back(Waiting { data: Zeroizing::new(data.to_vec()), seat: seat.clone() });
            seat
        };
        seat.wait()
    }

    /// A request of a kind has ended: the next ones go.
    fn end(&self, kind: &Kind) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(kind) else { return };
        if let Some(first) = queue.waiting.pop_front() {
            let (mut others, mut total) = (Vec::new(), first.data.len());
            while let Some(len) = queue.waiting.front().map(|next| next.data.len())
                && total + len <= MOST_TOGETHER
            {
                total += len;
                others.extend(queue.waiting.pop_front());
            }
            first.seat.tell(Told::Lead(others));
            return;
        }
        queue.running -= 1;
        if queue.running == 0 {
            queues.remove(kind);
        }
    }
}

/// The right to have a request under way. It goes on to those who wait, whatever happens.
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
            other.seat.tell(Told::Done(Zeroizing::new(own.to_vec())));
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|other| other.seat.tell(Told::Alone));
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

    fn flipped(data: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(data.iter().map(|byte| !byte).collect())
    }

    /// As many requests as may run are held back until `count` others wait. The first of those that wait then leads them.
    fn together(
        count: u8,
        work: impl Fn(&[u8]) -> Result<Zeroizing<Vec<u8>>> + Sync,
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
            for running in 1..=MOST_RUNNING {
                scope.spawn(|| batches.run(&kind(1), &[0], hold));
                wait_for(running, 0);
            }
            let mut threads = Vec::new();
            for number in 0..count {
                let (batches, work) = (&batches, &work);
                threads.push(
                    scope.spawn(move || batches.run(&kind(1), &vec![number; 1 + number as usize], work)),
                );
                wait_for(MOST_RUNNING, threads.len());
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
        let outcomes = together(9, |data| {
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
        let outcomes = together(6, |data| if data.contains(&3) { Err(refused) } else { Ok(flipped(data)) });
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
        let outcomes = together(3, |data| match data.len() {
            1..=3 => Ok(flipped(data)),
            _ => Ok(Zeroizing::new(vec![0; 2])),
        });
        for (number, outcome) in (0..).zip(outcomes) {
            assert_eq!(*outcome.expect("no panic").expect("done"), vec![!number; 1 + number as usize]);
        }
    }

    #[test]
    fn a_panic_of_the_thread_that_sends_leaves_nobody_waiting() {
        let outcomes = together(5, |data| {
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
    fn long_requests_and_other_kinds_do_not_wait() {
        let batches = Batches::default();
        // Within a request of a kind, as many as may run and one more: the innermost would wait for ever if it were of the same kind.
        fn nested(batches: &Batches, kinds: &[(Kind, usize)]) -> Result<Zeroizing<Vec<u8>>> {
            let Some(((kind, len), rest)) = kinds.split_first() else { return Ok(Zeroizing::default()) };
            batches.run(kind, &vec![0; *len], |data| nested(batches, rest).map(|_| flipped(data)))
        }
        let mut kinds = vec![(kind(1), 16); MOST_RUNNING];
        kinds.extend([(kind(1), MOST_OF_ONE + 1), (kind(2), 16)]);
        kinds.push((Kind { encrypts: false, ..kind(1) }, 16));
        kinds.push((Kind { login: 2, ..kind(1) }, 16));
        assert_eq!(nested(&batches, &kinds).expect("done").len(), 16);
    }
}
