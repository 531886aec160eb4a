//! `clients.toml`: what each client may do at this node. A client that is not in it may do nothing.
//!
//! A `[[client]]` has a certificate, and what it may do at any time. An `[[authority]]` signs certificates of
//! clients, and has `[[authority.client]]`: which identities in these may do what. A `[[rule]]` allows some
//! clients or groups more, under conditions (modes, times, limits of requests and blocks), or forbids
//! something. The file of a version without rules keeps its meaning.

mod approval;
mod asker;
mod authority;
mod check;
mod judge;
mod pattern;
mod rule;
mod succeed;
#[cfg(test)]
mod tests;
mod times;

use std::path::Path;

use polyclave_api::Right;
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use check::{Kind, Wrong};

use crate::{ClientCard, Error, Result, certificate_fingerprint, private, text};

pub use approval::{ApprovalRule, Approver, ApproverGroup, NodeOperation, Quorum};
pub use asker::{Asker, Entry};
pub use authority::{Authority, AuthorityClient};
pub(crate) use judge::fits;
pub use judge::{Grant, Judgement, patterns_overlap};
pub(crate) use pattern::{check as check_pattern, matches};
pub use rule::{ClientRule, Group, Rule};
pub use times::{Day, Hours, Moment};

/// The rules of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientPolicy {
    #[serde(rename = "client", skip_serializing_if = "Vec::is_empty")]
    clients: Vec<ClientRule>,
    #[serde(rename = "authority", skip_serializing_if = "Vec::is_empty")]
    authorities: Vec<Authority>,
    #[serde(rename = "group", skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group>,
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Rule>,
    #[serde(rename = "approver", skip_serializing_if = "Vec::is_empty")]
    approvers: Vec<Approver>,
    #[serde(rename = "approver_group", skip_serializing_if = "Vec::is_empty")]
    approver_groups: Vec<ApproverGroup>,
    #[serde(rename = "approval", skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<ApprovalRule>,
}

/// The file, with the place of each entry.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Text {
    client: Vec<Spanned<ClientRule>>,
    authority: Vec<Spanned<Authority>>,
    group: Vec<Spanned<Group>>,
    rule: Vec<Spanned<Rule>>,
    approver: Vec<Spanned<Approver>>,
    approver_group: Vec<Spanned<ApproverGroup>>,
    approval: Vec<Spanned<ApprovalRule>>,
}

impl ClientPolicy {
    /// Reads rules. An error names the line, and the entry if it can be read.
    pub fn parse(text: &str) -> Result<ClientPolicy> {
        let entries: Text = text::parse(text)?;
        let mut starts: Vec<(Kind, usize)> = Vec::new();
        let policy = ClientPolicy {
            clients: placed(entries.client, Kind::Client, &mut starts),
            authorities: placed(entries.authority, Kind::Authority, &mut starts),
            groups: placed(entries.group, Kind::Group, &mut starts),
            rules: placed(entries.rule, Kind::Rule, &mut starts),
            approvers: placed(entries.approver, Kind::Approver, &mut starts),
            approver_groups: placed(entries.approver_group, Kind::ApproverGroup, &mut starts),
            approvals: placed(entries.approval, Kind::Approval, &mut starts),
        };
        policy.check().map_err(|(kind, number, error)| {
            let start =
                starts.iter().filter(|(of, _)| *of == kind).nth(number).map_or(0, |(_, start)| *start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
            Error::misuse(format!("line {line}, {}", policy.message((kind, number, error))))
        })?;
        Ok(policy)
    }

    /// Reads rules from a file. An empty file is an error: a full disk or an editor may leave one behind, and
    /// it would take all rights away.
    pub fn load(path: &Path) -> Result<ClientPolicy> {
        let text = private::read_public(path)?;
        if text.trim().is_empty() {
            let message = "the file is empty, so its rules are lost. Restore it. If no client is to have any right, write a comment into it";
            return Err(Error::misuse(message).in_file(path));
        }
        ClientPolicy::parse(&text).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The rules as text, as their file has them.
    pub fn to_text(&self) -> String {
        text::render("What which client may do at this node. Who is not here may do nothing.", self)
    }

    /// All clients.
    pub fn clients(&self) -> &[ClientRule] {
        &self.clients
    }

    /// All groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All rules with conditions.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Everybody who can approve.
    pub fn approvers(&self) -> &[Approver] {
        &self.approvers
    }

    /// All groups of approvers.
    pub fn approver_groups(&self) -> &[ApproverGroup] {
        &self.approver_groups
    }

    /// What needs approval.
    pub fn approvals(&self) -> &[ApprovalRule] {
        &self.approvals
    }

    /// A digest of the rules, which does not depend on how their file is laid out.
    pub fn digest(&self) -> [u8; 32] {
        blake3::derive_key("polyclave 2026 rules for clients", self.to_text().as_bytes())
    }

    /// The name of the client with this certificate.
    pub fn client_of(&self, certificate: &CertificateDer<'_>) -> Option<&str> {
        self.entry_of(certificate).map(|client| client.name.as_str())
    }

    /// The client with a name.
    pub fn client_named(&self, name: &str) -> Option<&ClientRule> {
        self.clients.iter().find(|client| client.name == name)
    }

    /// The certificates of all listed clients.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        self.clients.iter().flat_map(ClientRule::certificates).cloned().collect()
    }

    /// Gives a client these rights in its own entry, and no others there. It replaces what the entry had
    /// before, but not another certificate with its name. Rules with conditions stay.
    pub fn allow(&mut self, client: &ClientCard, rights: &[Right], keys: &[String]) -> Result<()> {
        self.refuse_other_certificate(client)?;
        self.replace(client, rights, keys)
    }

    /// Gives a client these rights, and replaces whatever certificate had this name.
    pub fn replace(&mut self, client: &ClientCard, rights: &[Right], keys: &[String]) -> Result<()> {
        let mut rights = rights.to_vec();
        rights.sort();
        rights.dedup();
        let (name, certificate) = (client.name.clone(), client.certificate.clone());
        let known = self.client_named(&name).filter(|known| known.certificate == certificate);
        let next = known.and_then(|known| known.next.clone());
        self.set_client(ClientRule { name, certificate, rights, keys: keys.to_vec(), next })
    }

    /// Adds an entry, or replaces the one of the client with its name.
    fn set_client(&mut self, entry: ClientRule) -> Result<()> {
        self.change(|policy| match policy.clients.iter_mut().find(|old| old.name == entry.name) {
            Some(old) => *old = entry,
            None => policy.clients.push(entry),
        })
    }

    /// Makes a client known. A client that is known already keeps its entry; `replace` says whether another
    /// certificate may take its name.
    pub fn know(&mut self, client: &ClientCard, replace: bool) -> Result<()> {
        if !replace {
            self.refuse_other_certificate(client)?;
        }
        let (rights, keys) = self
            .client_named(&client.name)
            .map_or((Vec::new(), Vec::new()), |known| (known.rights.clone(), known.keys.clone()));
        self.replace(client, &rights, &keys)
    }

    /// Adds a rule, or replaces the one with its name.
    pub fn set_rule(&mut self, rule: Rule) -> Result<()> {
        self.change(|policy| match policy.rules.iter_mut().find(|old| old.name == rule.name) {
            Some(old) => *old = rule,
            None => policy.rules.push(rule),
        })
    }

    /// Puts a client into a group, which is made if there is none of this name.
    pub fn join_group(&mut self, group: &str, client: &str) -> Result<()> {
        self.change(|policy| match policy.groups.iter_mut().find(|known| known.name == group) {
            Some(known) if known.clients.iter().any(|name| name == client) => {}
            Some(known) => known.clients.push(client.into()),
            None => policy.groups.push(Group { name: group.into(), clients: vec![client.into()] }),
        })
    }

    /// Adds an approver, or gives a known one another certificate.
    pub fn set_approver(&mut self, card: &ClientCard) -> Result<()> {
        let approver = Approver { name: card.name.clone(), certificate: card.certificate.clone() };
        self.change(|policy| match policy.approvers.iter_mut().find(|old| old.name == approver.name) {
            Some(old) => *old = approver,
            None => policy.approvers.push(approver),
        })
    }

    /// Puts an approver into a group, which is made if there is none of this name.
    pub fn join_approvers(&mut self, group: &str, approver: &str) -> Result<()> {
        self.change(|policy| match policy.approver_groups.iter_mut().find(|known| known.name == group) {
            Some(known) if known.approvers.iter().any(|name| name == approver) => {}
            Some(known) => known.approvers.push(approver.into()),
            None => policy
                .approver_groups
                .push(ApproverGroup { name: group.into(), approvers: vec![approver.into()] }),
        })
    }

    /// Adds what needs approval, or replaces the entry of this name.
    pub fn set_approval(&mut self, rule: ApprovalRule) -> Result<()> {
        self.change(|policy| match policy.approvals.iter_mut().find(|old| old.name == rule.name) {
            Some(old) => *old = rule,
            None => policy.approvals.push(rule),
        })
    }

    /// Takes all rights from a client. It leaves its groups, and rules that were for nobody else go with it.
    pub fn revoke(&mut self, name: &str) -> Result<()> {
        if self.client_named(name).is_none() && self.authority_client_named(name).is_none() {
            return Err(Error::misuse(format!("there is no client {name:?} here; nothing was changed")));
        }
        self.change(|policy| {
            policy.clients.retain(|client| client.name != name);
            let of_authorities = policy.authorities.iter_mut();
            of_authorities.for_each(|authority| authority.clients.retain(|client| client.name != name));
            policy.forget(name);
        })
    }

    /// Takes a client that is gone out of groups and rules.
    fn forget(&mut self, name: &str) {
        self.groups.iter_mut().for_each(|group| group.clients.retain(|client| client != name));
        self.rules.iter_mut().for_each(|rule| rule.clients.retain(|client| client != name));
        self.rules.retain(|rule| !rule.clients.is_empty() || !rule.groups.is_empty());
    }

    /// Changes a copy, and takes it only if it can stand.
    fn change(&mut self, change: impl FnOnce(&mut ClientPolicy)) -> Result<()> {
        let mut changed = self.clone();
        change(&mut changed);
        changed.check().map_err(|wrong| Error::misuse(changed.message(wrong)))?;
        *self = changed;
        Ok(())
    }

    fn refuse_other_certificate(&self, client: &ClientCard) -> Result<()> {
        let known = self.client_named(&client.name).filter(|known| known.certificate != client.certificate);
        let Some(known) = known else { return Ok(()) };
        Err(Error::misuse(format!(
            "{} is known here by another certificate; nothing was changed\n  known:       {}\n  this card's: {}\nIf it is the \
             same client with a new certificate, it should have been made with `client rotate`; else compare this with its owner, and \
             give --replace; then the old one may do nothing more. If it is another client, it takes another name",
            client.name,
            certificate_fingerprint(&known.certificate),
            certificate_fingerprint(&client.certificate)
        )))
    }

    fn entry_of(&self, certificate: &CertificateDer<'_>) -> Option<&ClientRule> {
        self.clients.iter().find(|client| client.is_known_by(certificate))
    }

    /// An error with the entry that it is about.
    fn message(&self, (kind, number, error): Wrong) -> String {
        format!("{}: {error}", self.name_of(kind, number))
    }
}

/// The entries without their places, which are noted.
fn placed<T>(entries: Vec<Spanned<T>>, kind: Kind, starts: &mut Vec<(Kind, usize)>) -> Vec<T> {
    let place = |entry: Spanned<T>| {
        starts.push((kind, entry.span().start));
        entry.into_inner()
    };
    entries.into_iter().map(place).collect()
}
