//! What gatherings have left to be sent when their network is dropped.

use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};

use super::TlsNet;
use crate::link::Link;

/// Time limits that a gathering waits for at most.
const LONGEST: u32 = 8;

impl Drop for TlsNet {
    /// Never waits. Others may count on messages that a slow peer has not taken yet: they are sent by a thread of its own,
    /// for as long as those who wait for them may wait, if the process lives.
    fn drop(&mut self) {
        if self.failed.is_some() {
            return;
        }
        let links: Vec<Link> =
            std::mem::take(&mut self.links).into_iter().flatten().filter(Link::has_unsent).collect();
        if !links.is_empty() {
            let (within, max_frame) = (self.limits.idle.saturating_mul(LONGEST), self.limits.max_frame);
            // Without a thread the messages are lost, as they were with this process.
            let _ = thread::Builder::new().spawn(move || send_rest(links, within, max_frame));
        }
    }
}

/// Sends until all is sent, the peers are gone, or the time is over.
fn send_rest(mut links: Vec<Link>, within: Duration, max_frame: usize) {
    let until = Instant::now() + within;
    loop {
        links.retain_mut(|link| link.settle(&[], max_frame).is_ok() && link.has_unsent());
        let left = until.saturating_duration_since(Instant::now());
        if links.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> =
            links.iter().map(|link| PollFd::new(link.tcp(), link.interest(None))).collect();
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
