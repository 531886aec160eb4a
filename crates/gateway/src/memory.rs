//! Memory for requests that are longer than a little. It is taken as their bytes arrive, not as they are
//! announced.
//!
//! A caller may hold at most twice the memory that is left. So a single caller holds at most two thirds, and
//! if several hold as much as they may, some memory is left for another one.
//!
//! Requests that each hold a part and wait for more could wait for each other for ever. So one request waits
//! at a time. Another request that would have to wait is refused, and gives back what it has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request waits for memory.
const WITHIN: Duration = Duration::from_secs(10);

/// The parts of what one may hold, in which its requests take turns.
pub(crate) const TURNS: usize = 1024;

/// See the [module](self).
pub(crate) struct Memory {
    most: usize,
    state: Mutex<State>,
    given_back: Notify,
}

#[derive(Default)]
struct State {
    taken: usize,
    by: HashMap<Arc<str>, usize>,
    someone_waits: bool,
}

/// What a request holds. It is given back when this is dropped.
pub(crate) struct Held {
    memory: Arc<Memory>,
    by: Arc<str>,
    bytes: usize,
    /// Its part of what one may hold: requests of the same one wait for it in order.
    turn: Option<OwnedSemaphorePermit>,
}

/// There is not enough.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scarce;

impl Memory {
    pub(crate) fn new(most: usize) -> Arc<Memory> {
        Arc::new(Memory { most, state: Mutex::default(), given_back: Notify::new() })
    }

    /// The most that one may hold.
    fn most_of_one(&self) -> usize {
        self.most / 3 * 2
    }

    /// What a request of somebody holds: nothing yet.
    pub(crate) fn for_one(self: &Arc<Memory>, by: &Arc<str>) -> Held {
        Held { memory: self.clone(), by: by.clone(), bytes: 0, turn: None }
    }

    /// How many bytes are taken.
    pub(crate) fn taken(&self) -> usize {
        self.state.lock().taken
    }
}

impl Held {
    /// Waits until earlier requests of the same caller leave `bytes` bytes of the share that one caller may
    /// hold. It takes no memory.
    pub(crate) async fn take_turn(&mut self, turns: &Arc<Semaphore>, bytes: usize) {
        if self.turn.is_none() {
            let share = (bytes * TURNS).div_ceil(self.memory.most_of_one()).min(TURNS);
            // It is never closed.
            self.turn = turns.clone().acquire_many_owned(share as u32).await.ok();
        }
    }

    /// Takes `bytes` bytes in all. If there is not enough, it waits, if nobody else does.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), Scarce> {
        if self.try_grow_to(bytes) {
            return Ok(());
        }
        let memory = self.memory.clone();
        let _waiting = Waiting::begin(&memory).ok_or(Scarce)?;
        let grown = async {
            loop {
                let given_back = memory.given_back.notified();
                if self.try_grow_to(bytes) {
                    return;
                }
                given_back.await;
            }
        };
        timeout(WITHIN, grown).await.map_err(|_| Scarce)
    }

    fn try_grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let mut state = self.memory.state.lock();
        let own = state.by.get(&self.by).copied().unwrap_or_default() + more;
        let left = self.memory.most.saturating_sub(state.taken + more);
        if own > left * 2 {
            return false;
        }
        state.taken += more;
        state.by.insert(self.by.clone(), own);
        self.bytes = bytes;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut state = self.memory.state.lock();
        state.taken -= self.bytes;
        let own = state.by.get(&self.by).map_or(0, |own| own - self.bytes);
        match own {
            0 => state.by.remove(&self.by),
            _ => state.by.insert(self.by.clone(), own),
        };
        drop(state);
        self.memory.given_back.notify_one();
    }
}

/// The request that waits. Another one may when this is dropped.
struct Waiting<'m>(&'m Memory);

impl<'m> Waiting<'m> {
    fn begin(memory: &'m Memory) -> Option<Waiting<'m>> {
        let waits = std::mem::replace(&mut memory.state.lock().someone_waits, true);
        (!waits).then_some(Waiting(memory))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().someone_waits = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_two_thirds_at_most_and_another_one_finds_something() {
        let memory = Memory::new(900);
        let greedy: Arc<str> = "greedy".into();
        let mut all: Vec<Held> = Vec::new();
        for _ in 0..20 {
            let mut held = memory.for_one(&greedy);
            if !held.try_grow_to(100) {
                break;
            }
            all.push(held);
        }
        assert_eq!((all.len(), memory.taken()), (6, 600));
        for (name, bytes) in [("b", 200), ("c", 66), ("d", 22)] {
            let mut held = memory.for_one(&name.into());
            assert!(held.try_grow_to(bytes) && !held.try_grow_to(bytes + 2), "{name}");
            all.push(held);
        }
        drop(all);
        assert_eq!(memory.taken(), 0);
        assert!(memory.for_one(&greedy).try_grow_to(memory.most_of_one()));
    }

    #[tokio::test]
    async fn requests_of_one_wait_for_each_other_if_they_would_not_fit_together() {
        let (memory, turns) = (Memory::new(900), Arc::new(Semaphore::new(TURNS)));
        let mut all: Vec<Held> = (0..3).map(|_| memory.for_one(&"a".into())).collect();
        let mut third = all.pop().expect("three");
        for held in &mut all {
            held.take_turn(&turns, 300).await;
        }
        let waiting = tokio::spawn(async move {
            third.take_turn(&turns, 300).await;
            third.grow_to(300).await
        });
        assert!(all.iter_mut().all(|held| held.try_grow_to(300)));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished() && !memory.state.lock().someone_waits, "it is not refused either");
        all.pop();
        assert_eq!(waiting.await.expect("it ends"), Ok(()));
    }

    #[tokio::test]
    async fn one_waits_and_another_one_that_would_have_to_is_refused() {
        let memory = Memory::new(900);
        let (mut a, mut b) = (memory.for_one(&"a".into()), memory.for_one(&"b".into()));
        assert!(a.try_grow_to(300) && b.try_grow_to(300));
        let first = tokio::spawn(async move { a.grow_to(500).await });
        while !memory.state.lock().someone_waits {
            tokio::task::yield_now().await;
        }
        assert_eq!(b.grow_to(500).await, Err(Scarce));
        drop(b);
        assert_eq!(first.await.expect("it ends"), Ok(()));
        assert_eq!((memory.taken(), memory.state.lock().someone_waits), (0, false));
    }
}
