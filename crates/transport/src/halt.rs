//! Work with peers that another thread ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polyclave_protocol::{Error, Result};

/// How often a thread of a client that waits looks whether its call was ended.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// The same for a thread of a node. Many of them wait all the time.
const LOOK_AT_NODE: Duration = Duration::from_millis(500);

/// Ends what a client does with nodes, or a node with others: attempts to connect, and everything on the
/// networks that were given it ([`TlsNet::ended_by`], [`Mesh::halt`]). A thread of a client that waits
/// notices within 50 ms, one of a node within 500 ms.
///
/// [`TlsNet::ended_by`]: crate::TlsNet::ended_by
/// [`Mesh::halt`]: crate::Mesh::halt
#[derive(Clone, Debug)]
pub struct Halt {
    halted: Arc<AtomicBool>,
    parent: Option<Arc<Halt>>,
    /// How often a thread that waits looks.
    pub(crate) look: Duration,
}

impl Default for Halt {
    fn default() -> Halt {
        Halt { halted: Arc::default(), parent: None, look: LOOK }
    }
}

impl Halt {
    pub(crate) fn of_node() -> Halt {
        Halt { look: LOOK_AT_NODE, ..Halt::default() }
    }

    /// One for a part of the work. This one ends it as well.
    pub fn child(&self) -> Halt {
        Halt { halted: Arc::default(), parent: Some(Arc::new(self.clone())), look: self.look }
    }

    /// An error once the work is ended.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_halted() {
            true => Err(Error::System("this side has ended the work".into())),
            false => Ok(()),
        }
    }

    /// Ends the work, for ever.
    pub fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// Whether it is ended.
    pub fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || self.parent.as_ref().is_some_and(|parent| parent.is_halted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_alone_and_with_all_others() {
        let all = Halt::default();
        let (one, other) = (all.child(), all.clone().child());
        one.halt();
        assert!(one.is_halted() && !other.is_halted() && !all.is_halted());
        all.halt();
        assert!(other.is_halted());
    }
}
