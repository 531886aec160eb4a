//! Threads for long requests: their bodies are read, decoded, answered and wiped there, with less priority
//! than short requests have on theirs. So a caller that sends much takes the time that others leave.
//!
//! A long request takes a tenth of a second of a processor, in steps that nothing interrupts. Without these
//! threads it would hold up the threads that answer everybody.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::traced::carried;

/// How much less priority: a tenth of the time of a thread without it, if both want all (Linux).
const NICE: i32 = 10;

/// See the [module](self). It ends with the [`Runtime`].
#[derive(Clone)]
pub(crate) struct Bulk {
    handle: Handle,
    requests: Arc<AtomicU64>,
}

impl Bulk {
    /// Starts the threads: half as many as the machine has processors.
    pub(crate) fn start() -> io::Result<(Runtime, Bulk)> {
        let processors = std::thread::available_parallelism()?.get();
        let runtime = Builder::new_multi_thread()
            .worker_threads(processors.div_ceil(2))
            .enable_time()
            .thread_name("gateway long")
            .on_thread_start(|| {
                // Where a system does not have it, these threads are as others.
                let _ = rustix::process::nice(NICE);
            })
            .build()?;
        let bulk = Bulk { handle: runtime.handle().clone(), requests: Arc::default() };
        Ok((runtime, bulk))
    }

    /// Does the work of a request there. It ends if nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.requests.fetch_add(1, Relaxed);
        let mut task = EndsWithCaller(self.handle.spawn(carried(work)));
        let broken =
            |_| Failure::Internal("the request ended with an error of this program; see its log".into());
        (&mut task.0).await.map_err(broken)?
    }

    /// How many requests there were so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }
}

struct EndsWithCaller<T>(JoinHandle<T>);

impl<T> Drop for EndsWithCaller<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_has_threads_of_its_own_with_less_priority_and_ends_with_its_caller() {
        let (threads, bulk) = Bulk::start().expect("threads");
        let here = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let of_thread = || rustix::process::nice(0).expect("it is told");
        let lower = (of_thread() + NICE).min(19);
        let worked = here.block_on(bulk.run(async move {
            let name = std::thread::current().name().map(str::to_owned);
            Ok((name, of_thread()))
        }));
        assert_eq!(worked, Ok((Some("gateway long".into()), lower)));
        assert!(matches!(
            here.block_on(bulk.run(async { panic!("it breaks") })),
            Err::<(), _>(Failure::Internal(_))
        ));
        let (held, gone) = std::sync::mpsc::channel::<()>();
        let endless = bulk.run(async move {
            let _held = held;
            std::future::pending::<Result<(), Failure>>().await
        });
        here.block_on(async { tokio::time::timeout(Duration::from_millis(1), endless).await })
            .expect_err("nobody waits any more");
        assert!(gone.recv().is_err(), "what it held is dropped");
        assert_eq!(bulk.requests(), 3);
        threads.shutdown_background();
    }
}
