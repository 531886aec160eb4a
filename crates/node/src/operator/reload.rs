//! How changed rules come into force: at once, or only with approval if the rules in force want that.
//!
//! An operator who controls the machine controls its files and its program. So approval protects against
//! changes by mistake, and by somebody who can write the node's directory and nothing else; see
//! docs/security/service-people.md.

use polyclave_api::Subject;
use polyclave_config::{ClientPolicy, NodeDir, NodeOperation};
use polyclave_store::Store;

use crate::Result;
use crate::audit::Event;
use crate::clients::approvals::{Approvals, Approved};
use crate::clients::authorities::Changed;
use crate::clients::rules::Rules;
use crate::core::Core;
use crate::error::system;

/// Takes changed rules while the node runs, or says why not; then the rules in force stay.
pub(crate) fn take(core: &Core, dir: &NodeDir, policy: ClientPolicy) {
    if *core.rules.policy() == policy || !core.members.is_first_worker() {
        return;
    }
    match approve(&core.service.approvals(), dir, &policy) {
        Ok(by) => {
            core.rules.take(policy);
            if let Some(by) = by {
                let detail = format!("approved-by={by}");
                core.logbook.note(&Event { detail: &detail, ..Event::of_node("policy", "approved") });
            }
            // Now, as these rules may be replaced before the next look: what was in force for a moment is in
            // the log, too.
            log(core);
        }
        Err(why) => {
            tracing::error!(
                why,
                "the changed rules for clients are not taken; the previous ones stay in force"
            );
            core.logbook.note(&Event::of_node("policy", "refused"));
        }
    }
}

/// Takes the rules that the first worker has in force.
pub(crate) fn follow(core: &Core) {
    match core.store.noted_policy().map(|noted| noted.and_then(|noted| ClientPolicy::parse(&noted).ok())) {
        Ok(Some(policy)) if *core.rules.policy() != policy => core.rules.take(policy),
        Ok(_) => {}
        Err(e) => {
            tracing::error!(error = %e, "the rules for clients cannot be read; the previous ones stay in force")
        }
    }
}

/// Logs how the rules in force differ from those that were logged last.
pub(crate) fn log(core: &Core) {
    if !core.members.is_first_worker() {
        return;
    }
    if let Err(e) = core.rules.log(&core.logbook, &core.store) {
        tracing::error!(
            error = %e,
            "a change of the rules for clients could not be logged; this is tried again"
        );
    }
}

/// Reads the files of authorities that have changed, and logs what came into force.
pub(crate) fn read_authorities(core: &Core, dir: &NodeDir) {
    log_authorities(core, &core.rules.read_authorities(dir.path()));
}

/// Logs which certificates of authorities came into force.
pub(crate) fn log_authorities(core: &Core, changes: &[Changed]) {
    for Changed { authority, certificates } in changes {
        let count = certificates.len();
        tracing::info!(%authority, certificates = count, "the certificates of an authority came into force");
        let hashes: Vec<String> = certificates.iter().map(|hash| format!("blake3:{hash}")).collect();
        let detail = format!("authority={authority} certificates={}", hashes.join(","));
        core.logbook.note(&Event { detail: &detail, ..Event::of_node("authority", "in-force") });
    }
}

/// The rules with which a node starts: the rules of its file, if the rules that were in force last allow the
/// change. Otherwise the rules that were in force last. A worker that is not the first takes the rules in
/// force.
pub(crate) fn at_start(dir: &NodeDir, store: &Store, cluster: [u8; 16]) -> Result<ClientPolicy> {
    let policy = dir.policy().map_err(system)?;
    let noted = store.noted_policy().map_err(system)?;
    // Rules of another version cannot be read any more.
    let Some(before) = noted.and_then(|noted| ClientPolicy::parse(&noted).ok()) else { return Ok(policy) };
    // The node was killed between the approval and the log.
    let approved_before = store.approved_policy().map_err(system)? == Some(policy.digest());
    if dir.settings().worker > 0 {
        return Ok(before);
    }
    if before == policy || approved_before {
        return Ok(policy);
    }
    let in_force = Rules::new(before.clone());
    match approve(&Approvals { rules: &in_force, store, cluster }, dir, &policy) {
        Ok(_) => Ok(policy),
        Err(why) => {
            tracing::error!(
                why,
                "the rules for clients were changed and are not taken; the previous ones stay in force"
            );
            Ok(before)
        }
    }
}

/// Spends the approval of new rules, if the rules in force want one. Returns the names of those who approved.
fn approve(
    approvals: &Approvals<'_>,
    dir: &NodeDir,
    policy: &ClientPolicy,
) -> Result<Option<String>, String> {
    if approvals.rules.policy().approvals_for_node(NodeOperation::Policy).is_empty() {
        return Ok(None);
    }
    let approval = dir.policy_approval().map_err(|e| e.to_string())?;
    let subject = Subject::Policy { digest: policy.digest() };
    let checked = approvals.check_node(NodeOperation::Policy, &subject, approval.as_ref());
    let Some(approved) = checked.map_err(|refusal| refusal.message)? else { return Ok(None) };
    approvals.spend_for_policy(&approved, policy.digest()).map_err(|refusal| refusal.message)?;
    let Approved { by, .. } = approved;
    Ok(Some(by.join(",")))
}
