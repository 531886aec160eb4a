//! What a client remembers between requests: connections, and how the nodes behaved.
//!
//! The child of a fork has a state of its own, with connections of its own. The parent's have keys and record
//! numbers that the parent goes on to use. The child closes its copies of them and sends nothing.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use polyclave_protocol::session::random_bytes;
use polyclave_transport::{Farewells, Line};

use crate::session::kept::Kept;
use crate::session::load::Load;

/// The state of a client in one process. The vectors are by node.
pub(crate) struct State {
    /// Connections that are not in use.
    pub(crate) kept: Vec<Kept<Line>>,
    /// The last time that a node did not accept a connection, unless it has accepted one since.
    pub(crate) unreached: Vec<Mutex<Option<Instant>>>,
    /// When a node last answered as no honest node does, or others blamed it for a failure. That it accepts
    /// connections does not clear it.
    pub(crate) suspected: Vec<Mutex<Option<Instant>>>,
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
            farewells: Arc::default(),
            load: Load::begun_at(u16::from_le_bytes(turn).into()),
        }
    }

    /// The state of a child whose parent has this one.
    pub(crate) fn of_child(&self) -> State {
        self.kept.iter().for_each(Kept::abandon);
        State::new(self.kept.len())
    }
}
