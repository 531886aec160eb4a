//! The audit log while no node runs, and when a node starts.

use std::path::PathBuf;

use polyclave_config::NodeDir;
use polyclave_store::{Secret, Store};

use crate::Result;
use crate::audit::{AuditLog, Event, set_aside};
use crate::clock::now;
use crate::error::system;

/// Opens the audit log of a node for writing. `store` is the node's store. Nothing may have changed it since
/// it was opened: a change would move its mark, and so hide one that it has lost.
pub(crate) fn open_log(dir: &NodeDir, store: &Store) -> Result<AuditLog> {
    let (noted, restored) = (store.audit_head().map_err(system)?, store.is_restored().map_err(system)?);
    let mark = store.mark().map_err(system)?.number;
    let log =
        AuditLog::open(&dir.audit_path(), &dir.settings().audit, noted, (restored, mark)).map_err(system)?;
    if let Some(gap) = store.audit_gap().map_err(system)? {
        log.resume(gap);
        if log.retry() {
            store.note_audit_gap(None).map_err(system)?;
        }
    }
    if restored {
        note_end(&log, store)?;
        store.note_restored_logged().map_err(system)?;
    }
    Ok(log)
}

/// Makes the log durable, and remembers in the store where it ends.
pub(crate) fn note_end(log: &AuditLog, store: &Store) -> Result<()> {
    let (number, hash) = log.sync().map_err(system)?;
    store.note_audit_head(number, hash).map_err(system)
}

/// Sets a damaged audit log aside, with all of its files, and begins a new one. The node must not be running.
/// Returns the directory of the old one, if there was one. The new log begins with a line that says so.
pub fn renew_audit(dir: &NodeDir) -> Result<Option<PathBuf>> {
    let store = Store::of(dir, &Secret::from(dir.secret().map_err(system)?)).map_err(system)?;
    let path = dir.audit_path();
    let moved = set_aside(&path, &path.with_file_name(format!("audit-until-{}", now())))?;
    store.forget_audit_head().map_err(system)?;
    let log = open_log(dir, &store)?;
    log.append(&Event::of_node("renewed", "done")).map_err(system)?;
    note_end(&log, &store)?;
    Ok(moved)
}
