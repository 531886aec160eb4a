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

/// Why a request that the leading node has announced gets no channel here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is here, and waits for a refresh to end.
    WaitsForRefresh,
    /// Its client has not brought it in time, or it was refused.
    NotHere,
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

    /// Waits for a request that the leading node has announced. Returns where its channel goes to.
    ///
    /// # Errors
    /// Why it does not come. The state is read once. Between two looks a refresh may end, and a request that
    /// waited for it would be taken for one that is not here.
    pub(crate) fn expect(
        &self,
        ticket: &Ticket,
        leader: Party,
        within: Duration,
    ) -> Result<SyncSender<Lent>, Absent> {
        let deadline = Instant::now() + within;
        let mut state = self.lock();
        loop {
            if state.waiting.get(ticket).is_some_and(|waiting| waiting.leader == leader)
                && let Some(waiting) = state.waiting.remove(ticket)
            {
                return Ok(waiting.channel);
            }
            if state.held_back.contains(ticket) {
                return Err(Absent::WaitsForRefresh);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.refused.contains(ticket) {
                return Err(Absent::NotHere);
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const TICKET: Ticket = [7; 32];
    const LEADER: Party = Party(0);
    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    /// A node tells the others why it declines a request, and they give way to a refresh only if it says that
    /// the request waits for one. So what it says must not change between two looks.
    #[test]
    fn what_keeps_a_request_away_is_told_in_one_look() {
        let pending = PendingRequests::default();
        let why = |within| pending.expect(&TICKET, LEADER, within).err();
        assert_eq!(why(SHORT), Some(Absent::NotHere));
        let waits = pending.hold_back(TICKET);
        assert_eq!(why(LONG), Some(Absent::WaitsForRefresh));
        thread::scope(|scope| {
            let told = scope.spawn(|| why(LONG));
            // From here on it waits no more, whenever the other thread looks.
            drop(waits);
            let brought = pending.bring(TICKET, LEADER);
            assert!(matches!(told.join().expect("no panic"), None | Some(Absent::WaitsForRefresh)));
            drop(brought);
        });
        pending.leave(&TICKET);
        pending.refuse(TICKET);
        assert_eq!(why(LONG), Some(Absent::NotHere));
    }

    #[test]
    fn only_the_leading_node_that_a_request_waits_for_gives_it_a_channel() {
        let pending = PendingRequests::default();
        let _brought = pending.bring(TICKET, LEADER).expect("the ticket is free");
        assert_eq!(pending.expect(&TICKET, Party(1), SHORT).err(), Some(Absent::NotHere));
        assert!(pending.expect(&TICKET, LEADER, SHORT).is_ok());
        assert_eq!(pending.expect(&TICKET, LEADER, SHORT).err(), Some(Absent::NotHere), "it has one");
    }
}
