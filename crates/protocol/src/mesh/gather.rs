//! Gathering on in-memory channels: polls the peers for messages, and sleeps briefly when there are none.

use std::collections::VecDeque;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use super::{Mesh, closed, wrong_length};
use crate::interface::net::{Gathered, Patience};
use crate::{Error, Party, PartySet, Result};

/// How often to yield before going to sleep.
const YIELDS: u32 = 20;
/// One sleep.
const NAP: Duration = Duration::from_micros(50);
/// What a peer may owe, and what a message counts beyond its bytes, so that short ones do not add up unseen.
const MAX_OWED: usize = 64 << 20;
const PER_MESSAGE: usize = size_of::<usize>();

/// What a peer owes from earlier gatherings.
pub(super) struct Debt {
    /// Lengths of the messages that are thrown away when they come.
    late: VecDeque<usize>,
    bytes: usize,
    /// When it last sent something, or began to owe.
    heard_at: Instant,
    lost: Option<Error>,
}

/// What may be had of a peer at once.
enum Came {
    Due(Vec<u8>),
    /// Something, but only what was late.
    Late,
    Nothing,
}

impl Debt {
    pub(super) fn none() -> Debt {
        Debt { late: VecDeque::new(), bytes: 0, heard_at: Instant::now(), lost: None }
    }

    /// The error by which the peer was lost.
    pub(super) fn error(&self) -> Option<Error> {
        self.lost.clone()
    }

    /// The length of the message that is discarded next.
    pub(super) fn front(&self) -> Option<usize> {
        self.late.front().copied()
    }

    /// Notes that this message has arrived.
    pub(super) fn settle(&mut self) {
        if let Some(len) = self.late.pop_front() {
            self.bytes -= len + PER_MESSAGE;
        }
    }

    fn owe(&mut self, len: usize) {
        self.late.push_back(len);
        self.bytes += len + PER_MESSAGE;
    }
}

impl Mesh {
    /// [`crate::interface::net::Net::gather`].
    pub(super) fn gather_from_all(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.check_lengths(out, into)?;
        let limit = patience.to_begin(self.timeout);
        let mut pending = self.begin(out, into);
        let mut arrived = PartySet::from_bits(0);
        if enough(arrived, into) {
            self.end(into, limit, pending);
            return Ok(Gathered { arrived, lost: self.lost_peers() });
        }
        let mut idle_rounds = 0;
        'asking: while !self.still(pending).is_empty() {
            let mut moved = false;
            for p in self.members.iter() {
                moved |= match self.come(p, pending.contains(p), into[p.index()].len()) {
                    Came::Nothing => false,
                    Came::Late => true,
                    Came::Due(message) => {
                        into[p.index()].copy_from_slice(&message);
                        pending = pending.iter().filter(|other| *other != p).collect();
                        arrived = arrived.iter().chain([p]).collect();
                        if enough(arrived, into) {
                            break 'asking;
                        }
                        true
                    }
                };
            }
            if moved {
                idle_rounds = 0;
                continue;
            }
            self.lose_the_silent(limit, pending);
            if idle_rounds < YIELDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(NAP);
            }
            idle_rounds += 1;
        }
        self.end(into, limit, pending);
        Ok(Gathered { arrived, lost: self.lost_peers() })
    }

    pub(super) fn lost_peers(&self) -> PartySet {
        self.members.iter().filter(|p| self.debts[p.index()].lost.is_some()).collect()
    }

    fn check_lengths(&self, out: &[&[u8]], into: &[&mut [u8]]) -> Result<()> {
        let n = self.to.len();
        if out.len() != n || into.len() != n {
            let message =
                format!("a gathering of {} and {} messages among {n} parties", out.len(), into.len());
            return Err(Error::misuse(message));
        }
        let involved = |p: &Party| !out[p.index()].is_empty() || !into[p.index()].is_empty();
        match Party::all(n).filter(involved).find(|p| self.to[p.index()].is_none()) {
            Some(stranger) => Err(Error::misuse(format!("{stranger} is not a peer"))),
            None => Ok(()),
        }
    }

    /// Sends everything. Returns which peers are awaited.
    fn begin(&mut self, out: &[&[u8]], into: &[&mut [u8]]) -> PartySet {
        let mut awaited = Vec::new();
        let now = Instant::now();
        for (p, sender) in Party::all(out.len()).zip(&self.to) {
            let debt = &mut self.debts[p.index()];
            let Some(sender) = sender.as_ref().filter(|_| debt.lost.is_none()) else { continue };
            if !out[p.index()].is_empty() {
                // One that is gone may have left messages, for this call and for later ones.
                let _ = sender.send(out[p.index()].to_vec());
            }
            if !into[p.index()].is_empty() {
                awaited.push(p);
            }
            if debt.late.is_empty() {
                debt.heard_at = now;
            }
        }
        awaited.into_iter().collect()
    }

    /// The peers of `pending` that are not lost.
    fn still(&self, pending: PartySet) -> PartySet {
        pending.iter().filter(|p| self.debts[p.index()].lost.is_none()).collect()
    }

    /// Takes what has come from a peer: all that was late, then the message of `len` bytes if it is due.
    fn come(&mut self, p: Party, due: bool, len: usize) -> Came {
        let debt = &mut self.debts[p.index()];
        let Some(receiver) = self.from[p.index()].as_ref().filter(|_| debt.lost.is_none()) else {
            return Came::Nothing;
        };
        let mut came = Came::Nothing;
        while due || !debt.late.is_empty() {
            let message = match receiver.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    debt.lost = Some(closed(p));
                    break;
                }
            };
            debt.heard_at = Instant::now();
            let late = debt.front();
            let expected = late.unwrap_or(len);
            if message.len() != expected {
                debt.lost = Some(wrong_length(p, message.len(), expected));
                break;
            }
            if late.is_none() {
                return Came::Due(message);
            }
            debt.settle();
            came = Came::Late;
        }
        came
    }

    fn lose_the_silent(&mut self, limit: Duration, pending: PartySet) {
        for p in self.members.iter() {
            let debt = &mut self.debts[p.index()];
            let owes = pending.contains(p) || !debt.late.is_empty();
            if owes && debt.lost.is_none() && debt.heard_at.elapsed() >= limit {
                debt.lost = Some(Error::Timeout { peer: p, waited: limit });
            }
        }
    }

    /// What has not come is late from now on.
    fn end(&mut self, into: &[&mut [u8]], limit: Duration, pending: PartySet) {
        for p in self.members.iter() {
            // So that only peers that this call has asked are judged.
            let _ = self.come(p, false, 0);
        }
        self.lose_the_silent(limit, PartySet::from_bits(0));
        for p in self.still(pending).iter() {
            let debt = &mut self.debts[p.index()];
            debt.owe(into[p.index()].len());
            if debt.bytes > MAX_OWED {
                let detail =
                    format!("given up: it owes more than {MAX_OWED} bytes that others did not wait for");
                debt.lost = Some(Error::Closed { peer: p, detail });
            }
        }
    }
}

#[cfg(test)]
mod tests;
