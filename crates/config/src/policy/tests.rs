//! Rules as a whole: what they allow, how they change, and what is refused.

use std::num::NonZeroU64;

use polyclave_api::{Demand, Mode, Permission};

use super::*;
use crate::card::tests::certificate;

fn client(name: &str, seed: u8) -> ClientCard {
    ClientCard { name: name.into(), certificate: certificate(seed) }
}

fn policy() -> ClientPolicy {
    let mut policy = ClientPolicy::default();
    let keys = ["pay-*".to_owned(), "exact".to_owned()];
    policy.allow(&client("alice", 1), &[Right::Encrypt, Right::Mac], &keys).expect("it fits");
    policy.allow(&client("bob", 2), &[Right::Decrypt], &["*".into()]).expect("it fits");
    policy
}

fn at(text: &str) -> Moment {
    text.parse().expect("a moment")
}

fn may(policy: &ClientPolicy, certificate: &CertificateDer<'_>, right: Right, key: &str) -> bool {
    let (asked, now) = (Permission::of(right, key), at("2026-11-24T12:00:00Z"));
    let allowed = policy.allows(certificate, &asked, now);
    assert_eq!(policy.judge(certificate, &asked, now).is_allowed(), allowed);
    allowed
}

#[test]
fn a_client_may_do_what_its_rule_says_and_no_more() {
    let policy = policy();
    let alice = certificate(1);
    assert!(may(&policy, &alice, Right::Encrypt, "pay-roll"));
    assert!(may(&policy, &alice, Right::Mac, "exact"));
    assert!(!may(&policy, &alice, Right::Decrypt, "exact"));
    assert!(!may(&policy, &alice, Right::Encrypt, "exactly"));
    assert!(!may(&policy, &alice, Right::Encrypt, "pa"));
    assert!(may(&policy, &certificate(2), Right::Decrypt, "anything"));
    assert!(!may(&policy, &certificate(3), Right::Decrypt, "anything"));
    assert_eq!(policy.client_of(&alice), Some("alice"));
    assert_eq!(policy.client_of(&certificate(3)), None);
}

#[test]
fn who_is_revoked_may_do_nothing() {
    let mut policy = policy();
    policy.revoke("bob").expect("he was there");
    assert!(!may(&policy, &certificate(2), Right::Decrypt, "anything"));
    assert!(policy.revoke("bob").is_err());
}

#[test]
fn a_new_rule_replaces_the_old_one() {
    let mut policy = policy();
    policy.allow(&client("alice", 1), &[Right::List], &["exact".into()]).expect("it fits");
    assert!(!may(&policy, &certificate(1), Right::Encrypt, "exact"));
    assert!(may(&policy, &certificate(1), Right::List, "exact"));
}

#[test]
fn another_certificate_takes_a_name_only_if_that_is_wanted() {
    let mut policy = policy();
    let before = policy.clone();
    let card = client("alice", 4);
    let error = policy.allow(&card, &[Right::List], &["exact".into()]).expect_err("in silence").to_string();
    for certificate in [certificate(1), certificate(4)] {
        assert!(error.contains(&certificate_fingerprint(&certificate)), "{error}");
    }
    assert!(error.contains("--replace"), "{error}");
    assert_eq!(policy, before);
    policy.replace(&card, &[Right::List], &["exact".into()]).expect("wanted");
    assert!(!may(&policy, &certificate(1), Right::Encrypt, "exact"));
    assert!(!may(&policy, &certificate(4), Right::Encrypt, "exact"));
    assert!(may(&policy, &certificate(4), Right::List, "exact"));
}

#[test]
fn ambiguous_rules_are_refused_and_change_nothing() {
    let mut policy = policy();
    let before = policy.clone();
    assert!(policy.allow(&client("carol", 1), &[], &[]).is_err());
    assert!(policy.allow(&client("c rol", 3), &[], &[]).is_err());
    assert!(policy.allow(&client("carol", 3), &[], &["a/b".into()]).is_err());
    assert!(policy.allow(&client("carol", 3), &[], &["a**".into()]).is_err());
    assert_eq!(policy, before);
}

#[test]
fn a_policy_and_one_without_clients_come_back_and_an_empty_file_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("clients.toml");
    for policy in [policy(), ClientPolicy::default()] {
        policy.save(&file).expect("saved");
        assert_eq!(ClientPolicy::load(&file).expect("loaded"), policy);
    }
    std::fs::write(&file, "\n").expect("written");
    let message = ClientPolicy::load(&file).expect_err("all rules were lost").to_string();
    assert!(message.contains("clients.toml") && message.contains("the file is empty"), "{message}");
    std::fs::write(&file, "[[client]]\nname = 'a'\nrights = ['encrypt', 'everything']\n").expect("written");
    assert!(ClientPolicy::load(&file).expect_err("no such right").to_string().contains("clients.toml"));
}

/// A file as it was written before there were rules with conditions.
const OLD: &str = r#"# What which client may do at this node. Who is not here may do nothing.

[[client]]
name = "alice"
certificate = "MIIAAgEB"
rights = ["encrypt", "mac"]
keys = ["pay-*", "exact"]

[[client]]
name = "bob"
certificate = "MIIAAgIC"
rights = ["decrypt"]
keys = ["*"]
"#;

#[test]
fn a_file_of_an_older_version_means_what_it_meant_and_is_written_as_it_was() {
    let read = ClientPolicy::parse(OLD).expect("an old file");
    assert_eq!(read, policy());
    assert_eq!(read.to_text(), OLD);
}

/// Alice and bob are in the group, carol is not. Nobody may do anything by an entry.
const RULES: &str = r#"
[[client]]
name = "alice"
certificate = "MIIAAgEB"

[[client]]
name = "bob"
certificate = "MIIAAgIC"

[[client]]
name = "carol"
certificate = "MIIAAgMD"

[[group]]
name = "payroll"
clients = ["alice", "bob"]

[[rule]]
name = "payroll-gcm"
groups = ["payroll"]
rights = ["encrypt", "decrypt", "delete"]
keys = ["pay*2026"]
modes = ["gcm"]

[[rule]]
name = "carol-office"
clients = ["carol"]
rights = ["mac"]
keys = ["k?"]
not_before = 2026-01-01T00:00:00Z
not_after = 2026-12-31T23:59:59Z
days = ["mon", "tue", "wed", "thu", "fri"]
hours = "08:00-18:00"
requests_per_hour = 100
blocks_per_day = 1000000

[[rule]]
name = "no-root"
deny = true
clients = ["*"]
rights = ["delete", "encrypt"]
keys = ["*root*"]
"#;

fn rules() -> ClientPolicy {
    ClientPolicy::parse(RULES).expect("rules")
}

fn judged(
    policy: &ClientPolicy,
    client: u8,
    (right, mode, key): (Right, Option<Mode>, &str),
    moment: &str,
) -> String {
    let asked = Permission { mode, ..Permission::of(right, key) };
    let judgement = policy.judge(&certificate(client), &asked, at(moment));
    assert_eq!(policy.allows(&certificate(client), &asked, at(moment)), judgement.is_allowed());
    match judgement {
        Judgement::Allowed(grants) => grants[0].message(),
        Judgement::Denied(rule) => format!("denied by {}", rule.name),
        Judgement::NotAllowed(Some((grant, lacks))) => format!("{}: {}", grant.message(), lacks.join("; ")),
        Judgement::NotAllowed(None) => "nothing".into(),
        Judgement::Unknown => "unknown".into(),
    }
}

const NOON: &str = "2026-11-24T12:00:00Z";

#[test]
fn a_rule_holds_for_its_group_keys_and_modes_only() {
    let policy = rules();
    let message = |client, right, mode, key| judged(&policy, client, (right, mode, key), NOON);
    for client in [1, 2] {
        assert_eq!(message(client, Right::Encrypt, Some(Mode::Gcm), "pay-2026"), "the rule payroll-gcm");
        assert_eq!(
            message(client, Right::Delete, None, "pay-2026"),
            "the rule payroll-gcm",
            "it has no mode"
        );
    }
    assert_eq!(
        message(1, Right::Encrypt, Some(Mode::Cbc), "pay-2026"),
        "the rule payroll-gcm: it is for gcm, not for cbc"
    );
    assert_eq!(
        message(1, Right::Encrypt, Some(Mode::Gcm), "pay-2025"),
        "the rule payroll-gcm: it is for the keys pay*2026"
    );
    assert!(
        message(3, Right::Encrypt, Some(Mode::Gcm), "pay-2026")
            .contains("carol-office: it does not allow to encrypt")
    );
    assert_eq!(message(9, Right::Encrypt, Some(Mode::Gcm), "pay-2026"), "unknown");
}

#[test]
fn what_is_denied_is_denied_whatever_allows_it() {
    let mut policy = rules();
    policy.allow(&client("alice", 1), &[Right::Delete, Right::List], &["*".into()]).expect("it fits");
    let message = |right, key| judged(&policy, 1, (right, None, key), NOON);
    assert_eq!(message(Right::Delete, "other"), "the entry of alice");
    assert_eq!(message(Right::Delete, "the-root-key"), "denied by no-root");
    assert_eq!(message(Right::List, "the-root-key"), "the entry of alice");
}

/// Otherwise a rule against CBC would forbid deleting, too.
#[test]
fn a_denied_mode_denies_no_operation_without_a_mode() {
    let text = RULES.replace("keys = [\"*root*\"]", "keys = [\"*\"]\nmodes = [\"cbc\"]");
    let policy = ClientPolicy::parse(&text).expect("rules");
    assert_eq!(judged(&policy, 1, (Right::Delete, None, "pay-2026"), NOON), "the rule payroll-gcm");
    assert_eq!(judged(&policy, 1, (Right::Encrypt, Some(Mode::Cbc), "pay-2026"), NOON), "denied by no-root");
}

#[test]
fn a_rule_holds_at_its_times_only() {
    let policy = rules();
    let message = |moment| judged(&policy, 3, (Right::Mac, Some(Mode::Cmac), "k1"), moment);
    assert_eq!(message(NOON), "the rule carol-office");
    assert!(message("2027-01-04T12:00:00Z").contains("ended at 2026-12-31"));
    assert!(message("2025-12-31T12:00:00Z").contains("begins at 2026-01-01"));
    assert!(message("2026-11-28T12:00:00Z").contains("it is for mon, tue"));
    assert!(message("2026-11-24T18:00:00Z").contains("hours 08:00-18:00"));
}

#[test]
fn rules_come_back() {
    let policy = rules();
    assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it was written here"), policy);
    assert_eq!(policy.rules()[1].requests_per_hour, NonZeroU64::new(100));
}

#[test]
fn who_is_revoked_leaves_groups_and_rules() {
    let mut policy = rules();
    policy.revoke("carol").expect("she was there");
    policy.revoke("alice").expect("she was there");
    assert_eq!(policy.groups()[0].clients, ["bob"]);
    let names: Vec<&str> = policy.rules().iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["payroll-gcm", "no-root"]);
    assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it can stand"), policy);
}

/// Each pair is a change of the rules, and what the error must say.
#[test]
fn what_is_wrong_is_told_with_its_line_and_entry() {
    let wrong = [
        ("name = \"payroll-gcm\"", "name = \"no-root\"", "line 37, rule no-root: two rules have this name"),
        (
            "groups = [\"payroll\"]",
            "groups = [\"payrol\"]",
            "line 18, rule payroll-gcm: there is no group \"payrol\"",
        ),
        (
            "clients = [\"carol\"]",
            "clients = [\"karol\"]",
            "line 25, rule carol-office: there is no client \"karol\"",
        ),
        ("name = \"payroll\"", "name = \"alice\"", "line 14, group alice: the name alice is taken"),
        ("\"mac\"", "\"everything\"", "unknown variant `everything`"),
        ("\"gcm\"", "\"gmc\"", "unknown variant `gmc`"),
        ("hours = \"08:00-18:00\"", "hours = \"8-18\"", "write them as 08:00-18:00"),
        ("pay*2026", "pay**2026", "line 18, rule payroll-gcm: \"pay**2026\" fits no key's name"),
        ("pay*2026", "pay 2026", "fits no key's name"),
        ("not_after = 2026", "not_after = 2025", "line 25, rule carol-office: it ends before it begins"),
        ("not_after = 2026-12-31T23:59:59Z", "not_after = 2026-12-31", "write it as 2026-12-31T18:00:00Z"),
        ("requests_per_hour = 100", "requests_per_hour = 0", "nonzero"),
        ("requests_per_hour", "requests_per_minute", "unknown field `requests_per_minute`"),
        ("deny = true", "deny = true\nblocks_per_day = 1", "a rule that denies has no limits"),
        ("groups = [\"payroll\"]", "", "line 18, rule payroll-gcm: it is for nobody"),
        ("rights = [\"mac\"]", "rights = []", "it needs at least one right"),
        ("name = \"bob\"", "name = \"alice\"", "line 6, client alice: two clients are called alice"),
        ("MIIAAgIC", "MIIAAgEB", "alice and bob have one certificate"),
    ];
    for (from, to, message) in wrong {
        let text = RULES.replacen(from, to, 1);
        assert_ne!(text, RULES, "{from}");
        let error = ClientPolicy::parse(&text).expect_err(to).to_string();
        assert!(error.contains(message), "{from} -> {to}: {error}");
    }
}

#[test]
fn too_many_rules_are_refused_and_as_many_as_may_be_are_judged() {
    let rule = |n: usize| {
        format!(
            "[[rule]]\nname = \"r{n}\"\nclients = [\"alice\"]\nrights = [\"list\"]\nkeys = [\"*a*b*c*{n}\"]\n"
        )
    };
    let text = |count: usize| RULES.to_owned() + &(0..count).map(rule).collect::<String>();
    let error = ClientPolicy::parse(&text(100_000)).expect_err("too many").to_string();
    assert!(error.contains("100003 rules; at most 1000 are allowed"), "{error}");
    let most = ClientPolicy::parse(&text(997)).expect("as many as may be");
    assert!(may(&most, &certificate(1), Right::List, "a-b-c-996"));
    assert!(!may(&most, &certificate(1), Right::List, "a-b-996"));
}

#[test]
fn a_rule_and_a_group_are_added_for_a_client() {
    let mut policy = policy();
    policy.know(&client("carol", 3), false).expect("she is new");
    policy.join_group("auditors", "carol").expect("it fits");
    policy.join_group("auditors", "carol").expect("she is there already");
    let rule = Rule {
        name: "audit".into(),
        groups: vec!["auditors".into()],
        rights: vec![Right::List],
        keys: vec!["*".into()],
        ..Rule::default()
    };
    policy.set_rule(rule.clone()).expect("it fits");
    assert!(may(&policy, &certificate(3), Right::List, "k"));
    policy.set_rule(Rule { keys: vec!["pay*".into()], ..rule.clone() }).expect("it takes its place");
    assert!(!may(&policy, &certificate(3), Right::List, "k"));
    let before = policy.clone();
    assert!(policy.set_rule(Rule { groups: vec!["nobody".into()], ..rule }).is_err());
    assert!(policy.know(&client("alice", 9), false).is_err(), "another certificate");
    assert_eq!(policy, before);
    policy.know(&client("alice", 9), true).expect("wanted");
    assert!(may(&policy, &certificate(9), Right::Encrypt, "exact"), "her rights stay");
}

/// Added to the rules: three approvers, and what needs them.
const APPROVALS: &str = r#"
[[approver]]
name = "ann"
certificate = "MIIAAgcH"

[[approver]]
name = "ben"
certificate = "MIIAAggI"

[[approval]]
name = "two"
rights = ["delete", "wrap"]
keys = ["pay*"]
need = 2
of = ["ann", "ben"]

[[approval]]
name = "rules"
node = ["policy"]
need = 1
of = ["ben"]
"#;

#[test]
fn what_needs_approval_is_found_by_right_and_key_and_comes_back() {
    let policy = ClientPolicy::parse(&format!("{RULES}{APPROVALS}")).expect("rules");
    assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it was written here"), policy);
    let needs = |right, key: &str| policy.approvals_for(&[Permission::of(right, key)]).len();
    assert_eq!(
        (needs(Right::Delete, "payroll"), needs(Right::Delete, "other"), needs(Right::Mac, "payroll")),
        (1, 0, 0)
    );
    assert_eq!(
        policy
            .approvals_for(&[Permission::of(Right::Wrap, "kek"), Permission::of(Right::Wrap, "payroll")])
            .len(),
        1
    );
    assert_eq!(policy.approvals_for_node(NodeOperation::Policy).len(), 1);
    let spaced = policy.to_text().replace(" = ", "  =  ");
    assert_eq!(ClientPolicy::parse(&spaced).expect("the same").digest(), policy.digest());
    assert_ne!(rules().digest(), policy.digest());
}

#[test]
fn approvals_that_nobody_could_give_or_one_person_alone_are_refused() {
    let all = format!("{RULES}{APPROVALS}");
    for (from, to, message) in [
        ("need = 2", "need = 3", "approval two: it needs 3 of 2 approvers"),
        ("need = 2", "need = 0", "it needs 0 of 2"),
        (
            "of = [\"ann\", \"ben\"]",
            "of = [\"ann\", \"ann\"]",
            "it needs 2 of 1 approvers; take 1 to all of them, each named once",
        ),
        ("of = [\"ann\", \"ben\"]", "of = [\"ann\", \"cy\"]", "there is no approver \"cy\""),
        ("MIIAAggI", "MIIAAgcH", "approver ben: another approver has this name or this certificate"),
        ("name = \"ben\"", "name = \"ann\"", "approver ann: another approver has this name"),
        ("node = [\"policy\"]", "node = [\"coffee\"]", "unknown variant `coffee`"),
        ("node = [\"policy\"]", "", "approval rules: it needs rights and keys, or operations at the node"),
        ("name = \"rules\"", "name = \"two\"", "two approvals have this name"),
        ("of = [\"ben\"]", "of = [\"@custodians\"]", "there is no group of approvers \"custodians\""),
        (
            "of = [\"ben\"]",
            "of = [\"ben\"]\nand = [{ need = 0, of = [\"ann\"] }]",
            "it needs 0 of 1 approvers",
        ),
    ] {
        let text = match from.starts_with("name = \"ben") || from.starts_with("name = \"rules") {
            // The clients have such names, too.
            true => format!("{RULES}{}", APPROVALS.replacen(from, to, 1)),
            false => all.replacen(from, to, 1),
        };
        assert_ne!(text, all, "{from}");
        let error = ClientPolicy::parse(&text).expect_err(to).to_string();
        assert!(error.contains(message) && error.contains("line"), "{from} -> {to}: {error}");
    }
}

/// Groups, and a rule that needs somebody of each; ben is in both.
const GROUPED: &str = r#"
[[approver]]
name = "cy"
certificate = "MIIAAgkJ"

[[approver_group]]
name = "custodians"
approvers = ["ann", "ben"]

[[approver_group]]
name = "auditors"
approvers = ["ben", "cy"]

[[approval]]
name = "move"
node = ["reshare", "refresh"]
need = 2
of = ["@custodians", "@auditors"]
and = [{ need = 1, of = ["@auditors"] }]
"#;

#[test]
fn groups_of_approvers_stand_for_who_is_in_them_and_nobody_counts_twice_in_a_part() {
    let policy = ClientPolicy::parse(&format!("{RULES}{APPROVALS}{GROUPED}")).expect("rules");
    assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it was written here"), policy);
    let [rule] = policy.approvals_for_node(NodeOperation::Reshare)[..] else { panic!("one rule") };
    assert_eq!(policy.approvals_for_node(NodeOperation::Refresh), [rule]);
    assert_eq!(rule.message(), "2 of @custodians, @auditors and 1 of @auditors must approve");
    let named: Vec<&str> = policy.named(&rule.of).into_iter().collect();
    assert_eq!(named, ["ann", "ben", "cy"]);

    for (from, to, message) in [
        ("need = 2\nof = [\"@c", "need = 4\nof = [\"@c", "approval move: it needs 4 of 3 approvers"),
        ("[\"ann\", \"ben\"]\n\n[[approver_group]]", "[]\n\n[[approver_group]]", ""),
        ("[\"ben\", \"cy\"]", "[]", "approval move: it needs 1 of 0 approvers"),
        ("[\"ben\", \"cy\"]", "[\"dan\"]", "group of approvers auditors: there is no approver \"dan\""),
        ("\"auditors\"\n", "\"custodians\"\n", "two groups of approvers have this name"),
        ("[\"reshare\", ", "[\"reshape\", ", "unknown variant `reshape`"),
    ] {
        let text = format!("{RULES}{APPROVALS}{}", GROUPED.replacen(from, to, 1));
        assert!(!text.contains(GROUPED), "{from}");
        let outcome = ClientPolicy::parse(&text).map_err(|e| e.to_string());
        match message {
            "" => assert!(outcome.is_ok(), "{outcome:?}"),
            message => {
                assert!(outcome.as_ref().is_err_and(|e| e.contains(message)), "{from} -> {to}: {outcome:?}")
            }
        }
    }
}

#[test]
fn a_rule_for_owners_is_about_files_in_envelopes_that_they_wrote_and_nothing_else() {
    let owned = "\n[[rule]]\nname = \"own\"\nclients = [\"carol\"]\nrights = [\"decrypt\"]\nkeys = [\"files\"]\nowners = [\"carol\", \"team-*\"]\n";
    let policy = ClientPolicy::parse(&(RULES.to_owned() + owned)).expect("rules");
    let asked = |owner: Option<&str>| {
        let owner = owner.map(str::to_owned);
        let asked =
            Permission { mode: Some(Mode::Envelope), owner, ..Permission::of(Right::Decrypt, "files") };
        policy.allows(&certificate(3), &asked, at("2026-05-05T12:00:00Z"))
    };
    assert!(asked(Some("carol")) && asked(Some("team-7")));
    assert!(!asked(Some("alice")) && !asked(Some("")) && !asked(None));
    assert!(ClientPolicy::parse(&(RULES.to_owned() + &owned.replace("team-*", "té"))).is_err());
}

#[test]
fn what_an_operation_amounts_to_needs_no_right_and_is_bound_by_the_rules_for_it() {
    let policy = rules();
    let message = |client: u8, right, mode, key: &str, moment: &str| {
        let asked = Permission { mode, ..Permission::bound(right, key) };
        match policy.judge(&certificate(client), &asked, at(moment)) {
            Judgement::Allowed(grants) => grants.iter().map(Grant::message).collect::<Vec<_>>().join(", "),
            Judgement::Denied(rule) => format!("denied by {}", rule.name),
            Judgement::NotAllowed(Some((grant, lacks))) => {
                format!("{}: {}", grant.message(), lacks.join("; "))
            }
            other => format!("{other:?}"),
        }
    };
    // No rule concerns it.
    assert_eq!(message(3, Right::Decrypt, Some(Mode::Gcm), "pay-2026", NOON), "");
    assert_eq!(message(1, Right::Decrypt, Some(Mode::Cbc), "pay-2026", NOON), "");
    assert_eq!(message(3, Right::Mac, None, "key", NOON), "");
    // A rule allows it within its limits, allows it at other times, or denies it.
    assert_eq!(message(3, Right::Mac, None, "k7", NOON), "the rule carol-office");
    let night = "2026-11-24T22:00:00Z";
    assert_eq!(
        message(3, Right::Mac, None, "k7", night),
        "the rule carol-office: it is for the hours 08:00-18:00 (UTC)"
    );
    assert_eq!(message(3, Right::Encrypt, None, "a-root-key", NOON), "denied by no-root");
    assert_eq!(message(9, Right::Mac, None, "k7", NOON), "Unknown");
}

#[test]
fn what_lasts_is_allowed_only_by_rules_without_times_and_limits() {
    let policy = rules();
    let may = |client: u8, right, mode, key: &str| {
        let asked = Permission { mode, demand: Demand::Always, ..Permission::of(right, key) };
        policy.judge(&certificate(client), &asked, at(NOON)).is_allowed()
    };
    assert!(may(1, Right::Decrypt, Some(Mode::Gcm), "pay-2026"));
    assert!(!may(1, Right::Decrypt, Some(Mode::Cbc), "pay-2026"));
    assert!(!may(3, Right::Mac, None, "k7"), "it has hours and limits");
    let later = RULES.replace("deny = true\n", "deny = true\nnot_before = 2099-01-01T00:00:00Z\n");
    let policy = ClientPolicy::parse(&later).expect("rules");
    let asked = Permission { mode: Some(Mode::Gcm), ..Permission::of(Right::Encrypt, "pay-root2026") };
    assert!(policy.judge(&certificate(1), &asked, at(NOON)).is_allowed());
    let asked = Permission { demand: Demand::Always, ..asked };
    assert!(matches!(policy.judge(&certificate(1), &asked, at(NOON)), Judgement::Denied(_)));
}
