//! One attempt to connect, often with several peers. It has a time limit, and a failure with one peer ends it
//! for all.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_protocol::{Error, Party, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::halt::Halt;

/// How often threads that wait for something else check whether the attempt is over.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Says whether an attempt is still of use.
pub(crate) type GoesOn<'w> = &'w (dyn Fn() -> bool + Sync);

/// Shared by the threads that make the attempt.
pub(crate) struct Attempt<'w> {
    pub(crate) limit: Duration,
    pub(crate) began: Instant,
    failed: AtomicBool,
    halt: Halt,
    goes_on: Option<GoesOn<'w>>,
    /// Connections with the same peers, without which the new ones are of no use.
    beside: &'w [(Party, &'w TcpStream)],
}

impl<'w> Attempt<'w> {
    /// Begins now.
    pub(crate) fn new(limit: Duration) -> Self {
        Attempt::ended_by(Halt::default(), limit)
    }

    /// The same, unless it is ended before.
    pub(crate) fn ended_by(halt: Halt, limit: Duration) -> Self {
        let (began, failed, goes_on, beside) = (Instant::now(), AtomicBool::new(false), None, &[][..]);
        Attempt { limit, began, failed, halt, goes_on, beside }
    }

    /// The same, as long as this holds.
    pub(crate) fn only_while(self, goes_on: Option<GoesOn<'w>>) -> Self {
        Attempt { goes_on, ..self }
    }

    /// The same, as long as the peers keep these connections.
    pub(crate) fn beside(self, beside: &'w [(Party, &'w TcpStream)]) -> Self {
        Attempt { beside, ..self }
    }

    /// Time left; none when it has run out.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.limit.checked_sub(self.began.elapsed()).filter(|left| !left.is_zero())
    }

    /// To be called by a thread that cannot go on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// Whether another thread cannot go on, or ended it, or a peer has gone.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed) || self.is_of_use().is_err()
    }

    /// An error if it was ended, or if what it connects would be of no use. A peer that has gone may be back
    /// already, as another process that knows nothing of what the connection is for.
    pub(crate) fn is_of_use(&self) -> Result<()> {
        self.halt.check()?;
        if let Some((peer, _)) = self.beside.iter().find(|(_, tcp)| has_hung_up(tcp)) {
            let detail = "it has ended the connection beside which another one was to be made".into();
            return Err(Error::Closed { peer: *peer, detail });
        }
        match self.goes_on {
            Some(goes_on) if !goes_on() => {
                Err(Error::System("a connection is of no use any more to who was making it".into()))
            }
            _ => Ok(()),
        }
    }
}

/// How the system says that the other side sends nothing any more.
#[cfg(target_os = "linux")]
const ENDED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const ENDED: PollFlags = PollFlags::HUP;

/// Whether the other side sends nothing any more. What it has sent may still be unread.
fn has_hung_up(tcp: &TcpStream) -> bool {
    let mut fds = [PollFd::new(tcp, ENDED)];
    let ended = ENDED | PollFlags::HUP | PollFlags::ERR;
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(ended)
}
