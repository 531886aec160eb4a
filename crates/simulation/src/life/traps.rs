//! Moments at which a crash shows most. What goes wrong sets a trap, and a client springs it.

use std::time::Duration;

use crate::machines::disk::crash_after_syncs;
use crate::machines::world::{Machine, crash};

/// A trap.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trap {
    /// The machine crashes as soon as the answer to a use is there that began after this moment, and that
    /// changed the stores of all nodes.
    AfterUse(Machine, Duration),
    /// It crashes at one of its next syncs when a client begins to delete a key: after so many more.
    InDeletion(Machine, u64),
}

impl Trap {
    /// A use was answered that began then. Whether the trap is sprung.
    pub(super) fn used(self, began: Duration) -> bool {
        match self {
            Trap::AfterUse(machine, since) if began > since => {
                crash(machine);
                true
            }
            _ => false,
        }
    }

    /// A deletion begins. Whether the trap is sprung.
    pub(super) fn deletes(self) -> bool {
        match self {
            Trap::InDeletion(machine, syncs) => {
                crash_after_syncs(machine, syncs);
                true
            }
            _ => false,
        }
    }
}
