//! What a network still owes when it is dropped after a gathering: messages that a slow peer has not taken yet, and messages of that peer
//! that nobody waited for.
//!
//! If a connection is closed while the peer still sends, TCP resets it, and the peer loses what it has not received by then. So this
//! end stops sending, reads what arrives, and closes when the peer does.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::TlsNet;
use crate::link::Link;

/// How many time limits a gathering waits at most.
const LONGEST: u32 = 8;
/// How many networks of this process linger at once, each with a thread. Any more are dropped without lingering.
const MOST_LINGERING: usize = 256;
/// How many bytes are read at once, to be discarded.
const PIECE: usize = 16 << 10;

static LINGERING: AtomicUsize = AtomicUsize::new(0);

impl Drop for TlsNet {
    /// Never waits. Others may count on messages that a slow peer has not taken yet. A separate thread sends these, for as long as those
    /// who wait for them may wait, if the process lives.
    fn drop(&mut self) {
        if self.failed.is_some() {
            return;
        }
        let owes_or_is_owed = |link: &Link| link.has_unsent() || link.is_late();
        let links = std::mem::take(&mut self.links).into_iter().flatten().filter(owes_or_is_owed);
        let leaving: Vec<Leaving> = links.map(|link| Leaving { link, has_sent: false }).collect();
        if leaving.is_empty() {
            return;
        }
        if LINGERING.fetch_add(1, Ordering::Relaxed) < MOST_LINGERING {
            let (within, max_frame) = (self.limits.idle.saturating_mul(LONGEST), self.limits.max_frame);
            let part = move || {
                part_from(leaving, within, max_frame);
                LINGERING.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().spawn(part).is_ok() {
                return;
            }
        }
        // Without a thread the messages are lost, as they were with this process.
        LINGERING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A link that is being ended.
struct Leaving {
    link: Link,
    /// Whether everything has been sent, the closing alert too.
    has_sent: bool,
}

/// Sends what is left and reads what arrives, until the peers have closed or the time is over.
fn part_from(mut leaving: Vec<Leaving>, within: Duration, max_frame: usize) {
    let until = Instant::now() + within;
    loop {
        leaving.retain_mut(|one| one.goes_on(max_frame));
        let left = until.saturating_duration_since(Instant::now());
        if leaving.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> =
            leaving.iter().map(|one| PollFd::new(one.link.tcp(), one.interest())).collect();
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
