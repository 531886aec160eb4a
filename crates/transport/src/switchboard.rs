//! Where accepted connections wait for the thread that wants them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polyclave_protocol::{Error, Party, Result};

use crate::arrival::Refusal;
use crate::attempt::{Attempt, LOOK};
use crate::socket::Socket;
use crate::stream::StreamId;

/// Connections of one peer that may wait here; more means that the two parties do not fork alike.
const WAITING_OF_ONE_PEER: usize = 1024;
/// Refusals remembered for an error message.
const REFUSALS: usize = 4;

/// Accepted connections by peer and stream.
#[derive(Default)]
pub(crate) struct Switchboard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<(Party, StreamId), Socket>,
    /// Of parties that want other terms.
    disagreements: HashMap<Party, Error>,
    /// Of strangers, lately.
    turned_away: VecDeque<String>,
}

impl Switchboard {
    /// Keeps a connection until it is asked for. A second one for the same stream replaces the first: its peer has
    /// begun anew.
    pub(crate) fn put(&self, party: Party, stream: StreamId, socket: Socket) {
        let mut state = self.lock();
        let of_party = state.waiting.keys().filter(|(p, _)| *p == party).count();
        if of_party < WAITING_OF_ONE_PEER {
            state.disagreements.remove(&party);
            state.waiting.insert((party, stream), socket);
        }
        self.changed.notify_all();
    }

    /// Remembers why a connection was refused, for whoever waits for one.
    pub(crate) fn refused(&self, from: std::net::SocketAddr, refusal: Refusal) {
        let mut state = self.lock();
        match refusal {
            Refusal::Party(party, e) => _ = state.disagreements.insert(party, e),
            Refusal::Stranger(why) => {
                state.turned_away.truncate(REFUSALS - 1);
                state.turned_away.push_front(format!("{from}: {why}"));
            }
        }
        self.changed.notify_all();
    }

    /// Waits for the connection of `stream` from `party`; for none once the attempt has failed elsewhere.
    pub(crate) fn take(&self, party: Party, stream: StreamId, attempt: &Attempt) -> Result<Option<Socket>> {
        let mut state = self.lock();
        loop {
            if let Some(socket) = state.waiting.remove(&(party, stream)) {
                return Ok(Some(socket));
            }
            if let Some(e) = state.disagreements.remove(&party) {
                return Err(e);
            }
            if attempt.has_failed() {
                return Ok(None);
            }
            let left = attempt.left().ok_or_else(|| missing(party, attempt.limit, &state.turned_away))?;
            let woken = self.changed.wait_timeout(state, left.min(LOOK));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(peer: Party, waited: Duration, turned_away: &VecDeque<String>) -> Error {
    if turned_away.is_empty() {
        return Error::Timeout { peer, waited };
    }
    let list: Vec<&str> = turned_away.iter().map(String::as_str).collect();
    let list = list.join("; ");
    Error::System(format!(
        "{peer} did not connect within {waited:?}, but others were turned away ({list}); give every party the same \
         list of addresses and certificates"
    ))
}
