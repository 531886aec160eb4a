//! How old backups are, and what a restore of them would lose or bring back.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::part::Part;
use super::proof::Proved;
use crate::say;

/// What is true of every restore. A drill cannot see it in the backups.
const ALWAYS: &str = "A restore of all nodes from these backups would forget what happened since they were made:
  * Keys and versions that were made since are lost.
  * Keys that were deleted since are back.
  * Versions that were deactivated or declared compromised since are active again.
  * Blocks that were spent since do not count: budgets are less strict by them.
  * Rules for clients are as they were. Approvals that were spent since can be spent again.
The other nodes refuse a restored node until their operators readmit it, because they know that it has forgotten.
Session keys and material are in no backup.";

/// A key of the real cluster, as `key list --json` prints it.
#[derive(Deserialize)]
pub struct RealKey {
    name: String,
    version: u32,
    id: String,
    state: String,
    check_value: String,
}

/// What happened in the real cluster since the backups.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Since {
    /// Keys and versions that a restore would lose.
    pub made: Vec<String>,
    /// Keys and versions that a restore would bring back.
    pub deleted: Vec<String>,
    /// Versions whose state a restore would undo.
    pub changed: Vec<String>,
    /// Keys whose recorded check value is not that of the real cluster.
    pub different: Vec<String>,
}

/// Reads the keys of the real cluster.
pub fn read(file: &Path) -> Result<Vec<RealKey>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what `polyclave key list --json` prints; write it anew at the real cluster",
            file.display()
        )
    })
}

impl Since {
    /// Compares the keys of a drill with those of the real cluster.
    pub fn between(drill: &[Proved], real: &[RealKey]) -> Since {
        let mut since = Since::default();
        for key in real {
            let named = format!("{} version {}", key.name, key.version);
            match drill.iter().find(|one| one.id == key.id) {
                None => since.made.push(named),
                Some(one) if one.check_value != key.check_value => since.different.push(named),
                // A drill says more than the state of an expired key.
                Some(one) if !one.state.starts_with(&key.state) && one.state != "expired" => {
                    since.changed.push(format!("{named}: {} in the backups, now {}", one.state, key.state));
                }
                Some(_) => {}
            }
        }
        let gone = drill.iter().filter(|one| real.iter().all(|key| key.id != one.id));
        since.deleted = gone.map(|one| format!("{} version {}", one.name, one.version)).collect();
        since
    }
}

/// Prints what is known of a backup.
pub fn tell_part(part: &Part) {
    let Part { node, backup, keys, blocks_spent, .. } = part;
    let unknown = || "an unknown time".to_owned();
    say!(
        "{node}: {}, made between {} (the last line of its audit log) and {} (the time of the file)",
        backup.display(),
        part.made_after.clone().unwrap_or_else(unknown),
        part.made_before.clone().unwrap_or_else(unknown)
    );
    say!("  {keys} keys and versions; {blocks_spent} blocks of budgets were spent by then");
    match (&part.common_secrets, &part.secrets_since) {
        (Some(id), Some(since)) => {
            say!("  common secrets {id}, since {since}: all backups of a drill need the same")
        }
        (Some(id), None) => say!("  common secrets {id}: all backups of a drill need the same"),
        (None, _) => say!("  NO COMMON SECRETS: the node had not met the others yet"),
    }
    if let Some(reason) = &part.quarantine {
        say!("  QUARANTINE: {reason}. A restored node computes nothing either");
    }
}

/// Prints what a restore would lose or bring back.
pub fn tell(since: Option<&Since>) {
    say!("");
    say!("{ALWAYS}");
    let Some(Since { made, deleted, changed, different }) = since else {
        say!(
            "Which keys these are, only the real cluster knows: give --compare what `polyclave key list --json` prints there."
        );
        return;
    };
    for (what, keys) in [
        ("LOST: made since the backups", made),
        ("BACK: deleted since the backups", deleted),
        ("UNDONE: changed since the backups", changed),
        ("ANOTHER KEY: its check value differs", different),
    ] {
        keys.iter().for_each(|key| say!("{what}: {key}"));
    }
    if *since.unwrap_or(&Since::default()) == Since::default() {
        say!("The backups have the keys that the real cluster listed, and no others.");
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::Outcome;
    use super::*;

    fn drill(id: &str, state: &str, check_value: &str) -> Proved {
        Proved {
            name: "k".into(),
            version: 1,
            id: id.into(),
            state: state.into(),
            check_value: check_value.into(),
            nodes: vec!["alpha".into()],
            outcome: Outcome::Proved,
            why: None,
        }
    }

    fn real(id: &str, state: &str, check_value: &str) -> RealKey {
        RealKey {
            name: "k".into(),
            version: 1,
            id: id.into(),
            state: state.into(),
            check_value: check_value.into(),
        }
    }

    #[test]
    fn what_a_restore_would_lose_bring_back_and_undo_is_named() {
        let in_backups = [
            drill("1", "active", "aa"),
            drill("2", "active", "bb"),
            drill("3", "active", "cc"),
            drill("4", "active", "dd"),
        ];
        let now = [
            real("1", "active", "aa"),
            real("2", "compromised", "bb"),
            real("4", "active", "ee"),
            real("5", "active", "ff"),
        ];
        let one = |text: &str| vec![text.to_owned()];
        assert_eq!(
            Since::between(&in_backups, &now),
            Since {
                made: one("k version 1"),
                deleted: one("k version 1"),
                changed: one("k version 1: active in the backups, now compromised"),
                different: one("k version 1"),
            }
        );
        assert_eq!(Since::between(&in_backups[..1], &now[..1]), Since::default());
    }
}
