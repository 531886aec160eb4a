//! Whether what the workers of a node have logged fits what is in their store: a checker for trials, in which
//! nodes are killed.
//!
//! Each worker writes an audit log of its own. Its line about a completed request says how many blocks the
//! request took of a key. The store says how many blocks of each account count as spent, those that were
//! leased and not used included. So the store counts at least as many blocks as the logs; otherwise blocks
//! were spent twice. And if any worker has logged that a key was made, the key is in the store, unless a
//! deletion has begun.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use polyclave_config::NodeDir;
use polyclave_store::{Secret, Store};
use serde_json::Value;

use crate::Result;
use crate::audit::{Verified, open_files, verify};
use crate::error::system;

/// Operations that compute blocks of the key that their line names.
const USES: [&str; 4] = ["encrypt", "decrypt", "mac", "tokenize"];

/// What was found at one node.
#[derive(Debug, Default)]
pub struct Balance {
    /// By worker: what its log shows of itself. Its lines are in order, and none was changed.
    pub workers: Vec<Verified>,
    /// Keys that a log says were made, and that no log says were deleted.
    pub made: usize,
    /// Those of them that are not in the store.
    pub lost: Vec<String>,
    /// Blocks of keys that were never deleted, as the logs of all workers have them together.
    pub logged: u64,
    /// The same as the store counts them.
    pub counted: u64,
    /// Keys with fewer blocks counted than logged.
    pub overspent: Vec<String>,
}

impl Balance {
    /// Whether nothing is lost, and nothing was spent twice.
    pub fn is_right(&self) -> bool {
        self.lost.is_empty() && self.overspent.is_empty()
    }
}

/// What the logs say of one name of a key.
#[derive(Default)]
struct Logged {
    made: bool,
    deleted: bool,
    blocks: u64,
}

/// Compares the logs and the store of a node while no worker of it runs. `workers`: the directories of its
/// workers, the first worker's first. An audit log that was tampered with is an error.
pub fn balance(workers: &[NodeDir]) -> Result<Balance> {
    let mut found = Balance::default();
    let mut logged: BTreeMap<String, Logged> = BTreeMap::new();
    let Some(first) = workers.first() else { return Ok(found) };
    let store = Store::alone(first, &Secret::from(first.secret().map_err(system)?)).map_err(system)?;
    for dir in workers {
        let noted = store.audit_head_of(dir.settings().worker).map_err(system)?;
        found.workers.push(verify(&dir.audit_path(), noted).map_err(system)?);
        read(dir, &mut logged)?;
    }
    let spent = store.spent_of_all().map_err(system)?;
    let mut accounts: BTreeMap<String, BTreeSet<[u8; 16]>> = BTreeMap::new();
    let mut payers: BTreeMap<[u8; 16], BTreeSet<String>> = BTreeMap::new();
    for info in store.keys().map_err(system)? {
        let name = info.properties.name;
        accounts.entry(name.clone()).or_default().insert(info.account);
        payers.entry(info.account).or_default().insert(name);
    }
    for (name, of_name) in logged.into_iter().filter(|(_, of_name)| !of_name.deleted) {
        let Some(accounts) = accounts.get(&name) else {
            if of_name.made {
                found.lost.push(name);
            }
            continue;
        };
        found.made += usize::from(of_name.made);
        // If several keys pay from one account, each of them has only a part of it.
        if accounts.iter().any(|account| payers[account].len() > 1) {
            continue;
        }
        let counted = accounts.iter().filter_map(|account| spent.get(account)).sum();
        found.logged += of_name.blocks;
        found.counted += counted;
        if of_name.blocks > counted {
            found.overspent.push(name);
        }
    }
    Ok(found)
}

fn read(dir: &NodeDir, logged: &mut BTreeMap<String, Logged>) -> Result<()> {
    for (_, file) in open_files(&dir.audit_path()).map_err(system)? {
        for line in BufReader::new(file).lines() {
            let line: Value = serde_json::from_str(&line.map_err(system)?).map_err(system)?;
            let text = |field: &str| line[field].as_str().unwrap_or_default();
            let (key, operation, outcome) = (text("key"), text("operation"), text("outcome"));
            if key.is_empty() {
                continue;
            }
            let of_name = logged.entry(key.to_owned()).or_default();
            match operation {
                "generate" => of_name.made |= outcome == "done",
                // It may have been carried out even if the request failed.
                "delete" => of_name.deleted = true,
                _ if USES.contains(&operation) => {
                    of_name.blocks += line["blocks"].as_u64().unwrap_or_default();
                }
                _ => {}
            }
        }
    }
    Ok(())
}
