//! What a node writes to its audit log, and what becomes of requests when it cannot ([`crate::operator::audit`]).
//!
//! A request that is to be served has a line first ([`Logbook::admit`]). If it cannot be written the request is refused, for this node's own
//! reason and before anything is computed; the node says that it is not ready until a line can be written again, which is tried
//! every second.

mod offline;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use polyclave_transport::wire::{Reason, Refusal};

pub use offline::renew_audit;
pub(crate) use offline::{note_end, open_log};

use crate::Result;
use crate::error::system;
use crate::operator::audit::{AuditLog, Event, Gap, Head};
use crate::store::Store;

/// The audit log of a node, if it keeps one.
pub(crate) struct Logbook {
    audit: Option<AuditLog>,
    store: Arc<Store>,
}

impl Logbook {
    pub(crate) fn new(audit: Option<AuditLog>, store: Arc<Store>) -> Logbook {
        Logbook { audit, store }
    }

    /// Why no line can be written, if that is so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.audit.as_ref().and_then(AuditLog::failure).map(|(why, _)| why)
    }

    /// Notes what has happened; an error if it cannot be written.
    pub(crate) fn append(&self, event: &Event<'_>) -> Result<()> {
        self.audit.as_ref().map_or(Ok(()), |audit| audit.append(event).map_err(system))
    }

    /// Notes what has happened. If it cannot be written it is counted.
    pub(crate) fn note(&self, event: &Event<'_>) {
        if let Some(Err(e)) = self.audit.as_ref().map(|audit| audit.append(event)) {
            tracing::debug!(error = %e, operation = event.operation, "an event has no line in the audit log");
        }
    }

    /// Notes what is about to happen. If it cannot be written, and the node is not set to go on without, it must not happen.
    pub(crate) fn admit(&self, event: &Event<'_>) -> Result<(), Refusal> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let had_gap = audit.gap().is_some();
        audit.admit(event).map_err(|_| {
            let told = "its audit log cannot be written, so it serves nothing until it can; its operator: `polyclave node status`";
            Refusal::new(Reason::Internal, told)
        })?;
        if !had_gap && let Some(gap) = audit.gap() {
            // The first that is served without a line: a crash must not make it forgotten.
            self.settle_gap(Some(gap));
        }
        Ok(())
    }

    /// Why this node refuses requests, if it does since its audit log cannot be written.
    pub(crate) fn refuses(&self) -> Option<String> {
        let (why, refuses) = self.audit.as_ref()?.failure()?;
        refuses.then_some(why)
    }

    /// Makes the audit log durable and remembers in the store where it ends, if it has grown since `noted`, and since when it cannot be
    /// written.
    pub(crate) fn settle(&self, noted: &mut Option<Head>) {
        let Some(audit) = &self.audit else { return };
        let writable = audit.retry();
        metrics::gauge!("polyclave_audit_writable").set(f64::from(u8::from(writable)));
        self.settle_gap(audit.gap());
        if *noted == Some(audit.head()) {
            return;
        }
        let settled = audit.sync().map_err(system).and_then(|head| {
            self.store.note_audit_head(head.0, head.1).map_err(system)?;
            *noted = Some(head);
            Ok(())
        });
        if let Err(e) = settled {
            tracing::error!(error = %e, "the end of the audit log was not noted");
        }
    }

    fn settle_gap(&self, gap: Option<Gap>) {
        let gap = gap.filter(|gap| gap.events > 0);
        let settled = self.store.audit_gap().and_then(|noted| match noted == gap {
            true => Ok(()),
            false => self.store.note_audit_gap(gap.as_ref()),
        });
        if let Err(e) = settled {
            tracing::error!(error = %e, "since when the audit log cannot be written was not noted");
        }
    }
}
