//! Requests that a client has brought and that wait for the channel that the leading node picked for them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_protocol::Party;

use crate::requests::channels::Lent;

/// How many recently refused requests are remembered: a channel need not wait for them.
const REMEMBERED: usize = 256;

/// Identifies a request: a hash of the client's certificate and the number that the client drew. No client
/// can claim another's.
pub(crate) type Ticket = [u8; 32];

/// Requests by ticket.
#[derive(Default)]
pub(crate) struct PendingRequests {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<Ticket, Waiting>,
    /// Requests that wait for a refresh to end.
    held_back: HashSet<Ticket>,
    refused: VecDeque<Ticket>,
}

struct Waiting {
    leader: Party,
    channel: SyncSender<Lent>,
}

/// While this exists, a request waits for a refresh to end.
pub(crate) struct WaitsForRefresh<'p> {
    pending: &'p PendingRequests,
    ticket: Ticket,
}

impl Drop for WaitsForRefresh<'_> {
    fn drop(&mut self) {
        self.pending.lock().held_back.remove(&self.ticket);
    }
}

impl PendingRequests {
    /// Notes that a request waits here for a refresh to end: no other node waits for it meanwhile.
    pub(crate) fn hold_back(&self, ticket: Ticket) -> WaitsForRefresh<'_> {
        self.lock().held_back.insert(ticket);
        self.changed.notify_all();
        WaitsForRefresh { pending: self, ticket }
    }

    /// How many requests wait here for a refresh to end.
    #[cfg(test)]
    pub(crate) fn held_back(&self) -> usize {
        self.lock().held_back.len()
    }

    /// Whether a request waits here for a refresh to end.
    pub(crate) fn is_held_back(&self, ticket: &Ticket) -> bool {
        self.lock().held_back.contains(ticket)
    }

    /// Announces that a request is here and waits for a channel of `leader`. `None` if the ticket is taken
    /// already.
    pub(crate) fn bring(&self, ticket: Ticket, leader: Party) -> Option<Receiver<Lent>> {
        let (channel, receiver) = sync_channel(1);
        let mut state = self.lock();
        if state.waiting.contains_key(&ticket) {
            return None;
        }
        state.waiting.insert(ticket, Waiting { leader, channel });
        self.changed.notify_all();
        Some(receiver)
    }

    /// Removes a request that no longer waits.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        self.lock().waiting.remove(ticket);
    }

    /// Remembers a request that was refused here before it could wait.
    pub(crate) fn refuse(&self, ticket: Ticket) {
        let mut state = self.lock();
        if state.refused.len() == REMEMBERED {
            state.refused.pop_front();
        }
        state.refused.push_back(ticket);
        self.changed.notify_all();
    }

    /// Hands a channel to the request with this ticket. Returns the channel if no such request comes in time,
    /// or if it waits for a refresh to end.
    #[expect(clippy::result_large_err, reason = "the error is the channel, given back")]
    pub(crate) fn hand_over(
        &self,
        ticket: &Ticket,
        leader: Party,
        mut channel: Lent,
        within: Duration,
    ) -> Result<(), Lent> {
        let deadline = Instant::now() + within;
        let mut state = self.lock();
        loop {
            if state.waiting.get(ticket).is_some_and(|waiting| waiting.leader == leader)
                && let Some(waiting) = state.waiting.remove(ticket)
            {
                match waiting.channel.try_send(channel) {
                    Ok(()) => return Ok(()),
                    Err(e) => {
                        channel = match e {
                            std::sync::mpsc::TrySendError::Full(c) => c,
                            std::sync::mpsc::TrySendError::Disconnected(c) => c,
                        }
                    }
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.refused.contains(ticket) || state.held_back.contains(ticket) {
                return Err(channel);
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
