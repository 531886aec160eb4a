//! What a node writes to its audit log, and how it treats requests when it cannot write ([`crate::audit`]).
//!
//! A request gets a line before it is served ([`Logbook::admit`]). If the line cannot be written, this node
//! refuses the request before anything is computed, and says that the reason is its own. It says that it is
//! not ready until a line can be written again, and tries every second.

mod offline;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use polyclave_api::{Reason, Refusal};

pub use offline::renew_audit;
pub(crate) use offline::{note_end, open_log};

use polyclave_store::Store;

use crate::Result;
use crate::audit::{AuditLog, Event, Gap, Head};
use crate::error::system;

/// The audit log of a node, if it keeps one.
pub(crate) struct Logbook {
    audit: Option<AuditLog>,
    store: Arc<Store>,
}

impl Logbook {
    pub(crate) fn new(audit: Option<AuditLog>, store: Arc<Store>) -> Logbook {
        Logbook { audit, store }
    }

    /// The log, after it was told the store's mark for the lines that follow.
    fn at_mark(&self) -> Option<&AuditLog> {
        let audit = self.audit.as_ref()?;
        // If the store cannot be read, lines have the latest mark that is known.
        let _ = self.store.mark().map(|mark| audit.at_mark(mark.number));
        Some(audit)
    }

    /// Why no line can be written; `None` if lines can be written.
    pub(crate) fn failure(&self) -> Option<String> {
        self.audit.as_ref().and_then(AuditLog::failure).map(|(why, _)| why)
    }

    /// Logs an event; an error if it cannot be written.
    pub(crate) fn append(&self, event: &Event<'_>) -> Result<()> {
        self.at_mark().map_or(Ok(()), |audit| audit.append(event).map_err(system))
    }

    /// Logs an event. If it cannot be written, it is counted.
    pub(crate) fn note(&self, event: &Event<'_>) {
        if let Some(Err(e)) = self.at_mark().map(|audit| audit.append(event)) {
            tracing::debug!(error = %e, operation = event.operation, "an event has no line in the audit log");
        }
    }

    /// Logs an event that is about to happen. After an error it must not happen. There is no error if the
    /// node is set to continue without lines.
    pub(crate) fn admit(&self, event: &Event<'_>) -> Result<(), Refusal> {
        let Some(audit) = self.at_mark() else { return Ok(()) };
        let had_gap = audit.gap().is_some();
        audit.admit(event).map_err(|_| {
            let message = "its audit log cannot be written, and it refuses requests until it can be; see `polyclave node status`";
            Refusal::new(Reason::Internal, message)
        })?;
        if !had_gap && let Some(gap) = audit.gap() {
            // The first request that is served without a line: recorded at once, so that a crash does not
            // hide it.
            self.settle_gap(Some(gap));
        }
        Ok(())
    }

    /// Why this node refuses requests, if it does so because its audit log cannot be written.
    pub(crate) fn refuses(&self) -> Option<String> {
        let (why, refuses) = self.audit.as_ref()?.failure()?;
        refuses.then_some(why)
    }

    /// Makes the audit log durable. Remembers in the store where it ends, if it has grown since `noted`, and
    /// since when it cannot be written.
    pub(crate) fn settle(&self, noted: &mut Option<Head>) {
        let Some(audit) = &self.audit else { return };
        let writable = audit.retry();
        metrics::gauge!("polyclave_audit_writable").set(f64::from(u8::from(writable)));
        metrics::gauge!("polyclave_audit_lines").set(audit.head().0 as f64);
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
            tracing::error!(error = %e, "could not note the end of the audit log");
        }
    }

    fn settle_gap(&self, gap: Option<Gap>) {
        let gap = gap.filter(|gap| gap.events > 0);
        let settled = self.store.audit_gap().and_then(|noted| match noted == gap {
            true => Ok(()),
            false => self.store.note_audit_gap(gap.as_ref()),
        });
        if let Err(e) = settled {
            tracing::error!(error = %e, "could not note since when the audit log cannot be written");
        }
    }
}
