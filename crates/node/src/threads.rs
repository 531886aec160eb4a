//! Threads of a node, counted, so that a stop can wait for the last of them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, Release},
};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use polyclave_protocol::Error;

use crate::Result;
use crate::core::Core;

/// How often threads look whether the node is to stop.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The same for the many that wait for somebody else to begin.
pub(crate) const IDLE_LOOK: Duration = Duration::from_millis(500);

/// Starts a thread of a node.
pub(crate) fn spawn(
    name: &str,
    core: &Arc<Core>,
    work: impl FnOnce(&Arc<Core>) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let (core, counted) = (core.clone(), Counted::new(core.threads.clone()));
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        // Dropped in the opposite order: who is not counted any more holds nothing of the node.
        let _counted = counted;
        let core = core;
        work(&core);
    });
    thread.map_err(|e| Error::System(format!("cannot start a thread: {e}")))
}

/// Threads of one kind, for one peer: so many at once at most, however many it orders.
pub(crate) struct Crew {
    name: &'static str,
    most: usize,
    running: Arc<AtomicUsize>,
}

impl Crew {
    pub(crate) fn new(name: &'static str, most: usize) -> Crew {
        Crew { name, most, running: Arc::default() }
    }

    /// Whether one more may begin.
    pub(crate) fn has_place(&self) -> bool {
        self.running.load(Relaxed) < self.most
    }

    /// Starts one; an error if there are as many as may be. From one thread at a time.
    pub(crate) fn spawn(
        &self,
        core: &Arc<Core>,
        work: impl FnOnce(&Arc<Core>) + Send + 'static,
    ) -> Result<()> {
        if !self.has_place() {
            let (name, most) = (self.name, self.most);
            return Err(Error::System(format!(
                "{most} threads are at work already on orders of the kind '{name}'"
            )));
        }
        let place = Counted::new(self.running.clone());
        spawn(self.name, core, move |core| {
            let _place = place;
            work(core);
        })
        .map(drop)
    }
}

/// A thread that is counted as long as this is there.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(threads: Arc<AtomicUsize>) -> Counted {
        threads.fetch_add(1, Relaxed);
        Counted(threads)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crew_has_so_many_places_and_they_come_back() {
        let crew = Crew::new("channel", 2);
        let places = [(); 2].map(|()| Counted::new(crew.running.clone()));
        assert!(!crew.has_place());
        drop(places);
        assert!(crew.has_place());
    }
}
