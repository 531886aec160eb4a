//! The connections of a listener, within limits. If there are too many, the one that was idle for longest is closed; if all have a request under way, the
//! new one is.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

/// The open connections.
pub(crate) struct Connections {
    most: usize,
    began: Instant,
    next: AtomicU64,
    open: Mutex<HashMap<u64, (Arc<Activity>, AbortHandle)>>,
}

/// What a connection does.
pub(crate) struct Activity {
    requests: AtomicUsize,
    /// Milliseconds since the listener began.
    last: AtomicU64,
}

/// A request that is under way on a connection.
pub(crate) struct UnderWay<'c> {
    activity: &'c Activity,
    began: Instant,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Connections> {
        let (began, next, open) = (Instant::now(), AtomicU64::new(0), Mutex::default());
        Arc::new(Connections { most, began, next, open })
    }

    /// Takes a connection, which `serve` serves, if there is room.
    pub(crate) fn take<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Connections>,
        serve: impl FnOnce(Arc<Activity>) -> F,
    ) {
        let mut open = self.open.lock();
        if open.len() >= self.most {
            let idle = open.iter().filter(|(_, (activity, _))| activity.requests.load(Relaxed) == 0);
            let Some(oldest) = idle.min_by_key(|(_, (activity, _))| activity.last.load(Relaxed)) else {
                return;
            };
            let oldest = *oldest.0;
            if let Some((_, connection)) = open.remove(&oldest) {
                connection.abort();
            }
        }
        let number = self.next.fetch_add(1, Relaxed);
        let activity = Arc::new(Activity { requests: AtomicUsize::new(0), last: AtomicU64::new(self.now()) });
        let (serving, all) = (serve(activity.clone()), self.clone());
        let task = tokio::spawn(async move {
            serving.await;
            all.open.lock().remove(&number);
        });
        // The task cannot end before, since the lock is held.
        open.insert(number, (activity, task.abort_handle()));
    }

    /// Notes that a request has begun. It ends when the answer is dropped.
    pub(crate) fn begin<'c>(&self, activity: &'c Activity) -> UnderWay<'c> {
        activity.requests.fetch_add(1, Relaxed);
        UnderWay { activity, began: self.began }
    }

    /// Closes all.
    pub(crate) fn close(&self) {
        self.open.lock().drain().for_each(|(_, (_, connection))| connection.abort());
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.activity.last.store(self.began.elapsed().as_millis() as u64, Relaxed);
        self.activity.requests.fetch_sub(1, Relaxed);
    }
}
