//! Threads of a node, counted, so that a stop can wait for the last of them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, Release},
};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use polyclave_protocol::Error;
use polyclave_protocol::service::ServiceScheme;

use crate::Result;
use crate::core::Core;

/// How often threads look whether the node is to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// The same for the many that wait for somebody else to begin.
pub(crate) const IDLE_LOOK: Duration = Duration::from_millis(500);

/// Starts a thread of a node.
pub(crate) fn spawn<S: ServiceScheme>(
    name: &str,
    core: &Arc<Core<S>>,
    work: impl FnOnce(&Arc<Core<S>>) + Send + 'static,
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
