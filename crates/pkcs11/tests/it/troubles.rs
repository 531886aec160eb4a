//! Nodes that cannot serve at present, or not at all: busy, without material, unable to agree, under
//! quarantine, replaced by others. What the program is told, and that it works again when the reason has
//! passed.

use std::path::Path;
use std::time::Duration;

use cryptoki_sys::*;
use polyclave_config::{Change, ClientDir, Cluster, Consent, NodeDir};
use polyclave_node::Cheat;
use polyclave_node::local::add_nodes;
use polyclave_node::reshare::reshare;
use polyclave_store::{Secret, Store};

use crate::common::*;

/// How long nodes wait for one another while keys move.
const WAIT: Duration = Duration::from_secs(60);

/// A token of a cluster of one of the other protocols, whose nodes keep material for so many blocks.
fn with_material(protocol: &str, nodes: usize, threshold: usize, blocks: usize) -> Own {
    let mut cluster = TestCluster::define(protocol, nodes, threshold);
    cluster.set_stock(blocks);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_full();
    let configuration = cluster.configuration("own", 1, "retry_seconds = 1");
    Own { cluster, configuration }
}

fn encrypt(session: &Session<'_>, key: CK_OBJECT_HANDLE, blocks: usize) -> Result<Vec<u8>, CK_RV> {
    session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16 * blocks))
}

/// A key with the label "k". Nodes that have just started may be busy with their material for longer than the
/// module asks them.
fn made(session: &Session<'_>) -> CK_OBJECT_HANDLE {
    until_served(|| session.import("k", CKK_AES, &data(16), vec![])).expect("made")
}

#[test]
fn busy_nodes_are_asked_again_until_the_time_of_the_configuration_is_over() {
    let mut cluster = TestCluster::define("shamir", 3, 1);
    cluster.change_settings(|settings| settings.limits.requests_at_once_per_client = 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    // Two tokens, of which the second asks for longer.
    let token = |name, seconds| {
        let settings = format!("gcm_nonce = \"overwrite\"\nretry_seconds = {seconds}");
        let path = cluster.configuration(name, 1, &settings);
        std::fs::read_to_string(path).expect("written")
    };
    let configuration = cluster.configuration("both", 0, "");
    std::fs::write(&configuration, token("impatient", 1) + &token("patient", 600)).expect("written");
    let module = Module::with(&configuration);
    let sessions = [0, 1].map(|slot| {
        let session = Session::open(&module, slot);
        assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
        session
    });
    let keys = sessions.map(|session| made(&session));
    let [impatient, patient] = sessions;
    let other = Session::open(&module, 0);
    // A message whose nonce the nodes have drawn is a request under way. They wait for it for some time only,
    // which may be over on a busy machine: then it begins again.
    let begin = || match other.init(Does::Encrypt, &mut gcm(&[0; 12], b"", 128), keys[0]) {
        CKR_OK => Ok(()),
        rv => Err(rv),
    };
    let held_through = |work: &dyn Fn() -> Result<Vec<u8>, CK_RV>| loop {
        assert_eq!(until_served(begin), Ok(()));
        let message = work();
        match other.whole(Does::Encrypt, &data(20), Some(64)).0 {
            CKR_OK => break message,
            rv => assert_eq!(rv, CKR_DEVICE_ERROR, "{}", log_of(&configuration)),
        }
    };
    assert_eq!(held_through(&|| encrypt(&impatient, keys[0], 1)), Err(CKR_FUNCTION_FAILED));
    assert!(log_of(&configuration).contains("requests under way"), "{}", log_of(&configuration));
    assert!(until_served(|| encrypt(&impatient, keys[0], 1)).is_ok(), "a moment later");
    // One that is asked for longer is served as soon as the other request has ended.
    assert_eq!(until_served(begin), Ok(()));
    let asked_again = || log_of(&configuration).matches("asked again").count();
    let before = asked_again();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| encrypt(&patient, keys[1], 1));
        wait_until(|| waits.is_finished() || asked_again() > before);
        other.whole(Does::Encrypt, &data(20), Some(64));
        assert!(waits.join().expect("no panic").is_ok());
    });
}

#[test]
fn more_logins_of_a_client_than_it_may_have_connections_take_turns() {
    let mut cluster = TestCluster::define("shamir", 3, 1);
    cluster.change_settings(|settings| settings.limits.connections_per_client = 2);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let configuration = cluster.configuration("turns", 5, "retry_seconds = 600");
    let module = Module::with(&configuration);
    let sessions: Vec<_> = (0..5)
        .map(|slot| {
            let session = Session::open(&module, slot);
            assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
            (session, session.import("k", CKK_AES, &data(16), vec![]).expect("made"))
        })
        .collect();
    // Each login keeps a connection that nobody uses while the others have theirs.
    for (session, key) in sessions {
        assert!(encrypt(&session, key, 1).is_ok(), "{}", log_of(&configuration));
    }
}

#[test]
fn nodes_without_material_are_asked_again_for_a_while_and_serve_when_they_have_made_more() {
    let mut own = with_material("shamir-active", 4, 1, 8);
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = made(&session);
    own.cluster.wait_until_full();
    // More than they ever have, and then more than is left: nothing is made while a node is missing.
    assert_eq!(encrypt(&session, key, 9), Err(CKR_FUNCTION_FAILED));
    own.cluster.stop(3);
    let expected = until_served(|| encrypt(&session, key, 8)).expect("what they have");
    assert_eq!(encrypt(&session, key, 8), Err(CKR_FUNCTION_FAILED));
    assert!(
        log_of(&own.configuration).contains("the stock of the nodes holds"),
        "{}",
        log_of(&own.configuration)
    );
    own.cluster.restart(3);
    own.cluster.wait_until_full();
    assert_eq!(until_served(|| encrypt(&session, key, 8)), Ok(expected));
}

#[test]
fn nodes_that_come_to_no_answer_together_make_the_function_fail_and_no_result_wrong() {
    let mut own = with_material("shamir-active", 4, 1, 24);
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = made(&session);
    let expected = until_served(|| encrypt(&session, key, 1)).expect("encrypted");
    // Two of four are one more than the protocol corrects. The module asks once more for each node, and each
    // time the nodes wait for the one that hangs for eight of their time limits.
    let silence = Duration::from_millis(500);
    for (node, how) in [(0, None), (1, None), (2, Some(Cheat::Hangs))] {
        own.cluster.stop(node);
        own.cluster.start_impatient(node, how, silence);
    }
    own.cluster.wait_until_full();
    own.cluster.stop(3);
    assert_eq!(encrypt(&session, key, 1), Err(CKR_FUNCTION_FAILED), "{}", log_of(&own.configuration));
    own.cluster.restart(3);
    own.cluster.wait_until_full();
    assert_eq!(until_served(|| encrypt(&session, key, 1)), Ok(expected));
}

#[test]
fn nodes_under_quarantine_are_a_failed_device() {
    let mut own = with_material("spdz-tower", 2, 1, 24);
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = made(&session);
    own.cluster.wait_until_full();
    until_served(|| encrypt(&session, key, 1)).expect("encrypted");
    own.cluster.stop(1);
    // As after a failed check.
    let dir = NodeDir::open(&own.cluster.local.nodes[1]).expect("its directory");
    let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
    let store = Store::open(&dir.store_path(), &secret).expect("its store");
    store.quarantine("a check failed", 1).expect("written");
    drop(store);
    own.cluster.restart(1);
    wait_until(|| own.cluster.nodes[1].as_ref().is_some_and(|node| node.status().quarantined));
    // Until the nodes have told each other, they are not ready, or busy with that. None serves, and in the
    // end they say why.
    wait_until(|| {
        let message = encrypt(&session, key, 1).expect_err("one of two computes nothing");
        let log = log_of(&own.configuration);
        let says_why = log.contains("computes nothing any more") || log.contains("under quarantine");
        says_why && message == CKR_DEVICE_ERROR
    });
}

#[test]
fn a_program_that_is_logged_in_while_a_node_is_replaced_logs_in_again_and_has_its_keys() {
    let mut own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("moves", CKK_AES, &data(16), vec![]).expect("made");
    let expected = encrypt(&session, key, 1).expect("encrypted");
    (0..3).for_each(|node| own.cluster.stop(node));
    let dir = own.cluster.local.client.parent().expect("that of the cluster").to_path_buf();
    let old = Cluster::load(&dir.join("cluster.toml")).expect("its file");
    let added = add_nodes(&dir, 1, "node-1").expect("made");
    let change = Change { removed: vec!["node-3".into()], added, ..Change::default() };
    let new = old.reshaped(&change).expect("it fits");
    move_keys(&dir, &old, &new);
    own.cluster.local.nodes[2] = dir.join("node-4");
    (0..3).for_each(|node| own.cluster.restart(node));
    own.cluster.wait_until_ready();
    // The login is one of the nodes that there were.
    assert_eq!(encrypt(&session, key, 1), Err(CKR_DEVICE_ERROR), "{}", log_of(&own.configuration));
    ClientDir::set_cluster_of(&own.cluster.local.client, &new, Consent::Cluster).expect("saved");
    assert_eq!(call!(module, C_Logout(session.handle)), CKR_OK);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    assert_eq!(session.find(vec![text(CKA_LABEL, "moves")]), [key], "the same handle");
    assert_eq!(until_served(|| encrypt(&session, key, 1)), Ok(expected));
}

/// Has all old and new nodes take part in the move of all keys.
fn move_keys(dir: &Path, old: &Cluster, new: &Cluster) {
    std::thread::scope(|scope| {
        for number in 1..=4 {
            scope.spawn(move || {
                let node = NodeDir::open(&dir.join(format!("node-{number}"))).expect("its directory");
                let done = reshare(&node, new, Some(old), None, WAIT, &mut |_| ()).expect("it moves");
                assert!(done.all && done.left == (number == 3));
            });
        }
    });
}
