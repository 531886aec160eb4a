//! Calls that another thread ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a thread that waits looks whether its call was ended.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Ends what a client does with nodes: attempts to connect, and everything on the networks that were given it
/// ([`TlsNet::ended_by`]). A thread that waits notices within 50 ms.
///
/// [`TlsNet::ended_by`]: crate::TlsNet::ended_by
#[derive(Clone, Debug, Default)]
pub struct Halt {
    halted: Arc<AtomicBool>,
    parent: Option<Arc<Halt>>,
}

impl Halt {
    /// One for some of the calls. This one ends them as well.
    pub fn child(&self) -> Halt {
        Halt { halted: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }

    /// Ends the calls, for ever.
    pub fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// Whether they are ended.
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
