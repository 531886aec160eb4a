//! Which operations need the approval of several people, and whether they have it.
//!
//! Every node decides by its own rules. It counts approvers, not signatures: each `[[approver]]` once, by the
//! certificate that the rules name now. So an approver that was removed since, from the rules or from a
//! group, or that has another certificate now, does not count.

use std::collections::BTreeSet;

use polyclave_api::{Approval, Permission, Right};
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};

use super::ClientPolicy;
use super::judge::fits;
use crate::{is_signed_by, text};

/// Somebody who can approve operations (`[[approver]]`). The certificate is that of a card, as clients have
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The approver's name.
    pub name: String,
    /// The approver signs under the key of this certificate.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
}

/// Several approvers under one name (`[[approver_group]]`), which rules write with an `@` before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverGroup {
    /// Its name.
    pub name: String,
    /// The names of the approvers.
    pub approvers: Vec<String>,
}

/// What an operator does at a node's own directory, and what can need approval there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeOperation {
    /// A running node takes changed rules.
    Policy,
    /// All keys get fresh shares.
    Refresh,
    /// All keys move to other nodes.
    Reshare,
}

impl NodeOperation {
    /// All of them.
    pub const ALL: [NodeOperation; 3] =
        [NodeOperation::Policy, NodeOperation::Refresh, NodeOperation::Reshare];
}

impl std::fmt::Display for NodeOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NodeOperation::Policy => "policy",
            NodeOperation::Refresh => "refresh",
            NodeOperation::Reshare => "reshare",
        })
    }
}

/// What needs approval, and how much (`[[approval]]`). An operation that several of these cover needs all of
/// them.
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
    /// Which approvers count: names, or groups with an `@`.
    pub of: Vec<String>,
    /// Whether the client that asks counts if it is one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_counts: bool,
    /// Further approvers that it takes. An approver that is named in several parts counts in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and: Vec<Quorum>,
}

/// A number of approvers out of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// How many it takes.
    pub need: usize,
    /// The approvers that count: names, or groups with an `@`.
    pub of: Vec<String>,
}

impl ClientPolicy {
    /// What this request of a client needs.
    pub fn approvals_for(&self, asked: &[Permission]) -> Vec<&ApprovalRule> {
        let covers = |rule: &&ApprovalRule| {
            asked.iter().any(|asked| rule.rights.contains(&asked.right) && fits(&rule.keys, &asked.key))
        };
        self.approvals.iter().filter(covers).collect()
    }

    /// What this operation at the node needs.
    pub fn approvals_for_node(&self, operation: NodeOperation) -> Vec<&ApprovalRule> {
        self.approvals.iter().filter(|rule| rule.node.contains(&operation)).collect()
    }

    /// The names of the approvers that have signed, if they are enough for all `rules`. Otherwise the error
    /// says what is missing.
    pub fn approvers_of(
        &self,
        approval: &Approval,
        rules: &[&ApprovalRule],
        requester: Option<&CertificateDer<'_>>,
    ) -> Result<Vec<&str>, String> {
        let signed: Vec<&Approver> =
            self.approvers.iter().filter(|approver| is_signed_by(approval, &approver.certificate)).collect();
        let is_requester = |approver: &Approver| requester.is_some_and(|r| *r == approver.certificate);
        let mut all: Vec<&str> = Vec::new();
        let parts = rules.iter().flat_map(|rule| rule.quorums().into_iter().map(move |part| (rule, part)));
        for (rule, part) in parts {
            let named = self.named(&part.of);
            let may = |approver: &&&Approver| {
                named.contains(approver.name.as_str()) && (rule.requester_counts || !is_requester(approver))
            };
            let names: Vec<&str> = signed.iter().filter(may).map(|approver| approver.name.as_str()).collect();
            if names.len() < part.need {
                let have = if names.is_empty() { "nobody".into() } else { names.join(", ") };
                let not_counted = approval.signatures.len().saturating_sub(names.len());
                let others = match not_counted {
                    0 => String::new(),
                    n => format!(
                        "; {n} further signatures do not count here (altered, of the one who asks, or of no approver with this certificate)"
                    ),
                };
                let among =
                    if rule.and.is_empty() { String::new() } else { format!(" of {}", part.of.join(", ")) };
                return Err(format!(
                    "{} (approval {}), and{among} {have} has signed{others}",
                    rule.message(),
                    rule.name
                ));
            }
            all.extend(names);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// The approvers that a list names, each once.
    pub(super) fn named<'p>(&'p self, of: &'p [String]) -> BTreeSet<&'p str> {
        let group = |name: &str| self.approver_groups.iter().find(|group| group.name == name);
        let members = |name: &'p String| match name.strip_prefix('@') {
            Some(name) => group(name).map_or(&[][..], |group| &group.approvers[..]),
            None => std::slice::from_ref(name),
        };
        of.iter().flat_map(members).map(String::as_str).collect()
    }
}

impl ApprovalRule {
    /// What it takes: each part has to be there.
    pub fn quorums(&self) -> Vec<Quorum> {
        let first = Quorum { need: self.need, of: self.of.clone() };
        [first].into_iter().chain(self.and.iter().cloned()).collect()
    }

    /// What it takes, for people.
    pub fn message(&self) -> String {
        let part = |part: Quorum| format!("{} of {}", part.need, part.of.join(", "));
        format!("{} must approve", self.quorums().into_iter().map(part).collect::<Vec<_>>().join(" and "))
    }
}
