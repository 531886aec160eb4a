//! What a client remembers between requests: connections, and how the nodes behaved.
//!
//! The child of a fork has a state of its own, with connections of its own. The parent's have keys and record
//! numbers that the parent goes on to use. The child closes its copies of them and sends nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_protocol::session::random_bytes;
use polyclave_transport::{Farewells, Line};

use crate::session::kept::Kept;
use crate::session::load::Load;

/// A node that did not accept a connection, or caused a failure, is asked last for this time.
pub(crate) const SUSPECT: Duration = Duration::from_secs(10);
/// After this time a node that was gone may be back. Where two can go on without it, one that caused a
/// failure is asked last only for so long: if it is gone, it does not accept the next connection.
pub(crate) const PERHAPS_BACK: Duration = Duration::from_secs(1);
/// A node that fails again within this time is not taken for one that has come back.
const AGAIN: Duration = Duration::from_secs(5);

/// The state of a client in one process. The vectors are by node.
pub(crate) struct State {
    /// Connections that are not in use.
    pub(crate) kept: Vec<Kept<Line>>,
    /// The last time that a node did not accept a connection, unless it has accepted one since.
    pub(crate) unreached: Vec<Mutex<Option<Instant>>>,
    /// Until when a node is left out because it answered as no honest node does, or others blamed it for a
    /// failure. That it accepts connections does not clear it.
    pub(crate) suspected: Vec<Mutex<Option<Instant>>>,
    /// When it last did.
    failed: Vec<Mutex<Option<Instant>>>,
    /// The threads in which requests that were given up end their connections.
    pub(crate) farewells: Arc<Farewells>,
    pub(crate) load: Load,
}

impl State {
    /// Nothing is known yet of so many nodes.
    pub(crate) fn new(nodes: usize) -> State {
        let never = || (0..nodes).map(|_| Mutex::default()).collect();
        // The first turn is random, so that many programs do not all begin with the same workers. It need not
        // be secret.
        let mut turn = [0; 2];
        let _ = random_bytes(&mut turn);
        State {
            kept: (0..nodes).map(|_| Kept::default()).collect(),
            unreached: never(),
            suspected: never(),
            failed: never(),
            farewells: Arc::default(),
            load: Load::begun_at(u16::from_le_bytes(turn).into()),
        }
    }

    /// Notes that a node caused a failure at this time, so that it is left out for a while. Where it may be
    /// back soon, that is short, unless it has failed shortly before: a node that fails again and again would
    /// make requests slower each time that it is asked.
    pub(crate) fn suspect(&self, node: usize, may_be_back_soon: bool, now: Instant) {
        let (Some(suspected), Some(failed)) = (self.suspected.get(node), self.failed.get(node)) else {
            return;
        };
        let before = failed.lock().replace(now).map(|before| now.duration_since(before));
        let is_again = before.is_some_and(|before| (PERHAPS_BACK..AGAIN).contains(&before));
        let within = if may_be_back_soon && !is_again { PERHAPS_BACK } else { SUSPECT };
        *suspected.lock() = Some(now + within);
    }

    /// Whether a node is left out at this time.
    pub(crate) fn is_left_out(&self, node: usize, now: Instant) -> bool {
        let unreached = *self.unreached[node].lock();
        let suspected = *self.suspected[node].lock();
        unreached.is_some_and(|at| now.duration_since(at) < SUSPECT)
            || suspected.is_some_and(|until| now < until)
    }

    /// The state of a child whose parent has this one.
    pub(crate) fn of_child(&self) -> State {
        self.kept.iter().for_each(Kept::abandon);
        State::new(self.kept.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_may_be_back_is_soon_asked_again_unless_it_fails_again() {
        let (state, began) = (State::new(3), Instant::now());
        let at = |seconds: f64| began + Duration::from_secs_f64(seconds);
        let is_out = |seconds| state.is_left_out(1, at(seconds));
        state.suspect(1, true, at(0.0));
        // Other requests met the same failure.
        state.suspect(1, true, at(0.1));
        assert!(is_out(0.5) && !is_out(1.2) && !state.is_left_out(0, at(0.5)));
        // It failed again when it was asked again, even if it had agreed on that request before.
        *state.suspected[1].lock() = None;
        state.suspect(1, true, at(1.5));
        assert!(is_out(2.6) && is_out(11.4) && !is_out(11.6));
        state.suspect(1, true, at(60.0));
        assert!(is_out(60.5) && !is_out(61.5), "that was long ago");
    }

    #[test]
    fn where_no_pair_goes_on_and_where_no_connection_was_made_a_node_is_left_out_for_longer() {
        let (state, now) = (State::new(3), Instant::now());
        state.suspect(0, false, now);
        *state.unreached[1].lock() = Some(now);
        for node in [0, 1] {
            assert!(state.is_left_out(node, now + SUSPECT / 2) && !state.is_left_out(node, now + SUSPECT));
        }
    }
}
