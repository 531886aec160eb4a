//! Which process this is.
//!
//! `fork` copies a process with all that must exist once: keys and record numbers of connections, nonces that
//! count, locks that are held by threads which the child does not have. What holds such things remembers its
//! [`Process`], and is not used in a child. What a child needs too is kept [per process](PerProcess).
//!
//! The forks are counted by a function that the C library calls in each child. So a child that was given the
//! number of an earlier process is noticed, and a look costs no system call. A child of `_Fork` or of `clone`
//! itself is not noticed. POSIX lets such a child of a program with threads do only what a signal handler may
//! do.
//!
//! This needs a call of C, so it is in this crate. `crates/pkcs11/tests/it/forks.rs` forks and tests it.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::alloc::{Layout, handle_alloc_error};

use once_cell::race::OnceBox;

/// How many forks lie between the process that loaded this code and this process.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// Whether they are counted.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// A process, told apart from its ancestors and its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u64);

impl Process {
    /// This one.
    pub fn current() -> Process {
        if !IS_COUNTING.load(Ordering::Acquire) {
            begin_counting();
        }
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this one.
    pub fn is_current(self) -> bool {
        self == Process::current()
    }
}

#[allow(unsafe_code)]
fn begin_counting() {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // Without a lock, which a child might find taken. Two threads that do this at once make each fork count
    // twice, which is as good. SAFETY: the function is as the C library declares it. `count` changes an
    // atomic number and does nothing else, so a child may run it. If this code is a library that is unloaded,
    // the C library forgets it first.
    let status = unsafe { pthread_atfork(None, None, Some(count)) };
    if status != 0 {
        // The only reason is that there is no memory.
        handle_alloc_error(Layout::new::<Process>());
    }
    IS_COUNTING.store(true, Ordering::Release);
}

/// A value that every process has for itself. It is made when it is first used. No lock is taken for that, so
/// a lock that a thread of the parent held cannot block a child.
pub struct PerProcess<T>(OnceBox<Generation<T>>);

struct Generation<T> {
    process: Process,
    value: ManuallyDrop<T>,
    /// The value of a child of this process.
    next: OnceBox<Generation<T>>,
}

impl<T> PerProcess<T> {
    /// No process has its value yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess(OnceBox::new())
    }

    /// The value of this process. `make` makes it, and is given that of the parent, if the parent had one. It
    /// must not wait for a lock of the parent's value: a thread that this process does not have may hold it,
    /// and what such a lock protects may be half changed.
    pub fn get(&self, make: impl Fn(Option<&T>) -> T) -> &T {
        let process = Process::current();
        let (mut place, mut parent) = (&self.0, None);
        loop {
            let found = place.get_or_init(|| {
                Box::new(Generation { process, value: ManuallyDrop::new(make(parent)), next: OnceBox::new() })
            });
            if found.process == process {
                return &found.value;
            }
            (place, parent) = (&found.next, Some(found.value.deref()));
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> Drop for Generation<T> {
    /// A child leaves what its parent had as it is: a thread that the child does not have may have been
    /// changing it.
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: it is dropped here only, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}
