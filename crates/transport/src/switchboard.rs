//! Where accepted connections wait until the thread that needs them takes them.
//!
//! A connection belongs to one stream of one peer, and so does a refusal. An error in one stream is reported
//! to that stream only.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_protocol::{Error, Party, Result};

use crate::accept::{Desk, Guest};
use crate::arrival::Refusal;
use crate::attempt::{Attempt, POLL_INTERVAL};
use crate::socket::Socket;
use crate::stream::StreamId;

/// Connections of one peer that may wait here; more means that the two parties do not open the same streams.
const WAITING_OF_ONE_PEER: usize = 256;
/// Refusals remembered for an error message.
const REFUSALS: usize = 4;

/// Accepted connections by peer and stream.
pub(crate) struct Switchboard {
    /// How long a connection may wait; as long as all of this exists if there is no limit.
    keep: Option<Duration>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<(Party, StreamId), Waiting>,
    /// The connections that were refused lately, and why.
    turned_away: VecDeque<(Instant, String)>,
    closed: bool,
}

/// Whether the peers of a stream may call for it more than once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// No, as with a fork. If the connection has ended, no other will come.
    Once,
    /// Yes, as with a named stream. A peer that has closed its connection may have given up waiting, and may
    /// call again.
    Again,
}

/// The result of a peer's call: a connection, or the fact that it has other terms.
struct Waiting {
    outcome: Result<Socket>,
    since: Instant,
}

impl Switchboard {
    /// Where connections may wait for `keep`.
    pub(crate) fn new(keep: Option<Duration>) -> Self {
        Switchboard { keep, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for the connection of `stream` from `party`. `None` once the attempt has failed elsewhere.
    pub(crate) fn take(
        &self,
        party: Party,
        stream: StreamId,
        calls: Calls,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Socket>> {
        let mut state = self.lock();
        loop {
            if let Some(Waiting { outcome, .. }) = state.waiting.remove(&(party, stream)) {
                let mut socket = outcome?;
                if calls == Calls::Once || !socket.has_left() {
                    return Ok(Some(socket));
                }
            }
            if state.closed {
                return Err(Error::misuse(
                    "this party accepts no connections any more: its mesh was dropped",
                ));
            }
            if attempt.has_failed() {
                return Ok(None);
            }
            let left = attempt.left().ok_or_else(|| self.missing(party, attempt, &state.turned_away))?;
            self.changed.wait_for(&mut state, left.min(POLL_INTERVAL));
        }
    }

    /// Whether connections wait here for a limited time.
    pub(crate) fn keeps_for_a_time(&self) -> bool {
        self.keep.is_some()
    }

    /// Closes the connections of these streams that wait here: nobody will take them. Only where they would
    /// wait for a limited time.
    pub(crate) fn turn_away(&self, streams: impl Iterator<Item = StreamId>) {
        if self.keeps_for_a_time() {
            let streams: Vec<StreamId> = streams.collect();
            // Dropped once the lock is free.
            let _closed: Vec<_> =
                self.lock().waiting.extract_if(|(_, stream), _| streams.contains(stream)).collect();
        }
    }

    /// Ends all waiting: no connection will come any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        self.changed.notify_all();
    }

    fn put(&self, party: Party, stream: StreamId, outcome: Result<Socket>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let of_party = state.waiting.keys().filter(|(p, _)| *p == party).count();
        let replaced = state.waiting.remove(&(party, stream));
        if of_party < WAITING_OF_ONE_PEER || replaced.is_some() {
            state.waiting.insert((party, stream), Waiting { outcome, since: Instant::now() });
        }
        self.changed.notify_all();
    }

    fn missing(
        &self,
        peer: Party,
        attempt: &Attempt<'_>,
        turned_away: &VecDeque<(Instant, String)>,
    ) -> Error {
        let recent = |at: &Instant| self.keep.is_none_or(|keep| *at + keep >= attempt.began);
        let list: Vec<&str> =
            turned_away.iter().filter(|(at, _)| recent(at)).map(|(_, why)| why.as_str()).collect();
        let waited = attempt.limit;
        if list.is_empty() {
            return Error::Timeout { peer, waited };
        }
        let detail = format!(
            "{peer} did not connect within {waited:?}, but others were turned away ({}); give every party the same \
             list of addresses and certificates",
            list.join("; ")
        );
        // At a port that is open for years strangers are nothing unusual: there it stays the peer's failure.
        if self.keep.is_some() { Error::Closed { peer, detail } } else { Error::System(detail) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Desk for Switchboard {
    /// Keeps a connection until it is asked for. A second one for the same stream replaces the first: its
    /// peer has begun anew.
    fn welcome(&self, guest: Guest) {
        self.put(guest.party, guest.stream, Ok(guest.socket));
    }

    /// Remembers why a connection was refused, for threads that wait for one.
    fn refused(&self, from: SocketAddr, refusal: Refusal) {
        let message = match refusal {
            Refusal::Party(party, stream, e) => {
                let message = format!("{from}: {e}");
                self.put(party, stream, Err(e));
                message
            }
            Refusal::Stranger(why) => format!("{from}: {why}"),
        };
        let mut state = self.lock();
        state.turned_away.truncate(REFUSALS - 1);
        state.turned_away.push_front((Instant::now(), message));
    }

    fn tidy(&self) -> Option<Instant> {
        let keep = self.keep?;
        let mut state = self.lock();
        state.waiting.retain(|_, waiting| waiting.since.elapsed() < keep);
        state.waiting.values().map(|waiting| waiting.since + keep).min()
    }
}
