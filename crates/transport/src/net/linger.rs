//! What a network still owes when it is dropped after a gathering: messages that a slow peer has not taken
//! yet, and messages of that peer that nobody waited for.
//!
//! If a connection is closed while the peer still sends, TCP resets it, and the peer loses what it has not
//! received by then. So this end stops sending, reads what arrives, and closes when the peer does.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_kernels::process::PerProcess;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::TlsNet;
use crate::halt::LOOK;
use crate::link::Link;

/// How many time limits a gathering waits at most.
const LONGEST: u32 = 8;
/// How many networks of this process linger at once, each with a thread. Any more are dropped without
/// lingering.
const MAX_LINGERING: usize = 256;
/// How many bytes are read at once, to be discarded.
const PIECE: usize = 16 << 10;

static LINGERING: PerProcess<AtomicUsize> = PerProcess::new();

fn lingering() -> &'static AtomicUsize {
    LINGERING.get(|_| AtomicUsize::new(0))
}

/// Ends the threads in which the networks of one owner linger. Without it they end when their peers close, or
/// with the process.
#[derive(Default)]
pub struct Farewells {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Until when they may linger, once the owner has ended.
    until: Option<Instant>,
    threads: Vec<JoinHandle<()>>,
}

impl Farewells {
    /// Waits until all threads have ended, which get this long to send what is owed. From now on the owner's
    /// networks do not linger.
    pub fn end(&self, within: Duration) {
        let threads = {
            let mut state = self.state.lock();
            state.until.get_or_insert_with(|| Instant::now() + within);
            std::mem::take(&mut state.threads)
        };
        for thread in threads {
            // One that panicked has ended, too.
            let _ = thread.join();
        }
    }

    fn until(&self) -> Option<Instant> {
        self.state.lock().until
    }

    /// Starts a thread, unless the owner has ended. Returns whether it runs.
    fn start(&self, part: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.state.lock();
        if state.until.is_some() {
            return false;
        }
        state.threads.retain(|thread| !thread.is_finished());
        let started = thread::Builder::new().spawn(part);
        started.map(|thread| state.threads.push(thread)).is_ok()
    }
}

impl TlsNet {
    /// The same network, which lingers no longer than its owner lives.
    pub fn owned_by(mut self, owner: Arc<Farewells>) -> TlsNet {
        self.farewells = Some(owner);
        self
    }
}

impl Drop for TlsNet {
    /// Never waits, and does nothing for connections that another process made. Others may count on messages
    /// that a slow peer has not taken yet. A separate thread sends these until the time limit of the parties
    /// that wait for them, if the process lives.
    fn drop(&mut self) {
        if self.failed.is_some() {
            return;
        }
        let owes_or_is_owed = |link: &Link| link.is_own() && (link.has_unsent() || link.is_late());
        let links = std::mem::take(&mut self.links).into_iter().flatten().filter(owes_or_is_owed);
        let leaving: Vec<Leaving> = links.map(|link| Leaving { link, has_sent: false }).collect();
        if leaving.is_empty() {
            return;
        }
        if lingering().fetch_add(1, Ordering::Relaxed) < MAX_LINGERING {
            let (within, max_frame) = (self.limits.idle.saturating_mul(LONGEST), self.limits.max_frame);
            let farewells = self.farewells.take();
            let owner = farewells.clone();
            let part = move || {
                part_from(leaving, within, max_frame, owner.as_deref());
                lingering().fetch_sub(1, Ordering::Relaxed);
            };
            let is_started = match farewells {
                Some(farewells) => farewells.start(part),
                None => thread::Builder::new().spawn(part).is_ok(),
            };
            if is_started {
                return;
            }
        }
        // Without a thread the messages are lost, as they were with this process.
        lingering().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A link that is being ended.
struct Leaving {
    link: Link,
    /// Whether everything has been sent, the closing alert too.
    has_sent: bool,
}

/// Sends what is left and reads what arrives, until the peers have closed or the time is over.
fn part_from(mut leaving: Vec<Leaving>, within: Duration, max_frame: usize, owner: Option<&Farewells>) {
    let until = Instant::now() + within;
    loop {
        leaving.retain_mut(|one| one.goes_on(max_frame));
        let until = owner.and_then(Farewells::until).map_or(until, |end| end.min(until));
        let left = until.saturating_duration_since(Instant::now());
        if leaving.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> =
            leaving.iter().map(|one| PollFd::new(one.link.tcp(), one.interest())).collect();
        let left = if owner.is_some() { left.min(LOOK) } else { left };
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

impl Leaving {
    /// Does what can be done without waiting; false when there is no more to do.
    fn goes_on(&mut self, max_frame: usize) -> bool {
        if !self.has_sent {
            if self.link.settle(&[], max_frame).is_err() {
                return false;
            }
            if self.link.has_unsent() {
                return true;
            }
            self.link.say_goodbye();
            let _ = self.link.tcp().shutdown(Shutdown::Write);
            self.has_sent = true;
        }
        let mut piece = [0; PIECE];
        loop {
            match self.link.tcp().read(&mut piece) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    fn interest(&self) -> PollFlags {
        if self.has_sent { PollFlags::IN } else { self.link.interest(None) }
    }
}
