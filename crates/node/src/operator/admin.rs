//! Orders of an operator to a node: report its state, write a backup, readmit a peer, refresh all shares.
//!
//! The store belongs to the running node alone. So a running node answers on a Unix socket in its directory:
//! one line of JSON for the order, one for the answer. Only the owner of the directory can reach it, and no
//! order or answer contains a secret: secrets are named by their files. If no node runs, [`order`] opens the
//! store itself.

mod features;
mod socket;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyclave_api::{Refusal, Subject};
use polyclave_config::{Cluster, NodeDir, NodeOperation, parse_approval};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_store::{Secret, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::Result;
pub use crate::audit::logbook::renew_audit;
use crate::audit::logbook::{note_end, open_log};
use crate::audit::{BEGUN, Event, Gap};
use crate::clients::approvals::Approvals;
use crate::clients::rules::Rules;
use crate::core::Core;
use crate::error::system;
use crate::material::quarantine::refuse_guessed;
use crate::material::refresh;
use crate::operator::reload;
pub use features::FeatureState;
pub(crate) use socket::Socket;
use socket::ask;
pub use status::{Latency, PeerProgram, Status};

/// An order of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Instruction {
    /// Report the status of the node.
    Status,
    /// Write a backup to a new file, sealed under the key in another file.
    Backup {
        /// The backup file; an absolute path.
        file: PathBuf,
        /// The file with the key; an absolute path.
        key_file: PathBuf,
    },
    /// Accept a peer again that was restored from a backup.
    Readmit {
        /// Its name.
        node: String,
    },
    /// Give all stored keys fresh shares under fresh common secrets, once the operators of all nodes have
    /// ordered it.
    Rotate {
        /// The approval, in the form of its file, if the rules want one.
        #[serde(default)]
        approval: Option<String>,
        /// Also if a cheater may know the MAC key in use, after many failed checks: the operator accepts the
        /// risk.
        #[serde(default)]
        despite_failures: bool,
    },
    /// Report where the audit log ends, as the store has it.
    AuditHead,
    /// Report which features there are, or switch one on before.
    Features {
        /// The feature to switch on.
        #[serde(default)]
        switch_on: Option<String>,
    },
}

impl Instruction {
    fn is_refresh(&self) -> bool {
        matches!(self, Instruction::Rotate { .. })
    }
}

/// The node's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The answer to `Status`.
    Status(Box<Status>),
    /// The order was carried out.
    Done,
    /// The answer to `AuditHead`.
    AuditHead {
        /// Number and hash of the last line; `None` if nothing was noted.
        head: Option<(u64, [u8; 32])>,
        /// The time in which no line could be written, if it is not over.
        gap: Option<Gap>,
    },
    /// The answer to `Features`.
    Features {
        /// Those that the program knows.
        features: Vec<FeatureState>,
    },
    /// The order was not carried out.
    Failed {
        /// The reason.
        error: String,
    },
}

/// Gives an order to the node of a directory: to the running node, or, for orders that need only the store,
/// by opening the store. `None` if no node runs and the order needs one.
pub fn order(dir: &NodeDir, order: &Instruction) -> Result<Option<Answer>> {
    if let Some(answer) = ask(dir.path(), order)? {
        return match answer {
            Answer::Failed { error } => Err(Error::System(error)),
            answer => Ok(Some(answer)),
        };
    }
    match order {
        Instruction::Status => return Ok(None),
        Instruction::Features { switch_on: Some(name) } => return Err(features::refuse_alone(name)),
        _ => {}
    }
    let cluster = dir.cluster().map_err(system)?;
    let has_mac_key = match order.is_refresh() {
        true => {
            let cluster =
                cluster.as_ref().ok_or_else(|| Error::misuse("this node belongs to no cluster yet"))?;
            let config = catalog::service(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
            refuse_without_mac_key(&config, order)?;
            config.has_mac_key()
        }
        false => false,
    };
    let store = Store::of(dir, &Secret::from(dir.secret().map_err(system)?)).map_err(system)?;
    let party = |name: &str| {
        cluster.as_ref().and_then(|cluster| cluster.party_named(name)).ok_or_else(|| unknown(name))
    };
    // The rules with which the node would start.
    let id = cluster.as_ref().map(Cluster::id).unwrap_or_default();
    let rules =
        Rules::new(if order.is_refresh() { reload::at_start(dir, &store, id)? } else { Default::default() });
    let approvals = Approvals { rules: &rules, store: &store, cluster: id };
    let Some(operation) = operation(order).filter(|_| dir.settings().audit.enabled) else {
        return carry_out(&approvals, dir, (order, has_mac_key), party).map(|(done, _)| Some(done));
    };
    // Logged before the order is carried out, so that nothing happens without a line in the log.
    let log = open_log(dir, &store)?;
    let (done, detail) = carry_out(&approvals, dir, (order, has_mac_key), party)?;
    log.append(&Event { detail: &detail, ..Event::of_node(operation, "done") }).map_err(system)?;
    note_end(&log, &store)?;
    Ok(Some(done))
}

/// The name of an order in the audit log; `None` for orders that change nothing.
fn operation(order: &Instruction) -> Option<&'static str> {
    match order {
        Instruction::Status | Instruction::AuditHead | Instruction::Features { switch_on: None } => None,
        Instruction::Features { .. } => Some("switch-on"),
        Instruction::Backup { .. } => Some("backup"),
        Instruction::Readmit { .. } => Some("readmit"),
        Instruction::Rotate { despite_failures: false, .. } => Some("rotate"),
        Instruction::Rotate { despite_failures: true, .. } => Some("rotate-despite-failures"),
    }
}

/// The detail of an order in the audit log.
fn described(order: &Instruction) -> String {
    match order {
        Instruction::Readmit { node } => format!("node={node}"),
        Instruction::Features { switch_on: Some(name) } => format!("feature={name}"),
        _ => String::new(),
    }
}

fn unknown(name: &str) -> Error {
    Error::misuse(format!("the cluster has no node '{name}'"))
}

/// Carries out the orders that need only the store, the rules, and whether there is a MAC key. Returns also
/// the detail for the audit log.
fn carry_out(
    approvals: &Approvals<'_>,
    dir: &NodeDir,
    (order, has_mac_key): (&Instruction, bool),
    party: impl Fn(&str) -> Result<polyclave_protocol::Party>,
) -> Result<(Answer, String)> {
    let store = approvals.store;
    match order {
        Instruction::Status => return Err(Error::System("this node has no status".into())),
        Instruction::Backup { file, key_file } => {
            let key = Secret::load_file(key_file).map_err(system)?;
            store.backup(dir, file, &key).map_err(system)?;
        }
        Instruction::Readmit { node } => store.readmit(party(node)?).map_err(system)?,
        Instruction::Rotate { approval, despite_failures } => {
            if !despite_failures {
                refuse_guessed(store, has_mac_key)?;
            }
            return want_refresh(approvals, approval.as_deref(), *despite_failures);
        }
        Instruction::AuditHead => {
            let (head, gap) = (store.audit_head().map_err(system)?, store.audit_gap().map_err(system)?);
            return Ok((Answer::AuditHead { head, gap }, String::new()));
        }
        Instruction::Features { .. } => {
            return Ok((Answer::Features { features: features::list_alone(store)? }, String::new()));
        }
    }
    Ok((Answer::Done, described(order)))
}

/// Remembers that the operator wants a refresh. If the rules want approval of it, the approval is for exactly
/// these common secrets, and is spent in the same write. An order that stands already needs no further
/// approval.
fn want_refresh(
    approvals: &Approvals<'_>,
    approval: Option<&str>,
    despite: bool,
) -> Result<(Answer, String)> {
    let store = approvals.store;
    let stands =
        store.refresh_wanted().map_err(system)? && (!despite || store.guesses_accepted().map_err(system)?);
    if stands {
        return Ok((Answer::Done, String::new()));
    }
    let setup = store.setup().map_err(system)?.filter(|setup| setup.agreed);
    let secrets = setup.ok_or_else(|| system(StoreError::NoSetup))?.id;
    let approval = approval.map(parse_approval).transpose().map_err(system)?;
    let approval = approval.as_ref().map(|(approval, _)| approval);
    let subject = Subject::Refresh { secrets, despite_failures: despite };
    let text = |refusal: Refusal| Error::System(refusal.message);
    match approvals.check_node(NodeOperation::Refresh, &subject, approval).map_err(text)? {
        Some(approved) => {
            approvals.spend_for_refresh(&approved, despite).map_err(text)?;
            Ok((Answer::Done, format!("approved-by={}", approved.by.join(","))))
        }
        None if despite => {
            store.want_refresh_despite_guesses().map_err(system)?;
            Ok((Answer::Done, String::new()))
        }
        None => {
            store.want_refresh().map_err(system)?;
            Ok((Answer::Done, String::new()))
        }
    }
}

/// An error if a refresh is ordered despite failed checks, and the protocol has no MAC key under which checks
/// could fail.
fn refuse_without_mac_key(config: &AnyServiceConfig, order: &Instruction) -> Result<()> {
    if config.has_mac_key() || !matches!(order, Instruction::Rotate { despite_failures: true, .. }) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "under {} there is no MAC key, so no check of one has failed; order the refresh without that option",
        config.name()
    )))
}

fn obey(core: &Arc<Core>, dir: &Path, order: &Instruction) -> Result<Answer> {
    let logged = match order {
        Instruction::Status => return Ok(Answer::Status(Box::new(core.state()))),
        Instruction::Features { switch_on: None } => {
            return Ok(Answer::Features { features: features::list(core) });
        }
        Instruction::AuditHead => {
            core.logbook.settle(&mut None);
            None
        }
        order => operation(order),
    };
    let config = &core.service.config;
    refuse_without_mac_key(config, order)?;
    let detail = described(order);
    let event = Event { detail: &detail, ..Event::of_node(logged.unwrap_or_default(), BEGUN) };
    // The operator may want a backup because the disk is full.
    if matches!(order, Instruction::Readmit { .. } | Instruction::Features { .. }) || order.is_refresh() {
        core.logbook.admit(&event).map_err(|refusal| Error::System(refusal.message))?;
    }
    let party = |name: &str| core.members.cluster.party_named(name).ok_or_else(|| unknown(name));
    let approvals = core.service.approvals();
    let done = NodeDir::open(dir).map_err(system).and_then(|dir| match order {
        Instruction::Features { switch_on: Some(name) } => {
            features::switch_on(core, &dir, name)?;
            Ok((Answer::Features { features: features::list(core) }, detail.clone()))
        }
        order => carry_out(&approvals, &dir, (order, config.has_mac_key()), party),
    });
    if order.is_refresh() && done.is_ok() {
        refresh::load(&core.material)?;
    }
    if let Some(operation) = logged {
        let outcome = if done.is_ok() { "done" } else { "failed" };
        tracing::info!(operation, outcome, "an order of the operator");
        let detail = done.as_ref().map_or(&detail, |(_, detail)| detail);
        core.logbook.note(&Event { outcome, detail, ..event });
    }
    done.map(|(answer, _)| answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines_of_json_and_others_are_refused() {
        let order: Instruction = serde_json::from_str(r#"{"order":"readmit","node":"a"}"#).expect("an order");
        assert_eq!(order, Instruction::Readmit { node: "a".into() });
        let order: Instruction = serde_json::from_str(r#"{"order":"rotate"}"#).expect("an order");
        assert_eq!(order, Instruction::Rotate { approval: None, despite_failures: false });
        for wrong in
            [r#"{"order":"readmit"}"#, r#"{"order":"stop"}"#, r#"{"order":"readmit","node":"a","x":1}"#]
        {
            assert!(serde_json::from_str::<Instruction>(wrong).is_err(), "{wrong}");
        }
    }
}
