//! `[audit]` in `node.toml`: the settings of a node's audit log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The settings of a node's audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// Whether the node writes one.
    pub enabled: bool,
    /// What happens to requests while no line can be written.
    pub when_unwritable: WhenUnwritable,
    /// A file that reaches this size in MiB is closed, and another one begun.
    pub rotate_mib: u64,
    /// How many closed files are kept; beyond that the oldest is deleted. All are kept if absent.
    pub keep_files: Option<usize>,
    /// A Unix datagram socket to which every line goes as well, such as `/dev/log`.
    pub syslog: Option<PathBuf>,
}

/// What happens to requests while no line can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenUnwritable {
    /// They are refused.
    Refuse,
    /// They are served, and counted.
    Serve,
}

impl Default for AuditSettings {
    fn default() -> AuditSettings {
        let when_unwritable = WhenUnwritable::Refuse;
        AuditSettings { enabled: true, when_unwritable, rotate_mib: 64, keep_files: None, syslog: None }
    }
}

impl AuditSettings {
    /// A file as large as this is read by no editor.
    const MAX_MIB: u64 = 1 << 20;

    pub(crate) fn check(&self) -> Result<()> {
        if (1..=AuditSettings::MAX_MIB).contains(&self.rotate_mib) {
            return Ok(());
        }
        let (message, most) = (self.rotate_mib, AuditSettings::MAX_MIB);
        Err(Error::misuse(format!("rotate_mib is {message}; write 1 to {most} under [audit]")))
    }
}
