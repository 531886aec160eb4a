use polyclave_api::Permission;

use super::super::{Asker, Grant, Judgement, Moment, Rule};
use super::*;
use crate::ClientCard;
use crate::card::tests::certificate;

fn client(name: &str, identity: &str, rights: &[Right]) -> AuthorityClient {
    let (name, identity, keys) = (name.into(), identity.into(), vec!["*".into()]);
    AuthorityClient { name, identity, rights: rights.to_vec(), keys }
}

fn policy() -> ClientPolicy {
    let mut policy = ClientPolicy::default();
    policy.set_authority(Authority::new("corp", "corp.pem", None)).expect("it fits");
    let prod = client("prod", "spiffe://corp.example/prod/*", &[Right::Encrypt]);
    policy.set_authority_client("corp", prod).expect("it fits");
    let web = client("web", "spiffe://corp.example/prod/web", &[Right::Decrypt]);
    policy.set_authority_client("corp", web).expect("it fits");
    policy
}

fn judge<'p>(policy: &'p ClientPolicy, identity: &str, right: Right) -> Judgement<'p> {
    let (asked, now) = (Permission::of(right, "k"), Moment::from_seconds(1_800_000_000));
    let who = Asker::Signed { authority: "corp", identity };
    let judgement = policy.judge(who, &asked, now);
    assert_eq!(policy.allows(who, &asked, now), judgement.is_allowed());
    judgement
}

#[test]
fn patterns_fit_whole_parts_of_identities_and_nothing_else() {
    let fits = |pattern: &str, identity: &str| client("c", pattern, &[]).fits(identity);
    for (pattern, identity) in [
        ("spiffe://corp.example/web", "spiffe://corp.example/web"),
        ("spiffe://corp.example/*", "spiffe://corp.example/web"),
        ("spiffe://corp.example/ns/*", "spiffe://corp.example/ns/prod/sa/web"),
        ("dns:web.corp.example", "dns:web.corp.example"),
        ("dns:*.corp.example", "dns:web.corp.example"),
    ] {
        assert!(fits(pattern, identity), "{pattern} {identity}");
    }
    for (pattern, identity) in [
        ("spiffe://corp.example/web", "spiffe://corp.example/web2"),
        ("spiffe://corp.example/web", "spiffe://corp.example/web/1"),
        ("spiffe://corp.example/ns/*", "spiffe://corp.example/ns"),
        ("spiffe://corp.example/ns/*", "spiffe://corp.example/nsx/a"),
        ("spiffe://corp.example/*", "spiffe://corp.example.evil/web"),
        ("dns:*.corp.example", "dns:a.web.corp.example"),
        ("dns:*.corp.example", "dns:corp.example"),
        ("dns:*.corp.example", "spiffe://web.corp.example/a"),
        ("spiffe://corp.example/*", "dns:corp.example"),
    ] {
        assert!(!fits(pattern, identity), "{pattern} {identity}");
    }
}

#[test]
fn a_client_may_do_what_any_of_its_entries_allows_and_nobody_else_may_do_anything() {
    let policy = policy();
    let (web, other) = ("spiffe://corp.example/prod/web", "spiffe://corp.example/prod/other");
    assert!(
        judge(&policy, web, Right::Encrypt).is_allowed() && judge(&policy, web, Right::Decrypt).is_allowed()
    );
    assert!(judge(&policy, other, Right::Encrypt).is_allowed());
    assert!(!judge(&policy, other, Right::Decrypt).is_allowed());
    assert_eq!(judge(&policy, "spiffe://corp.example/test/web", Right::Encrypt), Judgement::Unknown);
    let asked = Permission::of(Right::Encrypt, "k");
    let by_another = Asker::Signed { authority: "other", identity: web };
    assert_eq!(policy.judge(by_another, &asked, Moment::now()), Judgement::Unknown);
    assert!(policy.authority_of(web).is_some_and(|authority| authority.name == "corp"));
    assert!(policy.authority_of("spiffe://corp.example/test/web").is_none());
}

#[test]
fn a_client_is_named_by_its_identity_and_not_by_a_pattern() {
    let policy = policy();
    let named = |authority, identity| policy.is_named(Asker::Signed { authority, identity });
    assert!(named("corp", "spiffe://corp.example/prod/web"));
    assert!(!named("corp", "spiffe://corp.example/prod/other"), "a pattern fits");
    assert!(!named("corp", "spiffe://corp.example/test/web"), "nothing fits");
    assert!(!named("other", "spiffe://corp.example/prod/web"), "another authority's");
}

#[test]
fn rules_and_groups_are_for_clients_of_authorities_as_for_listed_ones() {
    let mut policy = policy();
    let web = "spiffe://corp.example/prod/web";
    policy.join_group("office", "web").expect("it is known");
    let rule = |name: &str, deny: bool, right: Right| Rule {
        name: name.into(),
        deny,
        groups: vec!["office".into()],
        rights: vec![right],
        keys: vec!["*".into()],
        ..Rule::default()
    };
    policy.set_rule(rule("more", false, Right::Mac)).expect("it fits");
    policy.set_rule(rule("less", true, Right::Encrypt)).expect("it fits");
    let allowed = judge(&policy, web, Right::Mac);
    assert!(
        matches!(allowed, Judgement::Allowed(ref by) if matches!(by[..], [Grant::Rule(_)])),
        "{allowed:?}"
    );
    // The rule wins over the entry of another name that fits, too.
    assert!(matches!(judge(&policy, web, Right::Encrypt), Judgement::Denied(_)));
    assert!(judge(&policy, "spiffe://corp.example/prod/other", Right::Encrypt).is_allowed());
    assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it fits"), policy);
    policy.revoke("web").expect("it was there");
    assert!(judge(&policy, web, Right::Encrypt).is_allowed(), "by the other entry");
    policy.remove_authority("corp").expect("it was there");
    assert_eq!(judge(&policy, web, Right::Encrypt), Judgement::Unknown);
    assert!(policy.rules().iter().all(|rule| rule.clients.is_empty()));
}

#[test]
fn what_could_mean_two_things_is_refused() {
    let refused = |change: &dyn Fn(&mut ClientPolicy) -> Result<()>, says: &str| {
        let mut policy = policy();
        policy.set_authority(Authority::new("second", "second.pem", None)).expect("it fits");
        let before = policy.clone();
        let message = change(&mut policy).expect_err(says).to_string();
        assert!(message.contains(says), "{message}");
        assert_eq!(policy, before);
    };
    let add = |identity: &'static str| {
        move |p: &mut ClientPolicy| p.set_authority_client("second", client("c", identity, &[]))
    };
    for overlapping in
        ["spiffe://corp.example/prod/web", "spiffe://corp.example/*", "spiffe://corp.example/prod/a/*"]
    {
        refused(&add(overlapping), "overlap");
    }
    for wrong in [
        "web",
        "*",
        "spiffe://*",
        "spiffe://*/web",
        "spiffe://other.example/we*",
        "spiffe://other.example/*/web",
        "dns:*",
        "dns:*example",
        "dns:a.*.example",
    ] {
        refused(&add(wrong), "is of no client");
    }
    let named = |name: &'static str| {
        move |p: &mut ClientPolicy| p.set_authority_client("second", client(name, "dns:a.b", &[]))
    };
    refused(&named("web"), "two clients are called web");
    refused(&named("spiffe://corp.example/x"), "name");
    let listed = ClientCard { name: "web".into(), certificate: certificate(1) };
    refused(&|p: &mut ClientPolicy| p.allow(&listed, &[], &[]), "two clients are called web");
    refused(&|p: &mut ClientPolicy| p.set_authority(Authority::new("x", "x.pem", Some(0))), "max_hours");
    refused(&|p: &mut ClientPolicy| p.set_authority(Authority::new("x", "", None)), "no file");
    refused(
        &|p: &mut ClientPolicy| p.set_authority_client("third", client("c", "dns:a.b", &[])),
        "no authority",
    );
    refused(&|p: &mut ClientPolicy| p.remove_authority("third"), "no authority");
    let mut apart = policy();
    apart.set_authority(Authority::new("second", "second.pem", None)).expect("it fits");
    for (name, identity) in
        [("a", "spiffe://other.example/*"), ("b", "spiffe://corp.example/prod2/*"), ("c", "dns:*.example")]
    {
        apart.set_authority_client("second", client(name, identity, &[])).expect(identity);
    }
}
