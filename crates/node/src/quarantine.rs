//! When a check fails: this node computes nothing any more, whoever asks, until its operators have made fresh common secrets.
//!
//! A failed check of any kind can tell a cheater about a bit of a secret, and nobody can tell here who cheated. So nothing is
//! tried again: the node writes down that it happened before it answers, gives up the epoch and all material, and stays so
//! over restarts. Only a rotation ends it ([`crate::rotation`]). A client is told that it happened and nothing about how far
//! its computation had come; the peers hear of it with the next beat.

use std::sync::PoisonError;

use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::{EARLIER_CHECK, Error};
use polyclave_transport::wire::{Reason, Refusal};

use crate::audit::Event;
use crate::core::{Core, now};
use crate::store::Quarantine;

/// What is to be done.
pub(crate) const REMEDY: &str = "find out which machine was altered; when all are sound, order fresh common secrets at every \
                                 node (`polyclave node rotate DIR --secrets`)";

/// What a failure among the nodes means for this one: whether it is a quarantine. `during` says what was under way, never how
/// far. Where no key is renewed no failed check tells anything of one, and it must not be in a cheater's power to stop the others.
pub(crate) fn judge<S: ServiceScheme>(core: &Core<S>, during: &str, error: &Error) -> bool {
    if !core.scheme.renews() {
        return false;
    }
    match error {
        // The failure itself is another session's, and judged there.
        Error::CheckFailed { what } if *what == EARLIER_CHECK => {
            core.end_epoch("its MAC key was given up");
            return false;
        }
        Error::CheckFailed { .. } => core.quarantine(&format!("a check failed while {during}")),
        Error::Peer { peer, .. } => {
            core.quarantine(&format!("{peer} sent something that does not fit while {during}"));
        }
        _ => return false,
    }
    true
}

impl<S: ServiceScheme> Core<S> {
    /// From now on this node computes nothing.
    pub(crate) fn quarantine(&self, reason: &str) {
        let quarantine = Quarantine { reason: reason.into(), since: now() };
        {
            let mut current = self.quarantine.write().unwrap_or_else(PoisonError::into_inner);
            if current.is_some() {
                return;
            }
            *current = Some(quarantine);
        }
        self.settle_quarantine();
        self.end_epoch("a check failed");
        tracing::error!(reason, remedy = REMEDY, "this node is under quarantine and serves nothing");
        let (operation, outcome, request) = ("quarantine", "check-failed", [0; 16]);
        self.note(&Event { client: "", operation, key: "", outcome, blocks: 0, request });
        metrics::gauge!("polyclave_quarantined").set(1.0);
    }

    /// Makes the quarantine durable, if it is not yet: a disk may have been full.
    pub(crate) fn settle_quarantine(&self) {
        // Held until it is written: a rotation that ends it meanwhile must not be followed by it.
        let current = self.quarantine.read().unwrap_or_else(PoisonError::into_inner);
        let Some(quarantine) = &*current else { return };
        let settled = self.store.quarantined().and_then(|stored| match stored {
            Some(_) => Ok(()),
            None => self.store.quarantine(&quarantine.reason, quarantine.since),
        });
        if let Err(e) = settled {
            tracing::error!(error = %e, "the quarantine could not be written down; this is tried again");
        }
    }

    /// Why this node computes nothing, if that is so.
    pub(crate) fn quarantined(&self) -> Option<Quarantine> {
        self.quarantine.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What everybody is told who asks for a computation.
    pub(crate) fn refuse_quarantined(&self) -> Result<(), Refusal> {
        if !self.is_quarantined() {
            return Ok(());
        }
        let told = format!(
            "a check failed among the nodes, so this one computes nothing any more. Its operators: {REMEDY}"
        );
        Err(Refusal::new(Reason::Quarantined, told))
    }
}
