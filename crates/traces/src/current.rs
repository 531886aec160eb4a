//! The request that this thread serves.
//!
//! A node serves a request in one thread from its beginning to its end. So its recording belongs to the
//! thread, as the place in a log does, and functions need not hand it on. If nothing is recorded, a part
//! costs one look at a variable of the thread. What other threads do for a request is within the part that
//! waits for them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::time::Duration;

use crate::recording::Recording;
use crate::span::Value;

thread_local! {
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// This thread serves the request of a recording until this is dropped.
pub struct Request(PhantomData<*const ()>);

/// A part of the request lasts until this is dropped.
pub struct Part {
    /// How many parts there were when it had begun, one within the other; 0 if nothing is recorded.
    depth: usize,
    of_this_thread: PhantomData<*const ()>,
}

/// From now on this thread serves the request of a recording.
pub fn record(recording: Option<Recording>) -> Request {
    CURRENT.with_borrow_mut(|current| *current = recording);
    Request(PhantomData)
}

/// Begins a part of the request that this thread serves.
pub fn part(name: &'static str) -> Part {
    let depth = CURRENT.with_borrow_mut(|current| current.as_mut().map_or(0, |of| of.begin_part(name)));
    Part { depth, of_this_thread: PhantomData }
}

/// Whether this thread serves a request that is recorded.
pub fn is_recorded() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Says something about the innermost part of the request that this thread serves.
pub fn note(name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(recording) = current {
            recording.note(name, value);
        }
    });
}

/// Says that the innermost part has waited for a node.
pub fn wait(node: &str, waited: Duration) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(recording) = current {
            recording.wait(node, waited);
        }
    });
}

impl Request {
    /// Notes that the request was refused or failed.
    pub fn fail(&self) {
        CURRENT.with_borrow_mut(|current| current.iter_mut().for_each(Recording::fail));
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let recording = CURRENT.with_borrow_mut(Option::take);
        drop(recording);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.depth > 0 {
            CURRENT.with_borrow_mut(|current| {
                if let Some(recording) = current {
                    recording.end_part(self.depth);
                }
            });
        }
    }
}
