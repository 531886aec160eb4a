//! Operations that several people approve, at running nodes: every node checks by itself, and an approval
//! works once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{
    Approval, Mode, NewKey, Operation, Reason, Right, Statement, Subject, Usage, Wrapping, operations,
};
use polyclave_client::{Client, Error};
use polyclave_config::{
    ApprovalRule, ClientCard, ClientDir, ClientPolicy, Moment, NodeDir, Quorum, sign_approval,
};
use polyclave_transport::Identity;

use crate::common::messages::{gcm, ungcm};
use crate::common::{TestCluster, key};

/// Three people, and who they are.
struct Approvers([Identity; 3]);

const NAMES: [&str; 3] = ["ann", "ben", "cy"];

impl Approvers {
    fn new() -> Approvers {
        Approvers(NAMES.map(|name| Identity::generate_named(name, 1).expect("an identity")))
    }

    fn card(&self, number: usize) -> ClientCard {
        ClientCard { name: NAMES[number].into(), certificate: self.0[number].certificate() }
    }

    /// Two of the three must approve that keys named `k..` are deleted or wrapped.
    fn rule() -> ApprovalRule {
        ApprovalRule {
            name: "two".into(),
            rights: vec![Right::Delete, Right::Wrap],
            keys: vec!["k*".into()],
            need: 2,
            of: NAMES.map(str::to_owned).to_vec(),
            ..ApprovalRule::default()
        }
    }

    fn signed(&self, statement: &Statement, by: &[usize]) -> Approval {
        let mut approval = Approval::new(statement).expect("encoded");
        by.iter().for_each(|number| sign_approval(&mut approval, &self.0[*number]).expect("signed"));
        approval
    }
}

fn change_policy(cluster: &TestCluster, node: usize, change: impl Fn(&mut ClientPolicy)) {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    let mut policy = dir.policy().expect("its policy");
    change(&mut policy);
    dir.save_policy(&policy).expect("saved");
}

/// Nodes of which some want approval from the start, and the people.
fn start(who_want: &[usize]) -> (TestCluster, Approvers) {
    start_with(TestCluster::define(3, 1), who_want, &Approvers::rule())
}

fn start_with(mut cluster: TestCluster, who_want: &[usize], rule: &ApprovalRule) -> (TestCluster, Approvers) {
    let approvers = Approvers::new();
    for node in who_want {
        change_policy(&cluster, *node, |policy| {
            (0..3).for_each(|n| policy.set_approver(&approvers.card(n)).expect("it fits"));
            policy.join_approvers("custodians", "ann").expect("it fits");
            policy.join_approvers("custodians", "ben").expect("it fits");
            policy.set_approval(rule.clone()).expect("it fits");
        });
    }
    (0..cluster.local.nodes.len()).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    (cluster, approvers)
}

/// What a client would ask for, as a statement that holds for an hour.
fn draft<T>(client: Client, ask: impl Fn(&Client) -> Result<T, Error>) -> Statement {
    let taken = Arc::new(Mutex::new(None));
    let take = taken.clone();
    let drafting = client.drafting(Moment::now().seconds() + 3600, "a test", move |statement| {
        *take.lock() = Some(statement);
        Ok(())
    });
    assert!(matches!(ask(&drafting), Err(Error::Drafted)));
    let statement = taken.lock().take();
    statement.expect("it was drafted")
}

fn refused<T>(outcome: Result<T, Error>) -> (String, String) {
    match outcome {
        Err(Error::Refused { node, refusal }) => {
            assert_eq!(refusal.reason, Reason::Denied, "{refusal}");
            (node, refusal.message)
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
}

fn plain(name: &str) -> NewKey {
    key(name, "aes-128", &[Mode::Gcm])
}

#[test]
fn what_needs_approval_is_done_with_it_once_and_refused_with_anything_else() {
    let (cluster, approvers) = start(&[0, 1, 2]);
    let client = || cluster.client();
    for name in ["k", "k2", "free"] {
        client().generate(plain(name)).expect("a key");
    }
    client().delete("free").expect("no approval is needed");
    let (_, message) = refused(client().delete("k"));
    assert!(message.contains("needs approval: 2 of ann, ben, cy must approve (approval two)"), "{message}");

    let statement = draft(client(), |c| c.delete("k"));
    assert_eq!(statement.keys.len(), 1);
    let good = approvers.signed(&statement, &[0, 1]);
    let altered = |change: &dyn Fn(&mut Statement)| {
        let mut other = statement.clone();
        change(&mut other);
        approvers.signed(&other, &[0, 1])
    };
    let mut twice = approvers.signed(&statement, &[0]);
    twice.signatures.push(twice.signatures[0].clone());
    let mut forged = good.clone();
    forged.signatures[1].signature[5] ^= 1;
    let mut changed_after = good.clone();
    changed_after.statement = altered(&|s| s.purpose = "another".into()).statement;
    let mut stranger = approvers.signed(&statement, &[0]);
    // Another certificate with the name of an approver.
    sign_approval(&mut stranger, &Identity::generate_named("ben", 1).expect("an identity")).expect("signed");
    let other_operation = draft(client(), |c| c.delete("k2"));
    let mut unreadable = good.clone();
    unreadable.statement.truncate(9);
    let bad = [
        ("nobody", approvers.signed(&statement, &[]), "nobody has signed"),
        (
            "too few",
            approvers.signed(&statement, &[2]),
            "2 of ann, ben, cy must approve (approval two), and cy has signed",
        ),
        ("the same twice", twice, "and ann has signed; 1 further signatures do not count"),
        ("an altered signature", forged, "and ann has signed; 1 further"),
        ("altered after it was signed", changed_after, "nobody has signed; 2 further"),
        ("an unknown certificate", stranger, "and ann has signed; 1 further"),
        ("another operation", approvers.signed(&other_operation, &[0, 1]), "of another operation"),
        ("another cluster", altered(&|s| s.cluster = [9; 16]), "of another cluster"),
        ("expired", altered(&|s| s.not_after = Moment::now().seconds() - 1), "this approval ended at"),
        ("too long", altered(&|s| s.not_after += 40 * 24 * 3600), "31 days from now are the most"),
        (
            "another key of the name",
            altered(&|s| s.keys[0].id = [1; 16]),
            "another key than the one that is named 'k'",
        ),
        ("no key", altered(&|s| s.keys.clear()), "another key than the one that is named 'k'"),
        (
            "another client",
            altered(&|s| {
                let operation =
                    Box::new(Operation::Delete(operations::Delete { key: "k".into(), version: None }));
                s.subject = Subject::Operation { requester: vec![0x30, 1], operation };
            }),
            "for another client than client",
        ),
        (
            "of an operator",
            altered(&|s| s.subject = Subject::Policy { digest: [0; 32] }),
            "something that an operator does",
        ),
    ];
    for (what, approval, expected) in bad {
        let (_, message) = refused(client().with_approval(approval).delete("k"));
        assert!(message.contains(expected), "{what}: {message}");
        client().info("k").unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let outcome = client().with_approval(unreadable).delete("k");
    assert!(
        matches!(&outcome, Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Malformed),
        "{outcome:?}"
    );

    client().with_approval(good.clone()).delete("k").expect("approved").expect("it was there");
    client().generate(plain("k")).expect("another one");
    let (_, message) = refused(client().with_approval(good).delete("k"));
    assert!(message.contains("this approval was used at"), "{message}");
    let log =
        std::fs::read_to_string(NodeDir::open(&cluster.local.nodes[1]).expect("its directory").audit_path());
    assert!(log.expect("read").contains("approved-by=ann,ben"), "the audit log names them");
}

/// A key that wraps, and one that may be wrapped.
fn wrapping_keys(client: &Client) {
    let kek = NewKey { usage: vec![Usage::Wrap, Usage::Unwrap], modes: Vec::new(), ..plain("kek") };
    client.generate(kek).expect("a key");
    client.generate(NewKey { wrappable: true, ..plain("leaving") }).expect("a key");
}

/// Wrapping changes nothing at the nodes, so only the spent approval keeps it from being repeated.
#[test]
fn a_spent_approval_stays_spent_after_all_nodes_started_anew() {
    let (mut cluster, approvers) = start(&[0, 1, 2]);
    wrapping_keys(&cluster.client());
    let wrap = |client: &Client| client.wrap("kek", "leaving", Wrapping::Kwp);
    let statement = draft(cluster.client(), wrap);
    assert_eq!(statement.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["kek", "leaving"]);
    let approval = approvers.signed(&statement, &[1, 2]);
    assert!(refused(wrap(&cluster.client())).1.contains("needs approval"));
    wrap(&cluster.client().with_approval(approval.clone())).expect("approved");
    assert!(refused(wrap(&cluster.client().with_approval(approval.clone()))).1.contains("was used at"));
    (0..3).for_each(|node| cluster.stop(node));
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    assert!(refused(wrap(&cluster.client().with_approval(approval))).1.contains("was used at"));
}

/// As a deletion leaves it of which all nodes were killed in the middle.
#[test]
fn a_deletion_that_one_node_has_done_is_approved_and_finished() {
    for gone in 0..3 {
        let (mut cluster, approvers) = start(&[0, 1, 2]);
        let id = cluster.client().generate(plain("k")).expect("a key").id;
        cluster.stop(gone);
        cluster.store_of(gone).delete("k", id).expect("deleted");
        cluster.restart(gone);
        cluster.wait_until_ready();
        let statement = draft(cluster.client(), |client| client.delete("k"));
        let approval = approvers.signed(&statement, &[0, 1]);
        cluster.client().with_approval(approval).delete("k").expect("the others have deleted it");
        assert!(cluster.client().keys().expect("a list").keys.is_empty());
    }
}

#[test]
fn nodes_with_other_rules_are_named_and_who_was_removed_or_replaced_does_not_count() {
    let (cluster, approvers) = start(&[1]);
    let client = || cluster.client();
    client().generate(plain("k")).expect("a key");
    let (node, message) = refused(client().delete("k"));
    assert!(node == "node-2" && message.contains("needs approval"), "{node}: {message}");
    let statement = draft(client(), |c| c.delete("k"));
    // Since the approval was signed, ann has got another certificate; then she has her own again, and is
    // removed; then she is back.
    let of = |names: &[&str]| {
        let of = names.iter().map(|name| (*name).to_owned()).collect();
        ApprovalRule { of, ..Approvers::rule() }
    };
    let changes: [&dyn Fn(&mut ClientPolicy); 3] = [
        &|policy| {
            let certificate = Identity::generate_named("ann", 1).expect("an identity").certificate();
            policy.set_approver(&ClientCard { name: "ann".into(), certificate }).expect("it fits");
        },
        &|policy| {
            policy.set_approver(&approvers.card(0)).expect("it fits");
            policy.set_approval(of(&["ben", "cy"])).expect("it fits");
        },
        &|policy| policy.set_approval(of(&NAMES)).expect("it fits"),
    ];
    // What ann's signature alone is told once the node has taken the change. Alone it never suffices, so
    // asking changes nothing.
    let of_ann = [
        "2 of ann, ben, cy must approve (approval two), and nobody has signed; 1 further",
        "2 of ben, cy must approve (approval two), and nobody has signed; 1 further",
        "2 of ann, ben, cy must approve (approval two), and ann has signed",
    ];
    let refusal_of = |by: &[usize]| {
        let approved = client().with_approval(approvers.signed(&statement, by));
        refused(approved.delete("k")).1
    };
    for (step, (change, message)) in changes.iter().zip(of_ann).enumerate() {
        change_policy(&cluster, 1, change);
        cluster.wait_until(|| refusal_of(&[0]).contains(message));
        if step < 2 {
            let message = refusal_of(&[0, 1]);
            assert!(message.contains("and ben has signed; 1 further"), "{message}");
        }
    }
    client()
        .with_approval(approvers.signed(&statement, &[0, 1]))
        .delete("k")
        .expect("approved")
        .expect("it was there");
}

#[test]
fn who_asks_does_not_approve_unless_the_rule_says_so() {
    let (mut cluster, approvers) = (TestCluster::define(3, 1), Approvers::new());
    let dir = ClientDir::open(&cluster.local.client).expect("its directory");
    let asking = ClientCard { name: "ann".into(), certificate: dir.card().certificate };
    let identity = cluster.identity();
    for node in 0..3 {
        change_policy(&cluster, node, |policy| {
            policy.set_approver(&asking).expect("it fits");
            policy.set_approver(&approvers.card(1)).expect("it fits");
            let of = vec!["ann".to_owned(), "ben".to_owned()];
            let rule = ApprovalRule { of, ..Approvers::rule() };
            policy.set_approval(ApprovalRule { keys: vec!["k1".into()], ..rule.clone() }).expect("it fits");
            let counts = ApprovalRule {
                name: "counts".into(),
                keys: vec!["k2".into()],
                requester_counts: true,
                ..rule
            };
            policy.set_approval(counts).expect("it fits");
        });
    }
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    for name in ["k1", "k2"] {
        cluster.client().generate(plain(name)).expect("a key");
    }
    let approved = |name: &str| {
        let mut approval = approvers.signed(&draft(cluster.client(), |c| c.delete(name)), &[1]);
        sign_approval(&mut approval, &identity).expect("signed");
        cluster.client().with_approval(approval)
    };
    assert!(refused(approved("k1").delete("k1")).1.contains("and ben has signed; 1 further"));
    approved("k2").delete("k2").expect("the rule counts it").expect("it was there");
}

/// Somebody of a group, and cy besides: 1 of @custodians and 1 of cy.
#[test]
fn a_rule_with_groups_needs_somebody_of_each_part_who_is_in_the_group_now() {
    let rule = ApprovalRule {
        need: 1,
        of: vec!["@custodians".into()],
        and: vec![Quorum { need: 1, of: vec!["cy".into()] }],
        ..Approvers::rule()
    };
    let (cluster, approvers) = start_with(TestCluster::define(3, 1), &[1], &rule);
    let client = || cluster.client();
    client().generate(plain("k")).expect("a key");
    let statement = draft(client(), |c| c.delete("k"));
    let asked =
        |by: &[usize]| refused(client().with_approval(approvers.signed(&statement, by)).delete("k")).1;
    let needs = "1 of @custodians and 1 of cy must approve (approval two)";
    assert!(refused(client().delete("k")).1.contains(needs));
    assert!(asked(&[2]).contains(&format!("{needs}, and of @custodians nobody has signed; 1 further")));
    assert!(asked(&[0, 1]).contains(&format!("{needs}, and of cy nobody has signed; 2 further")));
    // Ben has signed, and is taken out of the group since.
    let group = |members: &'static str| {
        change_policy(&cluster, 1, move |policy| {
            let text = policy.to_text().replace("approvers = [\"ann\", \"ben\"]", members);
            let text = text.replace("approvers = [\n    \"ann\",\n    \"ben\",\n]", members);
            assert!(text.contains(members), "{text}");
            *policy = ClientPolicy::parse(&text).expect("it fits");
        });
    };
    group("approvers = [\"ann\"]");
    cluster.wait_until(|| asked(&[1]).contains("of @custodians nobody has signed; 1 further"));
    assert!(asked(&[1, 2]).contains("of @custodians nobody has signed; 2 further"));
    let approval = approvers.signed(&statement, &[0, 2]);
    client().with_approval(approval).delete("k").expect("approved").expect("it was there");
}

/// A rule for the use of keys.
fn of_use() -> ApprovalRule {
    ApprovalRule { rights: vec![Right::Decrypt, Right::Delete, Right::Generate], ..Approvers::rule() }
}

#[test]
fn an_approval_names_the_version_and_one_of_the_current_version_ends_with_a_rotation() {
    let (cluster, approvers) = start_with(TestCluster::define(3, 1), &[0, 1, 2], &of_use());
    let client = || cluster.client();
    let approved = |statement: &Statement| client().with_approval(approvers.signed(statement, &[0, 2]));
    let rotate = || {
        let statement = draft(client(), |c| c.rotate("k"));
        approved(&statement).rotate("k").expect("approved").version
    };
    let made = draft(client(), |c| c.generate(plain("k")));
    let first = approved(&made).generate(plain("k")).expect("approved");
    let sealed = gcm(&client(), "k", b"", b"old").expect("encryption needs no approval");
    assert_eq!(rotate(), 2);
    assert!(refused(ungcm(&client(), "k@1", b"", &sealed)).1.contains("needs approval"));

    let named = |statement: &Statement| {
        statement.keys.iter().map(|key| (key.name.clone(), key.version, key.id)).collect::<Vec<_>>()
    };
    let of_one = draft(client(), |c| ungcm(c, "k@1", b"", &sealed));
    assert_eq!(named(&of_one), [("k".to_owned(), 1, first.id)]);
    let destroyed = draft(client(), |c| c.delete_version("k", 1));
    assert_eq!(named(&destroyed), named(&of_one));
    let of_current = draft(client(), |c| ungcm(c, "k", b"", &sealed));
    let deleted = draft(client(), |c| c.delete("k"));
    let again = draft(client(), |c| c.rotate("k"));
    assert_eq!(named(&of_current), named(&deleted));
    assert_eq!(named(&deleted)[0].1, 2);

    // The key is rotated while all these wait for their signatures.
    assert_eq!(rotate(), 3);
    let why = "this approval is for version 2 of the key 'k', which has version 3 now; ask for a new one";
    for message in [
        refused(ungcm(&approved(&of_current), "k", b"", &sealed)).1,
        refused(approved(&deleted).delete("k")).1,
        refused(approved(&again).rotate("k")).1,
    ] {
        assert!(message.contains(why), "{message}");
    }
    // What names its version means it still, and nothing else.
    let message = refused(ungcm(&approved(&of_one), "k@2", b"", &sealed)).1;
    assert!(message.contains("of another operation"), "{message}");
    assert_eq!(ungcm(&approved(&of_one), "k@1", b"", &sealed).expect("approved"), b"old");
    assert!(refused(ungcm(&approved(&of_one), "k@1", b"", &sealed)).1.contains("was used at"));
    approved(&destroyed).delete_version("k", 1).expect("approved").expect("it was there");
    assert_eq!(client().versions("k").expect("shown").len(), 2);
}

/// Does something that has to be possible soon, each time with an approval of its own: one whose operation
/// fails is spent.
fn insist<T>(what: &str, attempt: &dyn Fn() -> Result<T, Error>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(e.may_pass() && Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn approvals_are_wanted_and_work_once_under_every_protocol_with_active_security() {
    for (protocol, nodes, threshold) in
        [("shamir-active", 4, 1), ("spdz-lt", 2, 1), ("tinytable-linear64", 2, 1)]
    {
        let cluster = TestCluster::define_with(protocol, nodes, threshold);
        cluster.set_stock(256, 0);
        let everywhere: Vec<usize> = (0..nodes).collect();
        let rule = ApprovalRule { rights: vec![Right::Decrypt, Right::Delete], ..Approvers::rule() };
        let (cluster, approvers) = start_with(cluster, &everywhere, &rule);
        let client = || cluster.client();
        let mut spent = Vec::new();
        let keep = Mutex::new(&mut spent);
        let approved = |statement: Statement| {
            let approval = approvers.signed(&statement, &[0, 1]);
            keep.lock().push(approval.clone());
            client().with_approval(approval)
        };
        insist("a key", &|| client().generate(plain("k")));
        let sealed = insist("encrypted", &|| gcm(&client(), "k", b"", b"old"));
        insist("rotated", &|| client().rotate("k"));
        let message = ungcm(&client(), "k@1", b"", &sealed).expect_err("it needs approval").to_string();
        assert!(message.contains("needs approval"), "{protocol}: {message}");
        let opened = insist("decrypted", &|| {
            let statement = draft(client(), |c| ungcm(c, "k@1", b"", &sealed));
            ungcm(&approved(statement), "k@1", b"", &sealed)
        });
        assert_eq!(opened, b"old", "{protocol}");
        let of_delete = draft(client(), |c| c.delete("k"));
        approved(of_delete).delete("k").expect("approved").expect("it was there");
        insist("a key", &|| client().generate(plain("k")));
        let message = client().with_approval(spent.pop().expect("of the deletion")).delete("k");
        let message = message.expect_err("it is spent").to_string();
        assert!(message.contains("was used at"), "{protocol}: {message}");
    }
}
