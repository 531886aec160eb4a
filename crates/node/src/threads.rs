//! The threads of a node. They are counted, so that a stop can wait for the last of them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use polyclave_protocol::Error;
#[cfg(target_os = "linux")]
use rustix::process::{getpriority_process, setpriority_process};

use crate::Result;

/// How often a thread checks whether the node is to stop.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The same for threads that wait for somebody else to begin. There are many of them.
pub(crate) const IDLE_LOOK: Duration = Duration::from_millis(500);

/// What is added to the nice value of a thread that [gives way](give_way). On a busy processor it then gets a
/// third of the time that a thread of a request gets.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// Does this work in a thread of lower priority, and waits for it. The threads that it starts have this
/// priority, too.
pub(crate) fn give_way<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let of_lower_priority = || {
        // On Linux this is about the calling thread alone. Where it is refused, requests wait longer.
        #[cfg(target_os = "linux")]
        let _ = getpriority_process(None).and_then(|own| setpriority_process(None, own + NICER));
        work()
    };
    let ended = || Err(Error::System("a thread that made material has ended".into()));
    thread::scope(|scope| scope.spawn(of_lower_priority).join()).unwrap_or_else(|_| ended())
}

/// The threads of a node.
#[derive(Default)]
pub(crate) struct Threads {
    stopping: AtomicBool,
    running: Arc<AtomicUsize>,
    /// Those of the whole node, if these are only those of a standby pair.
    of_all: Option<Arc<Threads>>,
}

impl Threads {
    /// Threads that are to end when all of the node are, or before. They count among those of the node.
    pub(crate) fn of_part(of_all: &Arc<Threads>) -> Arc<Threads> {
        Arc::new(Threads { of_all: Some(of_all.clone()), ..Threads::default() })
    }

    /// Starts a thread.
    pub(crate) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
        let of_all = self.of_all.as_ref().map(|all| Counted::new(all.running.clone()));
        let counted = (Counted::new(self.running.clone()), of_all);
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            // Drop what the thread holds of the node before the thread stops being counted.
            let _counted = counted;
            work();
        });
        thread.map_err(|e| Error::System(format!("cannot start a thread: {e}")))
    }

    /// Asks all threads to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Whether the threads are to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed) || self.of_all.as_ref().is_some_and(|all| all.is_stopping())
    }

    /// Waits until the last thread has ended. Returns whether it has.
    pub(crate) fn wait(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while self.running.load(Acquire) > 0 && Instant::now() < until {
            thread::sleep(POLL_INTERVAL / 20);
        }
        self.running.load(Acquire) == 0
    }
}

/// Threads of one kind that work for one peer. Their number is limited, for any number of orders from the
/// peer.
pub(crate) struct Crew {
    name: &'static str,
    most: usize,
    running: Arc<AtomicUsize>,
}

impl Crew {
    pub(crate) fn new(name: &'static str, most: usize) -> Crew {
        Crew { name, most, running: Arc::default() }
    }

    /// Whether another thread may start.
    pub(crate) fn has_place(&self) -> bool {
        self.running.load(Relaxed) < self.most
    }

    /// Starts a thread; an error if the limit is reached. Only one thread may call this at a time.
    pub(crate) fn spawn(&self, threads: &Threads, work: impl FnOnce() + Send + 'static) -> Result<()> {
        if !self.has_place() {
            let (name, most) = (self.name, self.most);
            return Err(Error::System(format!(
                "{most} threads are at work already on orders of the kind '{name}'"
            )));
        }
        let place = Counted::new(self.running.clone());
        let work = move || {
            let _place = place;
            work();
        };
        threads.spawn(self.name, work).map(drop)
    }
}

/// One thread that does one thing after another. What takes much memory uses that of the time before again; a
/// thread for each would leave some behind in the allocator.
pub(crate) struct Worker<T>(SyncSender<T>);

impl<T: Send + 'static> Worker<T> {
    /// Starts the thread. It ends with this value, or with the node.
    pub(crate) fn start(
        threads: &Arc<Threads>,
        name: &str,
        work: impl Fn(T) + Send + 'static,
    ) -> Result<Worker<T>> {
        let (sender, waiting) = sync_channel(1);
        let for_thread = threads.clone();
        threads.spawn(name, move || {
            while !for_thread.is_stopping() {
                match waiting.recv_timeout(IDLE_LOOK) {
                    Ok(next) => work(next),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Worker(sender))
    }

    /// Something to do after what is done now; an error if something waits already.
    pub(crate) fn give(&self, next: T) -> Result<()> {
        self.0
            .try_send(next)
            .map_err(|_| Error::System("another order of the same kind waits already".into()))
    }
}

/// Counts a thread as long as this value exists.
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

    #[cfg(target_os = "linux")]
    #[test]
    fn only_work_that_gives_way_has_a_lower_priority() {
        let nice = || getpriority_process(None).map_err(|e| Error::System(e.to_string()));
        let own = nice().expect("known");
        let of_thread_of_work = || thread::scope(|scope| scope.spawn(nice).join()).expect("no panic");
        let expected = (own + NICER).min(19);
        assert_eq!(give_way(nice), Ok(expected));
        assert_eq!(give_way(of_thread_of_work), Ok(expected), "threads that it starts, too");
        assert_eq!(nice(), Ok(own));
        let ended: Result<()> = give_way(|| panic!("in the work"));
        assert!(ended.is_err(), "it does not end the thread that waits");
    }

    #[test]
    fn a_worker_does_one_thing_after_another_and_has_one_waiting_at_most() {
        let threads = Arc::<Threads>::default();
        let (done, outcomes) = sync_channel(0);
        let worker = Worker::start(&threads, "worker", move |number: u32| done.send(number).expect("heard"));
        let worker = worker.expect("started");
        worker.give(1).expect("nothing waits");
        // It has taken the first one as soon as there is a place for the second.
        while worker.give(2).is_err() {
            thread::yield_now();
        }
        assert!(worker.give(3).is_err());
        assert_eq!([outcomes.recv(), outcomes.recv()], [Ok(1), Ok(2)]);
        drop(worker);
        assert!(threads.wait(Duration::from_secs(30)), "it ends");
    }

    #[test]
    fn a_part_stops_with_the_node_and_the_node_goes_on_when_a_part_stops() {
        let all = Arc::<Threads>::default();
        let (part, other) = (Threads::of_part(&all), Threads::of_part(&all));
        part.stop();
        assert!(part.is_stopping() && !all.is_stopping() && !other.is_stopping());
        all.stop();
        assert!(other.is_stopping());
    }

    /// They hold its store.
    #[test]
    fn a_node_that_stops_waits_for_the_threads_of_its_parts() {
        let all = Arc::<Threads>::default();
        let part = Threads::of_part(&all);
        let (end, ended) = sync_channel::<()>(0);
        part.spawn("of a part", move || _ = ended.recv()).expect("started");
        drop(part);
        assert!(!all.wait(Duration::ZERO));
        drop(end);
        assert!(all.wait(Duration::from_secs(30)));
    }

    #[test]
    fn a_crew_has_so_many_places_and_they_come_back() {
        let crew = Crew::new("channel", 2);
        let places = [(); 2].map(|()| Counted::new(crew.running.clone()));
        assert!(!crew.has_place());
        drop(places);
        assert!(crew.has_place());
    }
}
