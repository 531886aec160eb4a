//! Whoever asks for an operation is bound by the rules for all that it amounts to, and needs no right but the
//! operation's own. The table is in `api/src/operations/`, with a test over all operations; here it is at
//! running nodes.

use std::num::NonZeroU64;

use polyclave_api::{BlockHeader, Derivation, Mode, NewKey, Reason, Right, Usage, Wrapping};
use polyclave_client::{Client, Error};
use polyclave_config::{ApprovalRule, ClientCard, ClientPolicy, NodeDir, Rule};
use polyclave_transport::Identity;

use crate::common::from_keys::{kek, only_for, wrappable};
use crate::common::messages::{AeadEncryption, encrypt_ccm, encrypt_gcm, gcm, rewrap_gcm, seal};
use crate::common::{TestCluster, data, key};

/// A name, the right of the operation, what it amounts to, and for which key. Those of one kind begin with
/// the same word.
const CASES: [(&str, Right, Right, &str); 11] = [
    ("message-1", Right::Rewrap, Right::Decrypt, "message-1.old"),
    ("message-2", Right::Rewrap, Right::Encrypt, "message-2.new"),
    ("sealed-1", Right::Rewrap, Right::Decrypt, "sealed-1.old"),
    ("sealed-2", Right::Rewrap, Right::Encrypt, "sealed-2.new"),
    ("wrapped-1", Right::Rewrap, Right::Unwrap, "wrapped-1.old"),
    ("wrapped-2", Right::Rewrap, Right::Wrap, "wrapped-2.new"),
    ("gcm", Right::Encrypt, Right::Decrypt, "gcm.old"),
    ("ccm", Right::Encrypt, Right::Decrypt, "ccm.old"),
    ("derive", Right::Derive, Right::Generate, "derive.made-*"),
    ("unwrap", Right::Unwrap, Right::Import, "unwrap.made-*"),
    ("block", Right::Unwrap, Right::Import, "block.made-*"),
];

/// What the rules say about what an operation amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Nothing,
    Denied,
    /// Allowed, but not now.
    Past,
    /// Allowed once a day.
    Once,
}

type Ask<'c> = Box<dyn Fn(&Client, &str) -> Result<(), Error> + 'c>;

/// Makes the keys of a case. Returns what asks for its operation: as a client, for a new key of a name.
fn ask<'c>(case: &'c str, admin: &Client) -> Ask<'c> {
    let (old, new) = (format!("{case}.old"), format!("{case}.new"));
    let kind = case.split('-').next().unwrap_or_default();
    let own_nonces = |mode| NewKey { caller_nonces: true, ..key(&old, "aes-128", &[mode]) };
    let made = move |name: &str| key(&format!("{case}.made-{name}"), "aes-128", &[Mode::Gcm]);
    match kind {
        "message" | "sealed" => {
            for name in [&old, &new] {
                admin.generate(key(name, "aes-128", &[Mode::Gcm])).expect("a key");
            }
            let sealed = seal(admin, &old, b"a value").expect("sealed");
            let message = gcm(admin, &old, b"", b"a value").expect("encrypted");
            match kind {
                "message" => Box::new(move |c, _| rewrap_gcm(c, (&old, &new), b"", &message).map(drop)),
                _ => Box::new(move |c, _| c.rewrap_sealed((&old, &new), None, &sealed).map(drop)),
            }
        }
        "wrapped" | "unwrap" => {
            for name in [&old, &new] {
                admin.generate(kek(name, 16)).expect("a key");
            }
            let inner = format!("{case}.inner");
            admin.generate(wrappable(&inner, "aes-128", &[Mode::Gcm])).expect("a key");
            let wrapped = admin.wrap(&old, &inner, Wrapping::Kw).expect("wrapped");
            match kind {
                "wrapped" => {
                    Box::new(move |c, _| c.rewrap_key((&old, &new), Wrapping::Kw, &wrapped).map(drop))
                }
                _ => Box::new(move |c, name| c.unwrap(&old, &wrapped, Wrapping::Kw, made(name)).map(drop)),
            }
        }
        "block" => {
            admin.generate(key(&old, "aes-128", &[Mode::Tr31])).expect("a key");
            let inner = format!("{case}.inner");
            let info = admin.generate(wrappable(&inner, "aes-128", &[Mode::Gcm])).expect("a key");
            let header = BlockHeader::of(&info.properties).expect("it fits");
            let block = admin.wrap_block(&old, &inner, header).expect("wrapped");
            Box::new(move |c, name| c.unwrap_block(&old, &block, made(name)).map(drop))
        }
        "derive" => {
            admin.generate(only_for(&old, "aes-128", &[Usage::Derive])).expect("a key");
            let how = || Derivation::EcbData { data: vec![1; 16] };
            Box::new(move |c, name| c.derive(&old, made(name), how()).map(drop))
        }
        "gcm" => {
            admin.generate(own_nonces(Mode::Gcm)).expect("a key");
            Box::new(move |c, _| {
                let how = AeadEncryption { nonce: Some(&[7; 12]), ..AeadEncryption::default() };
                encrypt_gcm(c, &old, &how, &data(16)).map(drop)
            })
        }
        _ => {
            admin.generate(own_nonces(Mode::Ccm)).expect("a key");
            Box::new(move |c, _| {
                let how = AeadEncryption { nonce: Some(&[7; 12]), ..AeadEncryption::default() };
                encrypt_ccm(c, &old, &how, &data(16)).map(drop)
            })
        }
    }
}

fn change_policies(cluster: &TestCluster, change: &dyn Fn(&mut ClientPolicy)) {
    for path in &cluster.local.nodes {
        let node = NodeDir::open(path).expect("its directory");
        let mut policy = node.policy().expect("its policy");
        change(&mut policy);
        node.save_policy(&policy).expect("saved");
    }
}

/// A client that may do something with all keys by its entry, and its rules.
struct Somebody {
    client: Client,
    name: String,
}

impl Somebody {
    fn new(cluster: &TestCluster, name: &str, rights: &[Right], rules: &[Rule]) -> Somebody {
        let identity = Identity::generate_named(name, 1).expect("an identity");
        let client = cluster.client_of(name, &identity);
        let card = ClientCard { name: name.into(), certificate: identity.certificate() };
        change_policies(cluster, &|policy| {
            policy.allow(&card, rights, &["*".into()]).expect("it fits");
            for rule in rules {
                let (name, clients) = (format!("of-{name}-{}", rule.name), vec![name.to_owned()]);
                policy.set_rule(Rule { name, clients, ..rule.clone() }).expect("it fits");
            }
        });
        Somebody { client, name: name.into() }
    }
}

fn rule(right: Right, key: &str) -> Rule {
    Rule { name: "rule".into(), rights: vec![right], keys: vec![key.into()], ..Rule::default() }
}

fn refused(outcome: Result<(), Error>, what: &str, why: &str) {
    match outcome {
        Err(Error::Refused { refusal, .. }) => {
            assert_eq!(refusal.reason, Reason::Denied, "{what}: {refusal}");
            assert!(refusal.message.contains(why), "{what}: {refusal}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn what_rules_and_approvals_say_of_what_an_operation_amounts_to_binds_it_and_no_right_to_that_is_needed() {
    let mut cluster = TestCluster::define(3, 1);
    let mut all = Vec::new();
    for (case, own, right, key) in CASES {
        for said in [Said::Nothing, Said::Denied, Said::Past, Said::Once] {
            let rule = rule(right, key);
            let rules = match said {
                Said::Nothing => vec![],
                Said::Denied => vec![Rule { deny: true, ..rule }],
                Said::Past => vec![Rule { not_after: "2026-01-01T00:00:00Z".parse().ok(), ..rule }],
                Said::Once => vec![Rule { requests_per_day: NonZeroU64::new(1), ..rule }],
            };
            let name = format!("{case}-{said:?}").to_lowercase();
            all.push((case, said, Somebody::new(&cluster, &name, &[own], &rules)));
        }
    }
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let admin = cluster.client();
    let asks: Vec<(&str, Ask<'_>)> = CASES.iter().map(|(case, ..)| (*case, ask(case, &admin))).collect();
    let ask_as = |case: &str, somebody: &Somebody, try_: u32| {
        let (_, ask) = asks.iter().find(|(of, _)| *of == case).expect("it is there");
        ask(&somebody.client, &format!("{}-{try_}", somebody.name))
    };
    for (case, said, somebody) in &all {
        let what = format!("{case} {said:?}");
        let first = ask_as(case, somebody, 1);
        match said {
            Said::Nothing => first.unwrap_or_else(|e| panic!("{what}: {e}")),
            Said::Denied => refused(first, &what, "denies it"),
            Said::Past => refused(first, &what, "it ended at"),
            Said::Once => {
                first.unwrap_or_else(|e| panic!("{what}: {e}"));
                // Midnight may fall between two of them, but not twice.
                let more = ask_as(case, somebody, 2).and_then(|()| ask_as(case, somebody, 3));
                refused(more, &what, "has requests_per_day = 1");
            }
        }
    }
    let people = Identity::generate_named("ann", 1).expect("an identity");
    let card = ClientCard { name: "ann".into(), certificate: people.certificate() };
    change_policies(&cluster, &|policy| {
        policy.set_approver(&card).expect("it fits");
        for (case, _, right, key) in CASES {
            let (rights, keys) = (vec![right], vec![key.to_owned()]);
            let (need, of) = (1, vec!["ann".into()]);
            let approval =
                ApprovalRule { name: case.into(), rights, keys, need, of, ..ApprovalRule::default() };
            policy.set_approval(approval).expect("it fits");
        }
    });
    let plain = || all.iter().filter(|(_, said, _)| *said == Said::Nothing);
    let (case, _, somebody) = plain().next().expect("one");
    cluster.wait_until(|| ask_as(case, somebody, 4).is_err());
    // All nodes have read the same file by now, or refuse for another reason.
    for (case, _, somebody) in plain() {
        refused(ask_as(case, somebody, 5), case, &format!("must approve (approval {case})"));
    }
}

/// Under its name the copy is used whenever and however much the rules allow it there.
#[test]
fn a_key_is_copied_only_by_whom_its_rules_allow_its_uses_at_any_time_and_without_limits() {
    let mut cluster = TestCluster::define(3, 1);
    let decrypt = || rule(Right::Decrypt, "model");
    let later = "2099-01-01T00:00:00Z".parse().ok();
    let cases: Vec<(&str, Vec<Rule>, Option<&str>)> = vec![
        ("without", vec![], Some("does not allow")),
        ("freely", vec![decrypt()], None),
        ("until", vec![Rule { not_after: later, ..decrypt() }], Some("would not hold")),
        (
            "limited",
            vec![Rule { blocks_per_day: NonZeroU64::new(1 << 40), ..decrypt() }],
            Some("would not hold"),
        ),
        (
            "denied-later",
            vec![decrypt(), Rule { name: "later".into(), deny: true, not_before: later, ..decrypt() }],
            Some("denies it"),
        ),
    ];
    let all: Vec<_> = cases
        .into_iter()
        .map(|(name, rules, why)| (Somebody::new(&cluster, name, &[Right::Generate], &rules), why))
        .collect();
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let made = cluster.client().generate(key("model", "aes-128", &[Mode::Gcm])).expect("a key");
    for (somebody, why) in &all {
        let (name, usage) = (format!("copy-{}", somebody.name), vec![Usage::Decrypt]);
        let copied = somebody
            .client
            .copy("model", made.id, NewKey { name, usage, ..made.properties.clone() })
            .map(drop);
        match why {
            None => copied.expect("it may"),
            Some(why) => refused(copied, &somebody.name, why),
        }
    }
}
