//! What rules must fulfil besides their form. An error names the entry, and its line if the rules come from a
//! text.

use std::collections::{HashMap, HashSet};

use super::{ClientPolicy, Quorum, pattern};
use crate::{Error, Result, check_name};

/// The most entries of each kind, and the most items of a list in an entry. Judging a request takes time in
/// proportion to the rules.
const MAX_CLIENTS: usize = 10_000;
const MAX_RULES: usize = 1_000;
const MAX_AUTHORITIES: usize = 16;
const MAX_ITEMS: usize = 1_000;
/// The most approvers: one signature is verified for each approver that signed.
const MAX_APPROVERS: usize = 100;

/// A kind of entries in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    Authority,
    Group,
    Rule,
    Approver,
    ApproverGroup,
    Approval,
}

/// An entry that cannot stand: its kind, its number from 0 on, and why.
pub(super) type Wrong = (Kind, usize, Error);
type Checked<T> = std::result::Result<T, Wrong>;

impl ClientPolicy {
    /// Checks all entries against each other.
    pub(super) fn check(&self) -> Checked<()> {
        self.check_counts()?;
        let mut names = self.check_clients()?;
        self.check_authorities(&mut names)?;
        let groups = self.check_groups(&names)?;
        self.check_rules(&names, &groups)?;
        self.check_approvals()
    }

    fn check_counts(&self) -> Checked<()> {
        let counts = [
            (Kind::Client, "clients", self.clients.len(), MAX_CLIENTS),
            (Kind::Authority, "authorities", self.authorities.len(), MAX_AUTHORITIES),
            (Kind::Group, "groups", self.groups.len(), MAX_RULES),
            (Kind::Rule, "rules", self.rules.len(), MAX_RULES),
            (Kind::Approver, "approvers", self.approvers.len(), MAX_APPROVERS),
            (Kind::ApproverGroup, "groups of approvers", self.approver_groups.len(), MAX_APPROVERS),
            (Kind::Approval, "approvals", self.approvals.len(), MAX_APPROVERS),
        ];
        for (kind, what, count, most) in counts {
            if count > most {
                return Err((
                    kind,
                    most,
                    Error::misuse(format!("{count} {what}; at most {most} are allowed")),
                ));
            }
        }
        Ok(())
    }

    /// Returns the names.
    fn check_clients(&self) -> Checked<HashSet<&str>> {
        let (mut names, mut certificates) = (HashSet::new(), HashMap::new());
        for (i, client) in self.clients.iter().enumerate() {
            let wrong = |error| (Kind::Client, i, error);
            check_name("client", &client.name).map_err(wrong)?;
            check_patterns(&client.keys).map_err(wrong)?;
            check_items(client.rights.len()).map_err(wrong)?;
            if !names.insert(client.name.as_str()) {
                let message = format!("two clients are called {}; give each its own name", client.name);
                return Err(wrong(Error::misuse(message)));
            }
            for certificate in client.certificates() {
                if let Some(other) = certificates.insert(certificate.as_ref(), &client.name) {
                    let both = format!("{other} and {}", client.name);
                    return Err(wrong(Error::misuse(format!(
                        "{both} have one certificate; each client makes its own"
                    ))));
                }
            }
        }
        Ok(names)
    }

    /// Adds the names of their clients.
    fn check_authorities<'p>(&'p self, names: &mut HashSet<&'p str>) -> Checked<()> {
        let mut own_names = HashSet::new();
        let mut left = MAX_RULES;
        for (i, authority) in self.authorities.iter().enumerate() {
            let wrong = |error| (Kind::Authority, i, error);
            check_name("authority", &authority.name).map_err(wrong)?;
            if !own_names.insert(authority.name.as_str()) {
                return Err(wrong(Error::misuse("two authorities have this name; give each its own")));
            }
            authority.check().map_err(wrong)?;
            left = left.checked_sub(authority.clients.len()).ok_or_else(|| {
                wrong(Error::misuse(format!("authorities have more than {MAX_RULES} entries for clients")))
            })?;
            for client in &authority.clients {
                check_name("client", &client.name).map_err(wrong)?;
                client.check().map_err(wrong)?;
                check_patterns(&client.keys)
                    .and_then(|()| check_items(client.rights.len()))
                    .map_err(wrong)?;
                if !names.insert(client.name.as_str()) {
                    let message = format!("two clients are called {}; give each its own name", client.name);
                    return Err(wrong(Error::misuse(message)));
                }
            }
            self.check_apart(i).map_err(wrong)?;
        }
        Ok(())
    }

    /// Returns the names.
    fn check_groups(&self, clients: &HashSet<&str>) -> Checked<HashSet<&str>> {
        let mut names = HashSet::new();
        for (i, group) in self.groups.iter().enumerate() {
            let wrong = |error| (Kind::Group, i, error);
            check_name("group", &group.name).map_err(wrong)?;
            check_items(group.clients.len()).map_err(wrong)?;
            known("client", &group.clients, clients).map_err(wrong)?;
            if !names.insert(group.name.as_str()) || clients.contains(group.name.as_str()) {
                let message = format!("the name {} is taken by another group or by a client", group.name);
                return Err(wrong(Error::misuse(message)));
            }
        }
        Ok(names)
    }

    fn check_rules(&self, clients: &HashSet<&str>, groups: &HashSet<&str>) -> Checked<()> {
        let mut names = HashSet::new();
        for (i, rule) in self.rules.iter().enumerate() {
            let wrong = |error| (Kind::Rule, i, error);
            let misuse = |message: &str| wrong(Error::misuse(message));
            check_name("rule", &rule.name).map_err(wrong)?;
            if !names.insert(rule.name.as_str()) {
                return Err(misuse("two rules have this name; give each its own"));
            }
            let lists =
                [rule.clients.len(), rule.groups.len(), rule.rights.len(), rule.modes.len(), rule.days.len()];
            lists.into_iter().try_for_each(check_items).map_err(wrong)?;
            check_patterns(&rule.keys).and_then(|()| check_owners(&rule.owners)).map_err(wrong)?;
            let named: Vec<String> = rule.clients.iter().filter(|name| *name != "*").cloned().collect();
            known("client", &named, clients).map_err(wrong)?;
            known("group", &rule.groups, groups).map_err(wrong)?;
            if rule.clients.is_empty() && rule.groups.is_empty() {
                return Err(misuse("it is for nobody; name clients or groups, or '*' for all clients"));
            }
            if rule.rights.is_empty() || rule.keys.is_empty() {
                return Err(misuse("it needs at least one right and one key or pattern"));
            }
            if rule.deny && rule.is_limited() {
                return Err(misuse("a rule that denies has no limits of requests or blocks"));
            }
            if let (Some(from), Some(to)) = (rule.not_before, rule.not_after)
                && from > to
            {
                return Err(misuse("it ends before it begins"));
            }
        }
        Ok(())
    }

    fn check_approvals(&self) -> Checked<()> {
        let (mut names, mut certificates) = (HashSet::new(), HashSet::new());
        for (i, approver) in self.approvers.iter().enumerate() {
            let wrong = |error| (Kind::Approver, i, error);
            check_name("approver", &approver.name).map_err(wrong)?;
            if !names.insert(approver.name.as_str()) || !certificates.insert(approver.certificate.as_ref()) {
                let message =
                    "another approver has this name or this certificate; one person must not count twice";
                return Err(wrong(Error::misuse(message)));
            }
        }
        let mut groups = HashSet::new();
        for (i, group) in self.approver_groups.iter().enumerate() {
            let wrong = |error| (Kind::ApproverGroup, i, error);
            check_name("group of approvers", &group.name).map_err(wrong)?;
            check_items(group.approvers.len()).map_err(wrong)?;
            known("approver", &group.approvers, &names).map_err(wrong)?;
            if !groups.insert(group.name.as_str()) {
                return Err(wrong(Error::misuse(
                    "two groups of approvers have this name; give each its own",
                )));
            }
        }
        self.check_approval_rules(&names, &groups)
    }

    fn check_approval_rules(&self, names: &HashSet<&str>, groups: &HashSet<&str>) -> Checked<()> {
        let mut rules = HashSet::new();
        for (i, rule) in self.approvals.iter().enumerate() {
            let wrong = |error| (Kind::Approval, i, error);
            let misuse = |message: String| wrong(Error::misuse(message));
            check_name("approval", &rule.name).map_err(wrong)?;
            check_patterns(&rule.keys).map_err(wrong)?;
            [rule.rights.len(), rule.node.len(), rule.and.len()]
                .into_iter()
                .try_for_each(check_items)
                .map_err(wrong)?;
            if !rules.insert(rule.name.as_str()) {
                return Err(misuse("two approvals have this name; give each its own".into()));
            }
            for Quorum { need, of } in rule.quorums() {
                check_items(of.len()).map_err(wrong)?;
                let (in_groups, single): (Vec<String>, Vec<String>) =
                    of.iter().cloned().partition(|name| name.starts_with('@'));
                known("approver", &single, names).map_err(wrong)?;
                let in_groups: Vec<String> = in_groups.iter().map(|name| name[1..].to_owned()).collect();
                known("group of approvers", &in_groups, groups).map_err(wrong)?;
                let (each, people) = (of.iter().collect::<HashSet<_>>().len(), self.named(&of).len());
                if need == 0 || need > people || each < of.len() {
                    return Err(misuse(format!(
                        "it needs {need} of {people} approvers; take 1 to all of them, each named once"
                    )));
                }
            }
            if rule.rights.is_empty() != rule.keys.is_empty()
                || (rule.rights.is_empty() && rule.node.is_empty())
            {
                return Err(misuse(
                    "it needs rights and keys, or operations at the node (node = [..])".into(),
                ));
            }
        }
        Ok(())
    }

    /// The name of an entry, for errors.
    pub(super) fn name_of(&self, kind: Kind, number: usize) -> String {
        let name = match kind {
            Kind::Client => self.clients.get(number).map(|entry| ("client", &entry.name)),
            Kind::Authority => self.authorities.get(number).map(|entry| ("authority", &entry.name)),
            Kind::Group => self.groups.get(number).map(|entry| ("group", &entry.name)),
            Kind::Rule => self.rules.get(number).map(|entry| ("rule", &entry.name)),
            Kind::Approver => self.approvers.get(number).map(|entry| ("approver", &entry.name)),
            Kind::ApproverGroup => {
                self.approver_groups.get(number).map(|entry| ("group of approvers", &entry.name))
            }
            Kind::Approval => self.approvals.get(number).map(|entry| ("approval", &entry.name)),
        };
        // A name that does not fit is shown by its own error.
        let fits = |name: &str| check_name("rule", name).is_ok();
        name.map_or(String::new(), |(of, name)| match fits(name) {
            true => format!("{of} {name}"),
            false => of.to_owned(),
        })
    }
}

fn check_items(count: usize) -> Result<()> {
    let message = || Error::misuse(format!("a list of {count} items; at most {MAX_ITEMS} are allowed"));
    (count <= MAX_ITEMS).then_some(()).ok_or_else(message)
}

fn check_patterns(patterns: &[String]) -> Result<()> {
    check_items(patterns.len())?;
    patterns.iter().try_for_each(|pattern| pattern::check(pattern))
}

fn check_owners(patterns: &[String]) -> Result<()> {
    check_items(patterns.len())?;
    patterns.iter().try_for_each(|pattern| pattern::check_owner(pattern))
}

/// Refuses a name that is not there.
fn known(of: &str, names: &[String], there: &HashSet<&str>) -> Result<()> {
    match names.iter().find(|name| !there.contains(name.as_str())) {
        None => Ok(()),
        Some(missing) => {
            let shown: String = missing.chars().take(64).collect();
            Err(Error::misuse(format!("there is no {of} {shown:?} in this file")))
        }
    }
}
