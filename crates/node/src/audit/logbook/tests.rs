//! Nodes whose audit log cannot be written, and nodes whose rules change.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Right};
use polyclave_client::{Client, Error};
use polyclave_config::{ClientCard, ClientDir, NodeDir, NodeSettings, WhenUnwritable};
use polyclave_harness::postgres::Postgres;
use polyclave_store::testing::key;
use polyclave_store::{Secret, Store};
use polyclave_transport::Identity;

use crate::Running;
use crate::audit::logbook::{Logbook, open_log, renew_audit};
use crate::audit::{Event, Gap, testing, verify};
use crate::local::{Local, create};

const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn open(local: &Local, node: usize) -> NodeDir {
    NodeDir::open(&local.nodes[node]).expect("its directory")
}

/// Three running nodes, of which the first has this setting for a log that cannot be written.
fn started(dir: &Path, when_unwritable: WhenUnwritable) -> (Local, Vec<Running>, Client) {
    let local = create(&dir.join("cluster"), "shamir", 3, 1).expect("a cluster");
    let mut first = open(&local, 0);
    let mut settings = first.settings().clone();
    settings.audit.when_unwritable = when_unwritable;
    first.set_settings(settings).expect("saved");
    let nodes: Vec<Running> =
        (0..3).map(|node| Running::start(open(&local, node)).expect("started")).collect();
    until("all are ready", || nodes.iter().all(|node| node.is_ready() && node.status().connected.len() == 3));
    let client = Client::open(&ClientDir::open(&local.client).expect("readable")).expect("a client");
    client.generate(NewKey::for_modes("k", "aes-128", &[Mode::Cmac], 6400)).expect("made");
    (local, nodes, client)
}

/// A MAC of two blocks.
fn mac(client: &Client) -> Result<(), Error> {
    client.key("k").and_then(|key| key.cmac(&[7; 32])).map(drop)
}

fn store(dir: &NodeDir) -> Store {
    Store::open(&dir.store_path(), &Secret::from(dir.secret().expect("readable"))).expect("opened")
}

fn gaps(dir: &NodeDir) -> Vec<Gap> {
    let noted = store(dir).audit_head().expect("read");
    let found = verify(&dir.audit_path(), noted).expect("whole");
    found.gaps.into_iter().map(|(gap, _)| gap).collect()
}

fn log(dir: &NodeDir) -> String {
    std::fs::read_to_string(dir.audit_path()).expect("read")
}

#[test]
fn a_node_whose_log_cannot_be_written_computes_nothing_says_so_and_recovers() {
    let dir = tempfile::tempdir().expect("a directory");
    let (local, nodes, client) = started(dir.path(), WhenUnwritable::Refuse);
    mac(&client).expect("computed");
    let first = open(&local, 0);
    testing::fill_up(&first.audit_path());
    let lines = log(&first);
    for _ in 0..5 {
        let message = mac(&client).expect_err("refused").to_string();
        assert!(message.contains("audit log cannot be written"), "{message}");
        assert!(client.keys().is_ok_and(|list| list.keys.iter().all(|key| key.at.len() < 3)));
    }
    assert_eq!(log(&first), lines);
    assert!(!nodes[0].is_ready() && nodes[1].is_ready());
    testing::make_room(&first.audit_path());
    until("it is ready again", || nodes[0].is_ready());
    mac(&client).expect("computed");
    let id = client.info("k").expect("known").id;
    drop(nodes);
    assert_eq!(
        store(&first).spent(id).expect("read"),
        4,
        "two requests that were served, of two blocks each"
    );
    let gaps = gaps(&first);
    assert!(gaps.len() == 1 && gaps[0].served == 0 && gaps[0].events >= 5, "{gaps:?}");
}

#[test]
fn requests_that_a_node_serves_without_a_line_as_it_is_set_to_are_counted_also_if_it_ends_before_there_is_room()
 {
    let dir = tempfile::tempdir().expect("a directory");
    let (local, nodes, client) = started(dir.path(), WhenUnwritable::Serve);
    let first = open(&local, 0);
    testing::fill_up(&first.audit_path());
    mac(&client).expect("served all the same");
    mac(&client).expect("served all the same");
    assert!(nodes[0].is_ready());
    // The disk stays full until the node has ended.
    drop(nodes);
    testing::make_room(&first.audit_path());
    assert!(gaps(&first).is_empty() && store(&first).audit_gap().expect("read").is_some());
    drop(Running::start(open(&local, 0)).expect("started"));
    let gaps = gaps(&first);
    assert!(gaps.len() == 1 && gaps[0].served >= 2, "{gaps:?}");
    assert_eq!(store(&first).audit_gap().expect("read"), None);
}

#[test]
fn changes_of_the_rules_are_logged_while_the_node_runs_and_when_it_starts() {
    let dir = tempfile::tempdir().expect("a directory");
    let (local, mut nodes, client) = started(dir.path(), WhenUnwritable::Refuse);
    mac(&client).expect("computed");
    let first = open(&local, 0);
    assert!(
        log(&first)
            .contains("\"client\":\"client\",\"operation\":\"policy\",\"key\":\"\",\"outcome\":\"allowed\"")
    );
    let mut policy = first.policy().expect("read");
    let certificate = Identity::generate_named("eve", 1).expect("an identity").certificate();
    let hash = blake3::hash(&certificate).to_hex();
    let card = ClientCard { name: "eve".into(), certificate };
    policy.allow(&card, &[Right::Decrypt], &["pay-*".into()]).expect("it fits");
    first.save_policy(&policy).expect("saved");
    let allowed = format!("\"detail\":\"certificate=blake3:{hash} rights=decrypt keys=pay-*\"");
    until("eve is in the log", || log(&first).contains(&allowed));
    drop(nodes.remove(0));
    let before = store(&first).mark().expect("read");
    policy.revoke("eve").expect("it was there");
    first.save_policy(&policy).expect("saved");
    drop(Running::start(open(&local, 0)).expect("started"));
    assert!(
        log(&first)
            .contains("\"client\":\"eve\",\"operation\":\"policy\",\"key\":\"\",\"outcome\":\"revoked\"")
    );
    // The start, and the rules: a disk that is put back to a state that allowed eve is noticed.
    assert_eq!(store(&first).mark().expect("read").number, before.number + 2);
}

/// This stands for volumes of all nodes that are restored from an older snapshot. No peer remembers a later
/// mark.
#[test]
fn nodes_whose_stores_are_all_put_back_while_they_are_stopped_refuse_to_run_and_say_why() {
    let dir = tempfile::tempdir().expect("a directory");
    let (local, nodes, client) = started(dir.path(), WhenUnwritable::Refuse);
    mac(&client).expect("computed");
    drop(nodes);
    let copies: Vec<Vec<u8>> =
        (0..3).map(|node| std::fs::read(open(&local, node).store_path()).expect("read")).collect();
    let nodes: Vec<Running> =
        (0..3).map(|node| Running::start(open(&local, node)).expect("started")).collect();
    until("all are ready", || nodes.iter().all(|node| node.is_ready() && node.status().connected.len() == 3));
    client.delete("k").expect("deleted");
    drop(nodes);
    for (node, copy) in copies.iter().enumerate() {
        std::fs::write(open(&local, node).store_path(), copy).expect("put back");
        // Later attempts are refused, too.
        for _ in 0..3 {
            let message = Running::start(open(&local, node)).err().expect("refused").to_string();
            assert!(
                message.contains("the store was put back to an older state")
                    && message.contains("audit renew"),
                "{message}"
            );
        }
    }
    // If nothing else is left, an operator begins another log.
    renew_audit(&open(&local, 0)).expect("renewed");
    drop(Running::start(open(&local, 0)).expect("it goes on"));
}

/// At a server, and without other nodes.
#[test]
fn a_server_that_is_put_back_while_the_node_is_stopped_is_noticed_by_the_nodes_audit_log() {
    let Some(at) = Postgres::start("a server that is put back", &[]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "shamir", 3, 1).expect("a cluster");
    let mut node = open(&local, 0);
    let settings = NodeSettings { store: Some(at.url()), ..node.settings().clone() };
    node.set_settings(settings).expect("saved");
    let secret = Secret::from_bytes(*node.secret().expect("its secret"));
    let run = |seed| -> crate::Result<()> {
        let store = Arc::new(Store::of_or_new(&node, &secret).expect("opened"));
        let logbook = Logbook::new(Some(open_log(&node, &store)?), store.clone());
        store.begin_incarnation().expect("counted");
        let name = format!("k{seed}");
        store.put_pending(&key(&name, seed)).expect("put");
        store.announce(&name, [seed; 16]).expect("announced");
        // It is killed before the end of the log is noted in the store.
        logbook.append(&Event::of_node("tried", "done"))
    };
    run(1).expect("new");
    at.run("CREATE TABLE before AS SELECT * FROM polyclave_record");
    run(2).expect("it goes on");
    at.run("BEGIN; DELETE FROM polyclave_record; INSERT INTO polyclave_record SELECT * FROM before; COMMIT");
    let message = run(3).expect_err("noticed").to_string();
    assert!(message.contains("the store was put back to an older state"), "{message}");
}
