//! Versions of a key: they are made, found again by what was encrypted under them, retired, and destroyed one
//! by one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polyclave_api::{Mode, NewKey, Origin, Reason, Right, Usage, VersionState, Wrapping};
use polyclave_store::{KeyState, StoredKey, Which};

use crate::common::messages::{cmac, gcm, open, seal, ungcm};
use crate::common::{TestCluster, key};
use polyclave_client::{Error, Result, Withdrawal};

/// The refusal of nodes that a request met.
fn refused<T: std::fmt::Debug>(outcome: Result<T>, why: &str) {
    match outcome {
        Err(Error::Refused { refusal, .. }) => {
            assert!(refusal.message.contains(why), "{refusal}");
            let of_keys = [Reason::Key, Reason::NoSuchKey, Reason::NotForThis];
            assert!(of_keys.contains(&refusal.reason), "{refusal:?}");
        }
        other => panic!("it was not refused because '{why}': {other:?}"),
    }
}

/// Does something that has to be possible again soon.
fn insist<T>(what: &str, attempt: &dyn Fn() -> Result<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(e.may_pass() && Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

#[test]
fn what_was_encrypted_under_any_version_is_decrypted_after_rotations() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let first = client.generate(key("turning", "aes-128", &[Mode::Gcm])).expect("a key");
    let mut sealed = vec![seal(&client, "turning", b"version 1").expect("sealed")];
    let mut plain = vec![gcm(&client, "turning", b"", b"version 1").expect("encrypted")];
    for version in 2..=4_u32 {
        let made = client.rotate("turning").expect("rotated");
        assert_eq!((made.version, made.origin), (version, Origin::Generated));
        assert!(made.id != first.id && made.check_value != first.check_value);
        let message = format!("version {version}");
        sealed.push(seal(&client, "turning", message.as_bytes()).expect("sealed"));
        plain.push(gcm(&client, "turning", b"", message.as_bytes()).expect("encrypted"));
    }
    for (version, (sealed, plain)) in (1..).zip(sealed.iter().zip(&plain)) {
        let message = format!("version {version}");
        assert_eq!(open(&client, "turning", sealed).expect("it names its version"), message.as_bytes());
        let named = format!("turning@{version}");
        assert_eq!(ungcm(&client, &named, b"", plain).expect("under its version"), message.as_bytes());
    }
    assert!(matches!(ungcm(&client, "turning", b"", &plain[0]), Err(Error::Unauthentic(_))));
    assert!(
        ungcm(&client, "turning@9", b"", &plain[0]).expect_err("none").to_string().contains("does not exist")
    );
    let versions: Vec<u32> =
        client.versions("turning").expect("shown").iter().map(|info| info.version).collect();
    assert_eq!(versions, [4, 3, 2, 1]);
    assert_eq!(client.info("turning").expect("shown").version, 4);
    let listed = client.keys().expect("listed");
    let of_key = listed.keys.iter().filter(|listed| listed.info.properties.name == "turning");
    let of_key: Vec<_> = of_key.map(|listed| (listed.info.version, listed.at.len())).collect();
    assert_eq!(of_key, [(1, 3), (2, 3), (3, 3), (4, 3)]);
    client.delete("turning").expect("deleted").expect("it was there");
    refused(open(&client, "turning", &sealed[0]), "destroyed");
    client.generate(key("turning", "aes-128", &[Mode::Gcm])).expect("the name is free");
    client.delete("turning").expect("deleted");
}

#[test]
fn every_version_has_a_budget_of_its_own() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(NewKey { budget_blocks: 20, ..key("poor", "aes-128", &[Mode::Gcm]) }).expect("a key");
    let until = Instant::now() + Duration::from_secs(60);
    let spent = loop {
        assert!(Instant::now() < until);
        if let Err(e) = gcm(&client, "poor", b"", &[7; 32]) {
            break e;
        }
    };
    assert!(spent.to_string().contains("budget"), "{spent}");
    client.rotate("poor").expect("rotated");
    gcm(&client, "poor", b"", &[7; 32]).expect("the next version has a budget");
    client.delete("poor").expect("deleted");
}

#[test]
fn a_retired_version_does_what_its_state_allows_and_does_not_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let uses = [Right::Encrypt, Right::Decrypt, Right::Mac];
    let user = cluster.client_with("user-of-retired", &uses, &["retired"]);
    client.generate(key("retired", "aes-128", &[Mode::Gcm, Mode::Cmac])).expect("a key");
    let old = seal(&user, "retired", b"old").expect("sealed");
    let code = cmac(&user, "retired", b"old").expect("a code");
    client.rotate("retired").expect("rotated");
    refused(client.retire("retired", 3, VersionState::Deactivated), "the current one is version 2");
    assert!(
        user.retire("retired", 1, VersionState::Deactivated)
            .expect_err("no right")
            .to_string()
            .contains("configure")
    );

    client.retire("retired", 1, VersionState::Deactivated).expect("deactivated");
    client.retire("retired", 1, VersionState::Deactivated).expect("twice is once");
    refused(gcm(&user, "retired@1", b"", b"x"), "is deactivated");
    refused(cmac(&user, "retired@1", b"old"), "is deactivated");
    assert_eq!(open(&user, "retired", &old).expect("it decrypts"), b"old");
    assert_eq!(cmac(&client, "retired@1", b"old").expect("to verify"), code);

    client.retire("retired", 1, VersionState::Compromised).expect("compromised");
    refused(open(&user, "retired", &old), "is compromised");
    assert_eq!(open(&client, "retired", &old).expect("with the right configure"), b"old");
    refused(gcm(&client, "retired@1", b"", b"x"), "is compromised");
    for back in [VersionState::Active, VersionState::Deactivated] {
        refused(client.retire("retired", 1, back), "does not become");
    }
    seal(&user, "retired", b"new").expect("the current version is not affected");
    // The current one, too.
    client.retire("retired", 2, VersionState::Deactivated).expect("deactivated");
    refused(seal(&user, "retired", b"new"), "polyclave key rotate retired");
    client.rotate("retired").expect("rotated");
    seal(&user, "retired", b"new").expect("under version 3");
    client.delete("retired").expect("deleted");
}

#[test]
fn an_expired_key_only_decrypts_and_its_successor_lives_as_long() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let expiring = |expires| NewKey { expires: Some(expires), ..key("expiring", "aes-128", &[Mode::Gcm]) };
    refused(client.generate(expiring(now())), "expired already");
    let expires = now() + 30;
    let first = client.generate(expiring(expires)).expect("a key");
    let sealed = seal(&client, "expiring", b"before").expect("sealed");
    while now() <= expires {
        std::thread::sleep(Duration::from_millis(200));
    }
    refused(seal(&client, "expiring", b"after"), "has expired");
    assert_eq!(open(&client, "expiring", &sealed).expect("it decrypts"), b"before");
    let next = client.rotate("expiring").expect("rotated");
    assert_eq!(next.properties.expires, Some(next.made + (expires - first.made)));
    client.delete("expiring").expect("deleted");
}

#[test]
fn versions_below_the_least_compute_nothing_until_it_is_lowered_again() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("least", "aes-128", &[Mode::Gcm])).expect("a key");
    let sealed = seal(&client, "least", b"old").expect("sealed");
    client.rotate("least").expect("rotated");
    for wrong in [0, 3] {
        refused(client.configure("least", wrong, true), "is 1 to 2");
    }
    client.configure("least", 2, false).expect("configured");
    refused(open(&client, "least", &sealed), "its least version is 2");
    refused(client.delete("least"), "may not be deleted");
    refused(client.delete_version("least", 1), "may not be deleted");
    assert_eq!(client.rotate("least").expect("rotated").least_version, 2);
    client.configure("least", 1, true).expect("configured");
    assert_eq!(open(&client, "least", &sealed).expect("it computes again"), b"old");
    client.delete("least").expect("deleted");
}

#[test]
fn one_version_is_destroyed_and_its_number_is_not_used_again() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("destroyed", "aes-128", &[Mode::Gcm])).expect("a key");
    let sealed: Vec<_> = (1..=2)
        .map(|version| {
            let sealed = seal(&client, "destroyed", &[version]).expect("sealed");
            client.rotate("destroyed").expect("rotated");
            sealed
        })
        .collect();
    refused(client.delete_version("destroyed", 3), "is the current one");
    refused(client.delete_version("destroyed", 4), "there is no version 4");
    client.delete_version("destroyed", 1).expect("deleted").expect("it was there");
    assert_eq!(client.delete_version("destroyed", 1).expect("nothing to do"), None);
    refused(open(&client, "destroyed", &sealed[0]), "was destroyed");
    assert!(gcm(&client, "destroyed@1", b"", b"x").expect_err("gone").to_string().contains("was destroyed"));
    assert_eq!(open(&client, "destroyed", &sealed[1]).expect("another version"), [2]);
    assert_eq!(client.rotate("destroyed").expect("rotated").version, 4);
    client.delete("destroyed").expect("deleted");
}

#[test]
fn a_description_is_replaced_by_who_has_seen_the_latest() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let new = NewKey { label: "first".into(), ..key("described", "aes-128", &[Mode::Gcm]) };
    let made = client.generate(new).expect("a key");
    assert_eq!((made.properties.label.as_str(), made.revision), ("first", 0));
    let named = ("described", made.id);
    client.describe(named, 0, "second", &[1; 4096]).expect("described");
    let info = client.info("described").expect("shown");
    assert_eq!((info.properties.label.as_str(), info.revision), ("second", 1));
    assert_eq!(info.properties.attributes, [1; 4096]);
    client.describe(named, 0, "second", &[1; 4096]).expect("a repetition");
    refused(client.describe(named, 0, "third", &[]), "is at revision 1, not 0");
    refused(client.describe(named, 1, "third", &[1; 4097]), "at most 4096 bytes");
    refused(client.describe(named, 1, &"l".repeat(129), &[]), "label");
    refused(client.describe(("described", [9; 16]), 1, "third", &[]), "not made under the key");
    for ahead in [2, 3, u64::MAX - 1, u64::MAX] {
        refused(client.describe(named, ahead, "third", &[]), "is at revision 1, not");
    }
    assert_eq!(client.info("described").expect("shown"), info, "nothing has changed");
    seal(&client, "described", b"x").expect("it is the same key");
    assert_eq!(client.rotate("described").expect("rotated").properties.label, "second");
    client.delete("described").expect("deleted");
}

/// A node was killed during a change, another one was put back to an old backup: the next change is made at
/// all of them, by who has seen the latest revision, which only one node has.
#[test]
fn nodes_at_other_revisions_catch_up_with_the_next_description() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let made = client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    for (node, revision) in [7, 6, 2].into_iter().enumerate() {
        cluster.stop(node);
        let store = cluster.store_of(node);
        let describe = |info: &mut polyclave_api::KeyInfo| {
            (info.revision, info.properties.label) = (revision, format!("label {revision}"));
        };
        store.amend("k", describe).expect("changed");
        drop(store);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    let (client, named) = (cluster.client(), ("k", made.id));
    let change = |revision, label: &str| insist_or_refuse(&|| client.describe(named, revision, label, &[]));
    for (wrong, at) in [(2, 6), (6, 7), (8, 7)] {
        let message = change(wrong, "other").expect_err("refused").to_string();
        assert!(message.contains("is at revision"), "{wrong} {at}: {message}");
    }
    change(6, "label 7").expect("the change that was interrupted is repeated");
    change(7, "label 8").expect("the next one");
    change(7, "label 8").expect("a repetition");
    let versions = client.versions("k").expect("shown");
    assert_eq!(versions.len(), 1, "all nodes show the same: {versions:?}");
    assert_eq!((versions[0].revision, versions[0].properties.label.as_str()), (8, "label 8"));
}

/// Does something until it succeeds, or is refused for good.
fn insist_or_refuse<T>(attempt: &dyn Fn() -> Result<T>) -> Result<T> {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match attempt() {
            Err(e) if e.may_pass() && Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
            outcome => return outcome,
        }
    }
}

#[test]
fn what_is_withdrawn_is_gone_for_all_versions_and_never_granted_again() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let new = NewKey { wrappable: true, ..key("withdrawn", "aes-128", &[Mode::Gcm, Mode::Cmac]) };
    client.generate(new).expect("a key");
    let kek = NewKey { usage: vec![Usage::Wrap, Usage::Unwrap], ..key("withdrawn-kek", "aes-128", &[]) };
    client.generate(kek).expect("a key");
    let sealed = seal(&client, "withdrawn", b"old").expect("sealed");
    client.rotate("withdrawn").expect("rotated");
    let wrap = || client.wrap("withdrawn-kek", "withdrawn", Wrapping::Kw);
    wrap().expect("it may leave");

    let user = cluster.client_with("no-configurer", &[Right::Encrypt], &["withdrawn"]);
    let wrappable = Withdrawal { wrappable: true, usage: Vec::new() };
    let denied = user.withdraw("withdrawn", (1, true), &wrappable).expect_err("no right").to_string();
    assert!(denied.contains("configure"), "{denied}");
    for _ in 0..2 {
        client.withdraw("withdrawn", (1, true), &wrappable).expect("withdrawn, and twice is once");
    }
    refused(wrap(), "that was withdrawn");
    client.configure("withdrawn", 1, true).expect("this grants nothing");
    refused(wrap(), "that was withdrawn");

    let encrypt = Withdrawal { usage: vec![Usage::Encrypt, Usage::Derive], ..Withdrawal::default() };
    client.withdraw("withdrawn", (1, true), &encrypt).expect("withdrawn");
    for name in ["withdrawn", "withdrawn@1"] {
        refused(gcm(&client, name, b"", b"x"), "is for the usage decrypt, mac, not encrypt");
    }
    assert_eq!(open(&client, "withdrawn", &sealed).expect("it decrypts"), b"old");
    cmac(&client, "withdrawn", b"x").expect("it computes codes");
    let all = Withdrawal { usage: vec![Usage::Decrypt, Usage::Mac], ..Withdrawal::default() };
    refused(client.withdraw("withdrawn", (1, true), &all), "nothing would be left");

    let next = client.rotate("withdrawn").expect("rotated");
    assert!(!next.properties.wrappable && next.properties.usage == [Usage::Decrypt, Usage::Mac]);
    refused(gcm(&client, "withdrawn", b"", b"x"), "not encrypt");
    client.delete("withdrawn").expect("deleted");
}

/// One node does not know yet that something was withdrawn, because it was killed: nothing is done without
/// the others, who do, and what is still allowed goes on. The repetition brings them together.
#[test]
fn a_withdrawal_that_was_interrupted_is_enforced_by_who_knows_it_and_completed_when_repeated() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("half", "aes-128", &[Mode::Gcm])).expect("a key");
    let sealed = seal(&client, "half", b"old").expect("sealed");
    for node in 0..2 {
        cluster.stop(node);
        let store = cluster.store_of(node);
        store.amend("half", |info| info.properties.usage = vec![Usage::Decrypt]).expect("changed");
        drop(store);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    let client = cluster.client();
    insist_or_refuse(&|| gcm(&client, "half", b"", b"x")).expect_err("two of three refuse");
    assert_eq!(insist("opened", &|| open(&client, "half", &sealed)), b"old");
    let what = Withdrawal { usage: vec![Usage::Encrypt], ..Withdrawal::default() };
    insist("repeated", &|| client.withdraw("half", (1, true), &what));
    let shown = client.versions("half").expect("shown");
    assert_eq!((shown.len(), shown[0].properties.usage.as_slice()), (1, &[Usage::Decrypt][..]));
}

#[test]
fn keys_are_used_while_they_are_rotated_and_of_two_that_rotate_each_makes_a_version_or_waits() {
    let cluster = TestCluster::shared();
    cluster.client().generate(key("busy", "aes-128", &[Mode::Gcm])).expect("a key");
    let made: Vec<u32> = std::thread::scope(|scope| {
        let rotating: Vec<_> = (0..2)
            .map(|_| {
                let client = cluster.client();
                scope.spawn(move || -> Vec<u32> {
                    let made = (0..5).filter_map(|_| match client.rotate("busy") {
                        Ok(info) => Some(info.version),
                        Err(Error::Refused { refusal, .. }) => {
                            assert!(
                                matches!(refusal.reason, Reason::Busy | Reason::Disagreement),
                                "{refusal}"
                            );
                            None
                        }
                        Err(e) => panic!("{e}"),
                    });
                    made.collect()
                })
            })
            .collect();
        let client = cluster.client();
        for number in 0..20_u8 {
            let sealed = seal(&client, "busy", &[number]).expect("sealed");
            assert_eq!(open(&client, "busy", &sealed).expect("opened"), [number]);
        }
        rotating.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut sorted = made.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), made.len(), "every version was made once: {made:?}");
    let versions = cluster.client().versions("busy").expect("shown");
    assert!(versions.len() > made.len(), "{made:?}");
    assert_eq!(versions[0].version as usize, versions.len(), "they are numbered without a gap");
    cluster.client().delete("busy").expect("deleted");
}

/// Nodes are stopped somewhere in rotations. Every version that was promised is at all nodes, and what was
/// encrypted is decrypted.
#[test]
fn no_version_is_lost_or_half_made_whenever_a_node_dies() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("turning", "aes-128", &[Mode::Gcm])).expect("a key");
    let mut sealed = Vec::new();
    for round in 0..6_u64 {
        let victim = (round % 3) as usize;
        let node = cluster.nodes[victim].take().expect("it runs");
        let dying = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 150));
            drop(node);
        });
        let mut promised = Vec::new();
        while let Ok(made) = client.rotate("turning") {
            promised.push(made);
        }
        dying.join().expect("it stopped");
        cluster.restart(victim);
        cluster.wait_until_ready();
        let listed = client.keys().expect("a list");
        for made in &promised {
            let at = listed.keys.iter().find(|listed| listed.info == *made).map(|listed| listed.at.len());
            assert_eq!(at, Some(3), "version {} was promised", made.version);
        }
        let message = round.to_le_bytes();
        sealed.push((message, insist("usable", &|| seal(&client, "turning", &message))));
        // A request that has failed can hold the name for a while.
        let version = insist("rotated", &|| client.rotate("turning")).version;
        assert!(version as usize > promised.len());
        for (message, sealed) in &sealed {
            assert_eq!(open(&client, "turning", sealed).expect("decrypted"), message);
        }
    }
    let listed = client.keys().expect("a list").keys;
    assert!(listed.iter().all(|listed| listed.at.len() == 3), "{listed:?}");
    let numbers: Vec<u32> = listed.iter().map(|listed| listed.info.version).collect();
    assert_eq!(numbers, (1..=listed.len() as u32).collect::<Vec<_>>());
}

/// What a killed node can leave: a version that is pending where others have announced it, or that some lack.
/// Put into the stores while the nodes are stopped.
#[test]
fn a_version_that_was_interrupted_is_completed_or_made_anew() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("model", "aes-128", &[Mode::Gcm])).expect("a key");
    client.rotate("model").expect("rotated");
    for node in 0..3 {
        cluster.stop(node);
        let store = cluster.store_of(node);
        let put = |name: &str, version: u32, is_announced: bool| {
            let model = store.find("model", Which::Version(version)).expect("read").expect("there");
            let mut info = model.info.clone();
            info.properties.name = name.into();
            info.id = [name.as_bytes()[0] + version as u8; 16];
            let id = info.id;
            let stored =
                StoredKey { info, state: KeyState::Pending, shares: model.shares.clone(), maker: None };
            store.put_pending(&stored).expect("put");
            if is_announced {
                store.announce(name, id).expect("announced");
            }
        };
        put("announced-at-one", 1, true);
        put("announced-at-one", 2, node == 0);
        put("held-by-all", 1, true);
        put("held-by-all", 2, false);
        put("lacking", 1, true);
        if node > 0 {
            put("lacking", 2, false);
        }
        drop(store);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    let client = cluster.client();
    for (name, used, next) in [("announced-at-one", 2, 3), ("held-by-all", 1, 3), ("lacking", 1, 2)] {
        let sealed = seal(&client, name, b"in between").unwrap_or_else(|e| panic!("{name}: {e}"));
        let version = client.version(name, used).expect("shown");
        assert_eq!(sealed[16..32], version.id, "{name}");
        assert_eq!(client.rotate(name).expect("rotated").version, next, "{name}");
        assert_eq!(open(&client, name, &sealed).expect("opened"), b"in between");
        let listed = client.keys().expect("listed").keys;
        let mut of_name = listed.iter().filter(|listed| listed.info.properties.name == name);
        assert!(of_name.all(|listed| listed.at.len() == 3), "{name}: {listed:?}");
    }
}

#[test]
fn versions_are_made_and_found_under_protocols_with_active_security() {
    for (protocol, nodes, threshold) in [("shamir-active", 4, 1), ("spdz-lt", 2, 1)] {
        let mut cluster = TestCluster::define_with(protocol, nodes, threshold);
        cluster.set_stock(256, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        insist("a key", &|| client.generate(key("k", "aes-128", &[Mode::Gcm])));
        let old = insist("sealed", &|| seal(&client, "k", b"old"));
        insist("rotated", &|| client.rotate("k"));
        let new = insist("sealed", &|| seal(&client, "k", b"new"));
        assert_ne!(old[16..32], new[16..32]);
        client.retire("k", 1, VersionState::Deactivated).expect("deactivated");
        assert_eq!(insist("opened", &|| open(&client, "k", &old)), b"old");
        assert_eq!(insist("opened", &|| open(&client, "k", &new)), b"new");
    }
}
