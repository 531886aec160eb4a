//! How changed rules come into force: at once, or only with approval if the rules in force want that.
//!
//! An operator who controls the machine controls its files and its program. So approval protects against
//! changes by mistake, and by somebody who can write the node's directory and nothing else; see
//! docs/security/service-people.md.

use polyclave_api::Subject;
use polyclave_config::{ClientPolicy, NodeDir, NodeOperation};
use polyclave_protocol::{Error, versions};
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

/// Takes the rules that the first worker has in force. If this program cannot read them, this worker serves
/// nobody: it does not know whom the operator has just excluded.
pub(crate) fn follow(rules: &Rules, store: &Store) {
    let noted = match store.noted_policy() {
        Ok(noted) => noted,
        Err(e) => {
            return tracing::error!(error = %e, "the rules for clients cannot be read; the previous ones stay in force");
        }
    };
    match noted.map(|noted| read(&noted)).transpose() {
        Ok(Some(policy)) if *rules.policy() != policy => rules.take(policy),
        Ok(_) => rules.are_known(),
        Err(why) => {
            tracing::error!(why, "this worker serves nobody");
            rules.are_unknown(why);
        }
    }
}

/// The rules that another worker has put into force.
fn read(noted: &str) -> Result<ClientPolicy, String> {
    ClientPolicy::parse(noted).map_err(|e| {
        format!(
            "the first worker of this node has rules for clients in force that this worker's program ({}) cannot read: {e}. Run the release of \
             the first worker here, too",
            versions::release()
        )
    })
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
    if let Some(noted) = noted.as_ref().filter(|_| dir.settings().worker > 0) {
        return read(noted).map_err(Error::System);
    }
    // Rules of another version cannot be read any more.
    let Some(before) = noted.and_then(|noted| ClientPolicy::parse(&noted).ok()) else { return Ok(policy) };
    // The node was killed between the approval and the log.
    let approved_before = store.approved_policy().map_err(system)? == Some(policy.digest());
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use polyclave_client::Client;
    use polyclave_config::{ClientDir, NodeDir};
    use polyclave_store::Secret;

    use super::*;
    use crate::Running;

    /// Rules of a later release.
    const LATER: &str = "[[herald]]\nname = \"h\"\n";

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_worker_that_cannot_read_the_rules_in_force_serves_nobody_and_says_which_release_it_needs() {
        let dir = tempfile::tempdir().expect("a directory");
        let local = crate::local::create(&dir.path().join("cluster"), "shamir", 3, 1).expect("made");
        let node = |path| Running::start(NodeDir::open(path).expect("its directory")).expect("it starts");
        let nodes: Vec<Running> = local.nodes.iter().map(|path| node(path)).collect();
        until("the nodes are ready", || nodes.iter().all(Running::is_ready));
        let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
        client.keys().expect("served");

        let (rules, store) = (&nodes[1].service.rules, &nodes[1].store);
        let known = store.noted_policy().expect("read").expect("noted");
        store.note_policy(LATER).expect("noted");
        follow(rules, store);
        let why = nodes[1].why_not_ready().expect("not ready");
        assert!(why.contains("herald") && why.contains(versions::release()), "{why}");
        // Also on connections that there are.
        let told = |client: &Client| {
            let second = client.status().into_iter().nth(1).expect("three nodes").1;
            second.err().map_or(String::new(), |e| e.to_string())
        };
        assert!(told(&client).contains("cannot read"), "{}", told(&client));

        store.note_policy(&known).expect("noted");
        follow(rules, store);
        assert!(nodes[1].is_ready());
        assert_eq!(told(&client), "");
    }

    #[test]
    fn a_worker_does_not_start_with_rules_that_it_cannot_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let local = crate::local::create(&dir.path().join("cluster"), "shamir", 3, 1).expect("made");
        let first = NodeDir::open(&local.nodes[0]).expect("its directory");
        let (secret, cluster) = (Secret::from_bytes(*first.secret().expect("a secret")), [0; 16]);
        let store = Store::of_or_new(&first, &secret).expect("a store");
        // A directory like that of a further worker.
        let path = local.nodes[0].join("node.toml");
        let text = std::fs::read_to_string(&path).expect("read");
        let (shared, number) = ("store = \"postgresql://polyclave@localhost/polyclave\"", "worker = 1");
        std::fs::write(&path, format!("{shared}\n{number}\n{text}")).expect("written");
        let further = NodeDir::open(&local.nodes[0]).expect("its directory");
        let policy = further.policy().expect("its rules");
        assert_eq!(at_start(&further, &store, cluster).expect("nothing is noted yet"), policy);
        store.note_policy(LATER).expect("noted");
        let why = at_start(&further, &store, cluster).expect_err("refused").to_string();
        assert!(why.contains("herald") && why.contains("Run the release"), "{why}");
        assert_eq!(at_start(&first, &store, cluster).expect("the first one has the file"), policy);
    }
}
