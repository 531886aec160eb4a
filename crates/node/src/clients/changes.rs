//! How two sets of rules differ, for the audit log: a line for each client, group and rule.

use polyclave_config::{
    ApprovalRule, Approver, ApproverGroup, Authority, AuthorityClient, ClientPolicy, ClientRule, Group, Rule,
};

/// What has changed for one client, group or rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The client's name; empty for anything else, whose name is in the detail.
    pub(super) client: String,
    pub(super) outcome: &'static str,
    pub(super) detail: String,
}

/// The fields of an entry with their values.
type Fields = Vec<(&'static str, String)>;

/// The differences: clients first, in the order of their names, then authorities, groups, and rules.
pub(super) fn changes(before: &ClientPolicy, after: &ClientPolicy) -> Vec<Change> {
    let clients = |p: &ClientPolicy| p.clients().iter().map(|c| (c.name.clone(), of_client(c))).collect();
    let groups = |p: &ClientPolicy| p.groups().iter().map(|g| (g.name.clone(), of_group(g))).collect();
    let rules = |p: &ClientPolicy| p.rules().iter().map(|r| (r.name.clone(), of_rule(r))).collect();
    let authorities =
        |p: &ClientPolicy| p.authorities().iter().map(|a| (a.name.clone(), of_authority(a))).collect();
    let mut all = differences("", clients(before), clients(after));
    all.extend(differences("authority", authorities(before), authorities(after)));
    all.extend(differences("authority-client", of_authorities(before), of_authorities(after)));
    all.extend(differences("group", groups(before), groups(after)));
    all.extend(differences("rule", rules(before), rules(after)));
    let approvers =
        |p: &ClientPolicy| p.approvers().iter().map(|a| (a.name.clone(), of_approver(a))).collect();
    let approver_groups = |p: &ClientPolicy| {
        p.approver_groups().iter().map(|g| (g.name.clone(), of_approver_group(g))).collect()
    };
    let approvals =
        |p: &ClientPolicy| p.approvals().iter().map(|a| (a.name.clone(), of_approval(a))).collect();
    all.extend(differences("approver", approvers(before), approvers(after)));
    all.extend(differences("approver-group", approver_groups(before), approver_groups(after)));
    all.extend(differences("approval", approvals(before), approvals(after)));
    all
}

/// The differences between entries of one kind.
fn differences(kind: &str, before: Vec<(String, Fields)>, after: Vec<(String, Fields)>) -> Vec<Change> {
    let of = |entries: &[(String, Fields)], name: &str| {
        entries.iter().find(|(known, _)| known == name).map(|(_, fields)| fields.clone())
    };
    let mut names: Vec<&String> = before.iter().chain(&after).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &String| {
        let (outcome, fields) = match (of(&before, name), of(&after, name)) {
            (old, new) if old == new => return None,
            (None, Some(new)) => ("allowed", shown(&new)),
            (Some(old), None) => ("revoked", shown(&old)),
            (Some(old), Some(new)) => ("changed", differing(&old, &new)),
            (None, None) => return None,
        };
        Some(match kind {
            "" => Change { client: name.clone(), outcome, detail: fields.join(" ") },
            kind => {
                let named = [format!("{kind}={name}")].into_iter().chain(fields);
                Change { client: String::new(), outcome, detail: named.collect::<Vec<_>>().join(" ") }
            }
        })
    };
    names.into_iter().filter_map(change).collect()
}

fn shown(fields: &Fields) -> Vec<String> {
    fields.iter().map(|(field, value)| format!("{field}={value}")).collect()
}

/// The fields that differ, each with its new value and then its old one; the others are left out.
fn differing(old: &Fields, new: &Fields) -> Vec<String> {
    let gone = old.iter().filter(|(field, _)| new.iter().all(|(other, _)| other != field));
    let names = new.iter().chain(gone).map(|(field, _)| *field);
    let of = |fields: &Fields, name: &str| {
        fields.iter().find(|(field, _)| *field == name).map_or(String::new(), |(_, value)| value.clone())
    };
    let differs = |name: &str| {
        let (is, was) = (of(new, name), of(old, name));
        (is != was).then(|| format!("{name}={is} {name}-before={was}"))
    };
    names.filter_map(differs).collect()
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn of_client(client: &ClientRule) -> Fields {
    let hash = |certificate: &[u8]| format!("blake3:{}", blake3::hash(certificate).to_hex());
    let next = client.next.as_ref().map(|next| ("next-certificate", hash(next)));
    let fields = [("certificate", hash(&client.certificate))].into_iter().chain(next);
    fields.chain([("rights", list(&client.rights)), ("keys", list(&client.keys))]).collect()
}

fn of_authority(authority: &Authority) -> Fields {
    // The log takes names only. Any other path is shown by its hash.
    let is_plain = authority.file.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    let file = match is_plain {
        true => authority.file.clone(),
        false => format!("blake3:{}", blake3::hash(authority.file.as_bytes()).to_hex()),
    };
    vec![("file", file), ("max-hours", authority.max_hours.to_string())]
}

/// The clients of all authorities.
fn of_authorities(policy: &ClientPolicy) -> Vec<(String, Fields)> {
    let of = |authority: &Authority, client: &AuthorityClient| {
        let fields = vec![
            ("of", authority.name.clone()),
            ("identity", client.identity.clone()),
            ("rights", list(&client.rights)),
            ("keys", list(&client.keys)),
        ];
        (client.name.clone(), fields)
    };
    let authorities = policy.authorities().iter();
    authorities.flat_map(|authority| authority.clients.iter().map(move |c| of(authority, c))).collect()
}

fn of_approver(approver: &Approver) -> Fields {
    vec![("certificate", format!("blake3:{}", blake3::hash(&approver.certificate).to_hex()))]
}

fn of_approval(rule: &ApprovalRule) -> Fields {
    vec![
        ("rights", list(&rule.rights)),
        ("keys", list(&rule.keys)),
        ("node", list(&rule.node)),
        ("need", rule.need.to_string()),
        ("of", list(&rule.of)),
        ("requester-counts", rule.requester_counts.to_string()),
        ("and", list(&rule.and.iter().map(|q| format!("{}:{}", q.need, q.of.join("+"))).collect::<Vec<_>>())),
    ]
}

fn of_approver_group(group: &ApproverGroup) -> Fields {
    vec![("approvers", list(&group.approvers))]
}

fn of_group(group: &Group) -> Fields {
    vec![("clients", list(&group.clients))]
}

/// Only the fields that are set.
fn of_rule(rule: &Rule) -> Fields {
    let mut fields = vec![
        ("effect", if rule.deny { "deny" } else { "allow" }.to_owned()),
        ("clients", list(&rule.clients)),
        ("groups", list(&rule.groups)),
        ("rights", list(&rule.rights)),
        ("keys", list(&rule.keys)),
        ("modes", list(&rule.modes)),
        ("not-before", rule.not_before.map_or(String::new(), |at| at.to_string())),
        ("not-after", rule.not_after.map_or(String::new(), |at| at.to_string())),
        ("owners", list(&rule.owners)),
        ("days", list(&rule.days)),
        ("hours", rule.hours.map_or(String::new(), |hours| hours.to_string())),
    ];
    fields.extend(
        rule.limits().map(|(name, most)| (name, most.map_or(String::new(), |most| most.to_string()))),
    );
    fields.retain(|(_, value)| !value.is_empty());
    fields
}
#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_api::{Mode, Right};
    use polyclave_config::ClientCard;
    use polyclave_transport::CertificateDer;

    fn rule(policy: &mut ClientPolicy, name: &str, certificate: u8, rights: &[Right], keys: &[&str]) {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let certificate = CertificateDer::from(vec![0x30, certificate]);
        policy.replace(&ClientCard { name: name.into(), certificate }, rights, &keys).expect("it fits");
    }

    fn hash(certificate: u8) -> String {
        format!("blake3:{}", blake3::hash(&[0x30, certificate]).to_hex())
    }

    #[test]
    fn who_is_allowed_changed_and_revoked_is_told_with_what_differs() {
        let mut before = ClientPolicy::default();
        rule(&mut before, "alice", 1, &[Right::Encrypt], &["pay-*"]);
        rule(&mut before, "bob", 2, &[Right::Mac], &["*"]);
        rule(&mut before, "same", 3, &[Right::List], &["*"]);
        let mut after = before.clone();
        rule(&mut after, "alice", 4, &[Right::Encrypt, Right::Decrypt], &["pay-*"]);
        rule(&mut after, "carol", 5, &[Right::List], &["a", "b"]);
        after.revoke("bob").expect("he was there");
        let expected = [
            (
                "alice",
                "changed",
                format!(
                    "certificate={} certificate-before={} rights=encrypt,decrypt rights-before=encrypt",
                    hash(4),
                    hash(1)
                ),
            ),
            ("bob", "revoked", format!("certificate={} rights=mac keys=*", hash(2))),
            ("carol", "allowed", format!("certificate={} rights=list keys=a,b", hash(5))),
        ];
        let found = changes(&before, &after);
        let found: Vec<_> = found.iter().map(|c| (c.client.as_str(), c.outcome, c.detail.clone())).collect();
        assert_eq!(found, expected);
        assert!(changes(&after, &after).is_empty());
    }

    #[test]
    fn changed_groups_and_rules_are_told_with_what_differs() {
        let mut before = ClientPolicy::default();
        rule(&mut before, "alice", 1, &[], &[]);
        before.join_group("office", "alice").expect("it fits");
        let old = Rule {
            name: "r".into(),
            groups: vec!["office".into()],
            rights: vec![Right::Encrypt],
            keys: vec!["pay*".into()],
            hours: Some("08:00-18:00".parse().expect("hours")),
            ..Rule::default()
        };
        before.set_rule(old.clone()).expect("it fits");
        let mut after = before.clone();
        rule(&mut after, "bob", 2, &[], &[]);
        after.join_group("office", "bob").expect("it fits");
        after.set_rule(Rule { modes: vec![Mode::Gcm], hours: None, ..old }).expect("it fits");
        let found = changes(&before, &after);
        let found: Vec<_> = found.iter().map(|c| (c.client.as_str(), c.outcome, c.detail.as_str())).collect();
        assert_eq!(found[0].0, "bob");
        assert_eq!(
            found[1..],
            [
                ("", "changed", "group=office clients=alice,bob clients-before=alice"),
                ("", "changed", "rule=r modes=gcm modes-before= hours= hours-before=08:00-18:00"),
            ]
        );
    }
}
