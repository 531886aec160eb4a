//! Approvals: this node checks by itself whether enough of the approvers in its own rules have signed what a
//! client asks.
//!
//! # What holds
//!
//! A node that needs approval for an operation runs it only if it holds signatures of enough approvers, by
//! its own rules and its own clock, over exactly this operation, this client, this cluster and these keys (by
//! id). The nonce is spent before the operation: durably, at every node that needs approval, and remembered
//! by peers. Then all serving nodes tell each other that they have spent it, and only then does any of them
//! begin. So an approval has an effect at most once. If a node dies after that, the operation may be done
//! only in part or not at all, and the approval is spent: it has to be approved again.
//!
//! All nodes serve such a request, also one that a quorum could serve. Otherwise a client could use one
//! approval with several sets of nodes that have no node in common.
//!
//! Approvals protect against clients and against too few approvers. A node that does not follow the protocol
//! can ignore its rules, like every other rule. Only the protocol among the nodes limits what it can do
//! alone.

use polyclave_api::{
    About, Approval, KeyRef, NamedKey, Operation, Permission, Reason, Refusal, Request, Statement, Subject,
};
use polyclave_config::{Moment, NodeOperation};
use polyclave_store::{ApprovedReshare, KeyState, Store};
use polyclave_transport::CertificateDer;

use crate::clients::client::Client;
use crate::clients::rules::Rules;
use crate::error::of_store;

/// How far in the future an approval may end, in seconds.
const LONGEST: u64 = 31 * 24 * 60 * 60;

/// An approval that a node has checked, and not yet spent.
#[derive(Debug)]
pub(crate) struct Approved {
    nonce: [u8; 32],
    digest: [u8; 32],
    /// The last second in which it holds.
    not_after: u64,
    /// The names of the approvers that have signed, by this node's rules, for the audit log.
    pub(crate) by: Vec<String>,
}

/// Where approvals are checked.
pub(crate) struct Approvals<'n> {
    pub(crate) rules: &'n Rules,
    pub(crate) store: &'n Store,
    pub(crate) cluster: [u8; 16],
}

fn denied(message: String) -> Refusal {
    Refusal::new(Reason::Denied, message)
}

impl Approvals<'_> {
    /// Checks the approval of a request, if the rules want one for what it asks. It spends nothing.
    pub(crate) fn check(
        &self,
        client: &Client,
        request: &Request,
        asked: &[Permission],
        all_serve: bool,
    ) -> Result<Option<Approved>, Refusal> {
        let policy = self.rules.policy();
        let rules = policy.approvals_for(asked);
        let Some(first) = rules.first() else { return Ok(None) };
        let Some(approval) = &request.approval else {
            return Err(denied(format!(
                "this needs approval: {} (approval {}). Make a request for approval with --ask-approval FILE, have it signed with \
                 `polyclave approval sign`, and ask with --approval FILE",
                first.message(),
                first.name
            )));
        };
        let statement = self.read(approval)?;
        let Subject::Operation { requester, operation } = &statement.subject else {
            return Err(denied(
                "this approval is of something that an operator does, not of a client's request".into(),
            ));
        };
        if requester.as_slice() != client.bound() {
            return Err(denied(format!("this approval is for another client than {}", client.name)));
        }
        if **operation != request.operation {
            return Err(denied(
                "this approval is of another operation than the one that is asked for".into(),
            ));
        }
        self.compare_keys(operation, &statement.keys)?;
        let requester = CertificateDer::from(requester.as_slice());
        let by = policy.approvers_of(approval, &rules, Some(&requester)).map_err(denied)?;
        if !all_serve {
            let message = "an approved operation is served by all nodes, so that its approval is used once; ask all of them";
            return Err(Refusal::new(Reason::Unavailable, message));
        }
        let by = by.into_iter().map(str::to_owned).collect();
        Ok(Some(Approved::of(&statement, approval, by)))
    }

    /// Refuses an approval of other keys, or of other versions, than this node has where the operation names
    /// them. So an operation on the current version is not done once the key has a newer one, which the
    /// approvers have not seen.
    fn compare_keys(&self, operation: &Operation, approved: &[NamedKey]) -> Result<(), Refusal> {
        for KeyRef { name, about } in operation.describe().keys() {
            let versions =
                self.store.versions(name).and_then(|all| all.into_iter().collect::<Result<Vec<_>, _>>());
            let versions = versions.map_err(of_store)?;
            let is_it = |version: u32, id: [u8; 16]| match about {
                About::Version(number) => version == number,
                About::Id(wanted) => id == wanted,
                About::Current => true,
            };
            let mut fitting = versions.iter().filter(|(info, _)| is_it(info.version, info.id));
            let announced = fitting.clone().find(|(_, state)| *state == KeyState::Announced);
            let Some((here, _)) = announced.or_else(|| fitting.next()) else { continue };
            if approved.iter().any(|key| key.name == name && key.id == here.id) {
                continue;
            }
            let is_older =
                |key: &&NamedKey| key.name == name && versions.iter().any(|(info, _)| info.id == key.id);
            return Err(denied(match approved.iter().find(is_older) {
                Some(key) => format!(
                    "this approval is for version {} of the key '{name}', which has version {} now; ask for a new one",
                    key.version, here.version
                ),
                None => format!("this approval is for another key than the one that is named '{name}' now"),
            }));
        }
        Ok(())
    }

    /// Checks the approval of what an operator does at a node, if the rules in force want one. `subject` is
    /// what has to be approved.
    pub(crate) fn check_node(
        &self,
        operation: NodeOperation,
        subject: &Subject,
        approval: Option<&Approval>,
    ) -> Result<Option<Approved>, Refusal> {
        let policy = self.rules.policy();
        let rules = policy.approvals_for_node(operation);
        let Some(first) = rules.first() else { return Ok(None) };
        let Some(approval) = approval else {
            return Err(denied(format!(
                "this needs approval: {} (approval {}). Make a request with `polyclave approval request {operation}`, have it signed with \
                 `polyclave approval sign`, and give it with --approval FILE",
                first.message(),
                first.name
            )));
        };
        let statement = self.read(approval)?;
        if let Some(why) = why_of_another(&statement.subject, subject) {
            return Err(denied(why));
        }
        let by = policy.approvers_of(approval, &rules, None).map_err(denied)?;
        let by = by.into_iter().map(str::to_owned).collect();
        Ok(Some(Approved::of(&statement, approval, by)))
    }

    /// Reads a statement that is of this cluster, within its time, and not spent.
    fn read(&self, approval: &Approval) -> Result<Statement, Refusal> {
        let malformed = |e: polyclave_protocol::Error| Refusal::new(Reason::Malformed, e.to_string());
        approval.check_size().map_err(malformed)?;
        let statement = Statement::decode(&approval.statement).map_err(malformed)?;
        if statement.cluster != self.cluster {
            return Err(denied("this approval is of another cluster".into()));
        }
        let (now, end) = (Moment::now(), Moment::from_seconds(statement.not_after));
        if now > end {
            return Err(denied(format!(
                "this approval ended at {end}; by this node's clock it is {now}. Ask for a new one"
            )));
        }
        if statement.not_after - now.seconds() > LONGEST {
            return Err(denied(format!(
                "this approval would hold until {end}, and 31 days from now are the most"
            )));
        }
        if let Some(at) = self.store.approval_spent(statement.nonce).map_err(of_store)? {
            return Err(spent(at));
        }
        Ok(statement)
    }

    /// Spends an approval, durably. The operation may run only after that.
    pub(crate) fn spend(&self, approved: &Approved) -> Result<(), Refusal> {
        let spent_before =
            self.store.spend_approval(approved.nonce, approved.digest, Moment::now().seconds());
        spent_before.map_err(of_store)?.map_or(Ok(()), |at| Err(spent(at)))
    }

    /// Spends the approval of a refresh, and orders it in the same write.
    pub(crate) fn spend_for_refresh(
        &self,
        approved: &Approved,
        despite_failures: bool,
    ) -> Result<(), Refusal> {
        let now = Moment::now().seconds();
        let spent_before =
            self.store.spend_for_refresh(approved.nonce, approved.digest, now, despite_failures);
        spent_before.map_err(of_store)?.map_or(Ok(()), |at| Err(spent(at)))
    }

    /// Spends the approval of a move of all keys, and remembers in the same write that this move is approved,
    /// as long as the approval holds: it may have to be begun several times until all nodes have taken part.
    pub(crate) fn spend_for_reshare(
        &self,
        approved: &Approved,
        (from, to): ([u8; 32], [u8; 32]),
    ) -> Result<(), Refusal> {
        let (now, reshare) =
            (Moment::now().seconds(), ApprovedReshare { from, to, until: approved.not_after });
        let spent_before = self.store.spend_for_reshare(approved.nonce, approved.digest, now, &reshare);
        spent_before.map_err(of_store)?.map_or(Ok(()), |at| Err(spent(at)))
    }

    /// Spends the approval of new rules, and remembers in the same write that these rules are approved.
    pub(crate) fn spend_for_policy(&self, approved: &Approved, policy: [u8; 32]) -> Result<(), Refusal> {
        let now = Moment::now().seconds();
        let spent_before = self.store.spend_for_policy(approved.nonce, approved.digest, now, policy);
        spent_before.map_err(of_store)?.map_or(Ok(()), |at| Err(spent(at)))
    }
}

impl Approved {
    fn of(statement: &Statement, approval: &Approval, by: Vec<String>) -> Approved {
        Approved { nonce: statement.nonce, digest: approval.digest(), not_after: statement.not_after, by }
    }
}

/// Why what is approved is not what an operator wants to do; `None` if it is.
fn why_of_another(approved: &Subject, wanted: &Subject) -> Option<String> {
    let message = match (approved, wanted) {
        _ if approved == wanted => return None,
        (Subject::Policy { .. }, Subject::Policy { .. }) => {
            "this approval is of other rules: their digest is another"
        }
        (Subject::Reshare { .. }, Subject::Reshare { .. }) => {
            "this approval is of a reshare between other cluster files: compare their fingerprints with `polyclave approval show`"
        }
        (Subject::Refresh { secrets: of, .. }, Subject::Refresh { secrets, .. }) if of != secrets => {
            "this approval is of a refresh of other common secrets than those in use: there was a refresh since, or it is of another cluster"
        }
        (Subject::Refresh { .. }, Subject::Refresh { despite_failures: true, .. }) => {
            "this approval is of a refresh without --despite-failed-checks"
        }
        (Subject::Refresh { .. }, Subject::Refresh { .. }) => {
            "this approval is of a refresh with --despite-failed-checks; order it so, or have one approved without"
        }
        _ => "this approval is of something else",
    };
    Some(message.into())
}

fn spent(at: u64) -> Refusal {
    let at = Moment::from_seconds(at);
    denied(format!(
        "this approval was used at {at}, and counts once, also if the operation was not completed; ask for a new one"
    ))
}
