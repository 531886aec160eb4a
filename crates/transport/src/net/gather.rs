//! Gathering over TLS: an exchange that ends when the caller has enough, and in which a peer that fails loses
//! its link.

use std::time::{Duration, Instant};

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet, Result};
use rustix::event::{PollFd, PollFlags, poll};

use super::{TlsNet, YIELD};

/// Whether the peers that have arrived, and what they sent, are enough.
type Enough<'a> = dyn FnMut(PartySet, &[&mut [u8]]) -> bool + 'a;

impl TlsNet {
    /// [`Net::gather`].
    pub(super) fn gather_from_all(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut Enough<'_>,
    ) -> Result<Gathered> {
        self.check_lengths("a gathering", out, into)?;
        for peer in Party::all(self.parties) {
            let involved = !out[peer.index()].is_empty() || !into[peer.index()].is_empty();
            if involved && !self.is_peer(peer) {
                return Err(Error::misuse(format!("{peer} is not a peer of {} here", self.me)));
            }
        }
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        let now = Instant::now();
        for link in self.links.iter_mut().flatten() {
            let at = link.peer.index();
            link.begin_gathering(!out[at].is_empty(), !into[at].is_empty(), now);
        }
        let arrived =
            self.collect(out, into, patience, enough).inspect_err(|e| self.failed = Some(e.clone()))?;
        self.suspend(out, into, patience.to_begin(self.limits.idle));
        Ok(Gathered { arrived, lost: self.lost() })
    }

    /// Moves messages until the awaited ones have arrived, or enough of them. Returns whose have.
    fn collect(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut Enough<'_>,
    ) -> Result<PartySet> {
        let mut arrived = PartySet::from_bits(0);
        if enough(arrived, into) {
            return Ok(arrived);
        }
        let mut waiting_since = None;
        loop {
            let (mut moved, mut done, mut mover) = (false, true, None);
            for at in 0..self.parties {
                let Some(link) = self.links[at].as_mut().filter(|link| !link.is_idle()) else { continue };
                let (peer, awaited) = (link.peer, link.is_receiving());
                let step = link.step_gathering(out[at], into[at], self.limits.max_frame);
                let waits = link.is_receiving();
                match step {
                    Ok(step) => {
                        mover = mover.or(step.then_some(peer));
                        (moved, done) = (moved | step, done & !waits);
                    }
                    Err(broken) => {
                        mover = mover.or(Some(peer));
                        self.lose(peer, broken.of(peer));
                    }
                }
                if awaited && !waits {
                    arrived = arrived.iter().chain([peer]).collect();
                    if enough(arrived, into) {
                        self.note_wait(waiting_since, mover);
                        return Ok(arrived);
                    }
                }
            }
            if done || moved {
                self.note_wait(waiting_since.take(), mover);
            }
            if done {
                return Ok(arrived);
            }
            if moved {
                continue;
            }
            let since = *waiting_since.get_or_insert_with(Instant::now);
            if since.elapsed() < YIELD {
                std::thread::yield_now();
            } else {
                let lost = self.lost();
                self.sleep_gathering(into, patience)?;
                if let Some(gone) = self.lost().without(lost).iter().next() {
                    self.note_wait(waiting_since.take(), Some(gone));
                }
            }
        }
    }

    /// Gives up the peers whose time is over, or else sleeps until a socket is ready.
    fn sleep_gathering(&mut self, into: &[&mut [u8]], patience: Patience) -> Result<()> {
        let (now, to_begin) = (Instant::now(), patience.to_begin(self.limits.idle));
        let over = self.deadline.is_some_and(|deadline| deadline <= now);
        let mut left = to_begin;
        if let Some(deadline) = self.deadline {
            left = left.min(deadline.saturating_duration_since(now));
        }
        let mut silent = Vec::new();
        for link in self.links.iter().flatten().filter(|link| link.is_receiving() || link.is_late()) {
            let quiet = now.saturating_duration_since(link.moved_at);
            let waited = now.saturating_duration_since(link.began_at);
            let most = patience.to_end(self.limits.idle, into[link.peer.index()].len());
            if link.is_receiving() && (over || waited >= most) {
                silent.push((link.peer, if over { waited } else { most }));
            } else if quiet >= to_begin {
                silent.push((link.peer, to_begin));
            } else {
                left = left.min(to_begin - quiet);
            }
        }
        if silent.is_empty() {
            return self.poll(left, None);
        }
        for (peer, waited) in silent {
            self.lose(peer, Error::Timeout { peer, waited });
        }
        Ok(())
    }

    /// Keeps what is still to be sent, and remembers what is late.
    fn suspend(&mut self, out: &[&[u8]], into: &[&mut [u8]], patience: Duration) {
        for (at, (place, lost)) in self.links.iter_mut().zip(&mut self.lost).enumerate() {
            if let Some(link) = place
                && let Err(e) = link.suspend(out[at], into[at].len(), &self.limits, patience)
            {
                (*place, *lost) = (None, Some(e));
            }
        }
    }

    /// [`TlsNet::wait`] in a gathering: what was not taken before is sent meanwhile. An awaited peer that is
    /// found gone is lost, and is returned at once: nothing can be received from it. `None` also if all
    /// awaited peers were lost before.
    pub fn wait_for_any(&mut self, among: PartySet, within: Duration) -> Result<Option<Party>> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        let deadline = Instant::now() + within;
        let limit = self.limits.max_frame;
        loop {
            let mut gone = Vec::new();
            for link in self.links.iter_mut().flatten() {
                let awaited = among.contains(link.peer);
                let looked = if link.has_unsent() { link.settle(&[], limit) } else { Ok(()) };
                match looked.and_then(|()| if awaited { link.look(limit) } else { Ok(()) }) {
                    Ok(()) if awaited && link.has_early() => return Ok(Some(link.peer)),
                    Ok(()) => {}
                    Err(broken) => gone.push((link.peer, broken.of(link.peer))),
                }
            }
            let lost = gone.iter().map(|(peer, _)| *peer).find(|peer| among.contains(*peer));
            gone.into_iter().for_each(|(peer, e)| self.lose(peer, e));
            if lost.is_some() {
                return Ok(lost);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let links = || self.links.iter().flatten().filter(|link| among.contains(link.peer));
            if left.is_zero() || links().next().is_none() {
                return Ok(None);
            }
            let mut fds: Vec<PollFd<'_>> =
                links().map(|link| PollFd::new(link.tcp(), link.interest(None) | PollFlags::IN)).collect();
            match poll(&mut fds, self.nap(left)?.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Error::System(format!("waiting for the peers failed: {e}"))),
            }
        }
    }

    /// Closes the connection, so that the peer need not wait either.
    fn lose(&mut self, peer: Party, e: Error) {
        self.links[peer.index()] = None;
        self.lost[peer.index()] = Some(e);
    }
}
