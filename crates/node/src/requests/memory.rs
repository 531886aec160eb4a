//! The memory in which requests are computed. Each running request has a part of it; other requests wait for
//! a part in order of arrival.
//!
//! A use of a key is computed in pieces ([`crate::computation::pieces`]), so that it fits into its part with
//! every cipher and length. The size of a part is the same at all nodes: they compare the setting in the
//! hello round, because they must cut a request into the same pieces.
//!
//! The leading node takes its part before it announces a request. Its followers take theirs when they hear of
//! the request, in the leader's order. So among nodes that always serve together only the leader waits. Where
//! several nodes lead, two requests may each wait for a part that the other one has. A follower therefore
//! waits only a short time, then refuses the request as busy. Its parts are then free again at all nodes, and
//! the client asks again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_api::{Reason, Refusal};
use polyclave_config::NodeLimits;

/// The memory of a node, in parts of equal size.
pub(crate) struct Memory {
    part_mib: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    /// The numbers of the waiting requests, in order.
    waiting: VecDeque<u64>,
    next: u64,
}

/// One request's part; free again when dropped.
pub(crate) struct Part<'m>(&'m Memory);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.changed.notify_all();
    }
}

impl Memory {
    pub(crate) fn new(limits: &NodeLimits) -> Memory {
        let part_mib = limits.memory_per_request_mib;
        let state = State { free: Memory::parts(limits), waiting: VecDeque::new(), next: 0 };
        Memory { part_mib, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The number of requests that can be computed at the same time.
    pub(crate) fn parts(limits: &NodeLimits) -> usize {
        limits.memory_mib / limits.memory_per_request_mib.max(1)
    }

    /// The size of a part in bytes.
    pub(crate) fn part_bytes(&self) -> usize {
        self.part_mib << 20
    }

    /// Waits for this request's turn and takes a part. A refusal if no part is free before the deadline.
    pub(crate) fn take(&self, until: Instant) -> Result<Part<'_>, Refusal> {
        let mut state = self.lock();
        let me = state.next;
        state.next += 1;
        state.waiting.push_back(me);
        loop {
            if state.free > 0 && state.waiting.front() == Some(&me) {
                state.free -= 1;
                state.waiting.pop_front();
                // There may be a part for the next request, too.
                self.changed.notify_all();
                return Ok(Part(self));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.waiting.retain(|waiting| *waiting != me);
                self.changed.notify_all();
                let message = "all memory of this node for requests is in use ([limits] memory_mib in node.toml); try again later";
                return Err(Refusal::new(Reason::Busy, message));
            }
            let wait = left.min(Duration::from_secs(60));
            self.changed.wait_for(&mut state, wait);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    fn memory(parts: usize) -> Memory {
        Memory::new(&NodeLimits {
            memory_per_request_mib: 16,
            memory_mib: 16 * parts + 15,
            ..NodeLimits::default()
        })
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[test]
    fn no_more_requests_than_the_memory_has_parts_are_admitted_at_a_time() {
        let memory = memory(2);
        assert_eq!(memory.part_bytes(), 16 << 20);
        let (first, second) = (memory.take(soon()), memory.take(soon()));
        assert!(first.is_ok() && second.is_ok());
        let refused = memory.take(soon()).err().expect("there are two parts");
        assert_eq!(refused.reason, Reason::Busy);
        drop(first);
        assert!(memory.take(soon()).is_ok());
    }

    /// A request that gave up must not hold up those behind it.
    #[test]
    fn who_waits_is_served_in_turn_and_who_gives_up_is_passed_over() {
        let memory = memory(1);
        let held = memory.take(soon()).expect("it is free");
        let (served, order) = channel();
        thread::scope(|scope| {
            for (i, patience) in [(0, 60_000), (1, 1), (2, 60_000)] {
                let (memory, served) = (&memory, served.clone());
                let waiting = memory.lock().waiting.len();
                scope.spawn(move || {
                    let part = memory.take(Instant::now() + Duration::from_millis(patience));
                    served.send((i, part.is_ok())).expect("it is received");
                });
                let until = Instant::now() + Duration::from_secs(30);
                while memory.lock().next < i + 2 && Instant::now() < until {
                    thread::yield_now();
                }
                assert!(memory.lock().waiting.len() >= waiting.min(1), "it waits, or has given up");
            }
            assert_eq!(order.recv_timeout(Duration::from_secs(30)), Ok((1, false)));
            drop(held);
            let rest: Vec<_> = (0..2).map(|_| order.recv_timeout(Duration::from_secs(30))).collect();
            assert_eq!(rest, [Ok((0, true)), Ok((2, true))]);
        });
    }
}
