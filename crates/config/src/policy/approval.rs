//! Which operations need the approval of several people, and whether they have it.
//!
//! Every node decides by its own rules. It counts approvers, not signatures: each `[[approver]]` once, by the certificate that the rules name
//! now. So who was removed, or has another certificate since, does not count.

use polyclave_transport::CertificateDer;
use polyclave_transport::wire::{Approval, Right};
use serde::{Deserialize, Serialize};

use super::judge::fits;
use super::{Asked, ClientPolicy};
use crate::text;

/// Somebody who can approve operations (`[[approver]]`). The certificate is that of a card, as clients have them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The approver's name.
    pub name: String,
    /// The certificate under whose key the approver signs.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
}

/// What an operator does at a node's own directory, and what can need approval there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeOperation {
    /// A running node takes changed rules.
    Policy,
}

impl std::fmt::Display for NodeOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NodeOperation::Policy => "policy",
        })
    }
}

/// What needs approval, and how much (`[[approval]]`). An operation that several of these cover needs all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// Its name.
    pub name: String,
    /// Requests of clients that need one of these rights ..
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rights: Vec<Right>,
    /// .. for a key of such a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What the node's operator does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node: Vec<NodeOperation>,
    /// How many approvers it takes.
    pub need: usize,
    /// Which approvers count.
    pub of: Vec<String>,
    /// Whether the client that asks counts if it is one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_counts: bool,
}

impl ClientPolicy {
    /// What this request of a client needs.
    pub fn approvals_for(&self, asked: &[Asked]) -> Vec<&ApprovalRule> {
        let covers = |rule: &&ApprovalRule| {
            asked.iter().any(|asked| rule.rights.contains(&asked.right) && fits(&rule.keys, &asked.key))
        };
        self.approvals.iter().filter(covers).collect()
    }

    /// What this operation at the node needs.
    pub fn approvals_for_node(&self, operation: NodeOperation) -> Vec<&ApprovalRule> {
        self.approvals.iter().filter(|rule| rule.node.contains(&operation)).collect()
    }

    /// The names of the approvers who have signed, if they are enough for all of some rules; otherwise what is missing.
    pub fn approvers_of(
        &self,
        approval: &Approval,
        rules: &[&ApprovalRule],
        requester: Option<&CertificateDer<'_>>,
    ) -> Result<Vec<&str>, String> {
        let signed: Vec<&Approver> =
            self.approvers.iter().filter(|approver| approval.is_signed_by(&approver.certificate)).collect();
        let is_requester = |approver: &Approver| requester.is_some_and(|r| *r == approver.certificate);
        let mut all: Vec<&str> = Vec::new();
        for rule in rules {
            let may = |approver: &&&Approver| {
                rule.of.contains(&approver.name) && (rule.requester_counts || !is_requester(approver))
            };
            let names: Vec<&str> = signed.iter().filter(may).map(|approver| approver.name.as_str()).collect();
            if names.len() < rule.need {
                let have = if names.is_empty() { "nobody".into() } else { names.join(", ") };
                let not_counted = approval.signatures.len().saturating_sub(names.len());
                let others = match not_counted {
                    0 => String::new(),
                    n => format!(
                        "; {n} further signatures do not count here (altered, of the one who asks, or of no approver with this certificate)"
                    ),
                };
                return Err(format!(
                    "{} (approval {}), and {have} has signed{others}",
                    rule.told(),
                    rule.name
                ));
            }
            all.extend(names);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

impl ApprovalRule {
    /// What it takes, for people.
    pub fn told(&self) -> String {
        format!("{} of {} must approve", self.need, self.of.join(", "))
    }
}
