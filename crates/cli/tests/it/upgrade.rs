//! What two releases refuse of each other, and features that are switched on.

use std::collections::BTreeMap;

use polyclave_api::Mode;
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_harness::postgres::Postgres;
use polyclave_node::local::worker_dir;
use polyclave_protocol::versions::NODES;
use serde_json::Value;

use crate::common::{Place, Release, Running};
use crate::kill_all::{CODE, KEY, insist, message, new_key};

fn start(place: &Place, node: usize, release: &Release) -> Running {
    place.start_as(release, &format!("node run try/node-{node} --log warn"))
}

fn until_ready(nodes: &[Running]) {
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
}

fn status(place: &Place, node: usize) -> Value {
    let said = place.output(&format!("node status try/node-{node} --json")).stdout;
    serde_json::from_slice(&said).expect("it is JSON")
}

/// All files of a folder and what is in them.
fn contents(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let names = place.names_in(folder);
    names.into_iter().map(|name| (name.clone(), place.read(&format!("{folder}/{name}")))).collect()
}

#[test]
fn two_releases_apart_nodes_and_clients_are_refused_and_told_through_which_release_to_go() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    let (this, next, apart) = (Release::this(), Release::ahead(1), Release::ahead(2));
    let nodes: Vec<Running> = (1..=3).map(|node| start(&place, node, &this)).collect();
    until_ready(&nodes);
    place.run("key generate k");
    let message = place.fails_as(&apart, "key list");
    let between = "upgrade that one, first to the next release";
    assert!(message.contains(between), "{message}");
    place.run_as(&next, "key list");

    let mut nodes = nodes;
    nodes.remove(2).end();
    nodes.push(start(&place, 3, &apart));
    let newest = NODES.spoken().newest;
    let why = |node: usize, peer: &str| status(&place, node)["why_missing"][peer].as_str().map(str::to_owned);
    let told = |node: usize, peer: &str, part: &str| {
        place.until(part, || why(node, peer).is_some_and(|why| why.contains(part)));
    };
    let to = newest + 1;
    let by_older = format!(
        "and this node version {newest}: upgrade this node, first to a release that speaks version {to}"
    );
    told(1, "node-3", &by_older);
    told(3, "node-1", between);
    // The client's own release does not matter to a cluster that it can speak to; now it speaks to one node
    // less.
    place.run("key list");
}

/// A file has a later version only if it has a field that came later.
#[test]
fn a_cluster_file_of_a_later_version_is_refused_by_a_program_that_cannot_read_it_and_changes_nothing() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    let text = String::from_utf8(place.read("try/cluster.toml")).expect("it is text");
    assert!(!text.contains("version"), "{text}");
    let later = text.replace("id =", "version = 2\nrelease = \"0.9.0\"\nid =");
    place.write("later.toml", later.as_bytes());
    let before = contents(&place, "try/node-1");
    for command in ["cluster show later.toml", "node join try/node-1 later.toml"] {
        let message = place.fails(command);
        assert!(
            message.contains("has version 2") && message.contains("Upgrade this program to 0.9.0"),
            "{command}: {message}"
        );
    }
    assert_eq!(contents(&place, "try/node-1"), before, "nothing was changed");
    // A program of the next release knows that version, and keeps it.
    let next = Release::ahead(1);
    place.run_as(&next, "node join try/node-1 later.toml");
    assert!(String::from_utf8_lossy(&place.read("try/node-1/cluster.toml")).contains("version = 2"));
    let message = place.fails("node run try/node-1");
    assert!(message.contains("Upgrade this program to 0.9.0"), "{message}");
}

#[test]
fn a_feature_is_switched_on_when_all_nodes_know_it_and_then_older_programs_change_nothing() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    let (this, next) = (Release::this(), Release::ahead(1));
    let mut nodes: Vec<Running> =
        (1..=3).map(|node| start(&place, node, if node == 3 { &this } else { &next })).collect();
    until_ready(&nodes);
    place.write("message", &message());
    let client =
        || Client::open(&ClientDir::open(&place.path("try/client")).expect("there")).expect("a client");
    let key = hex::decode(KEY).expect("hexadecimal");
    insist("import", || client().import(new_key("known", Mode::Cmac), &key));
    let mac = |release: &Release| {
        place.run_as(release, &format!("mac --key known message --verify {CODE}"));
    };
    mac(&this);
    let features = |node: usize| place.run_as(&next, &format!("node features try/node-{node}"));
    assert!(place.run("node features try/node-3").contains("no features"));
    let told = features(1);
    assert!(told.contains("example  off; before it can be switched on, node-3 must be connected"), "{told}");
    // Nothing is switched on while one node does not know it, and nothing that nobody knows.
    let message = place.fails_as(&next, "node features try/node-1 --switch-on example");
    assert!(message.contains("node-3 must be connected and run the next release"), "{message}");
    let message = place.fails_as(&next, "node features try/node-1 --switch-on flying");
    assert!(message.contains("knows no feature 'flying'"), "{message}");
    let message = place.fails("node features try/node-3 --switch-on example");
    assert!(message.contains("knows no feature 'example'"), "{message}");
    assert!(!place.names_in("try/node-1").contains(&"needs.toml".to_owned()));

    // Until then a node goes back to the program of before.
    nodes.remove(0).end();
    nodes.insert(0, start(&place, 1, &this));
    nodes[0].wait_for("is ready");
    mac(&this);
    for node in [0, 2] {
        nodes.remove(node).end();
        nodes.insert(node, start(&place, node + 1, &next));
        nodes[node].wait_for("is ready");
    }
    place.until("all know it", || features(1).contains("example  off; it can be switched on"));
    place.run_as(&next, "node features try/node-1 --switch-on example");
    place.until("the others are named", || features(1).contains("on here, and not yet at node-2, node-3"));
    mac(&next);
    (2..=3).for_each(|node| {
        drop(place.run_as(&next, &format!("node features try/node-{node} --switch-on example")))
    });
    place.until("it is on", || (1..=3).all(|node| features(node).contains("example  on\n")));
    mac(&this);
    let log = place.run_as(&next, "node audit show try/node-1");
    assert!(log.contains("switch-on") && log.contains("feature=example"), "{log}");

    // The way back is closed, and an older program finds that out before it has changed a byte.
    place.run_as(&next, "node backup try/node-1 backup --key backup.key");
    nodes.into_iter().for_each(Running::end);
    let before = contents(&place, "try/node-1");
    for command in [
        "run try/node-1",
        "status try/node-1",
        "backup try/node-1 other --key other.key",
        "features try/node-1",
    ] {
        let message = place.fails(&format!("node {command}"));
        assert!(
            message.contains("needs the feature 'example'")
                && message.contains("Run the next release or a later"),
            "{command}: {message}"
        );
    }
    assert_eq!(contents(&place, "try/node-1"), before, "nothing was changed");
    let names = place.names();
    let message = place.fails("node restore backup restored --key backup.key");
    assert!(message.contains("needs the feature 'example'"), "{message}");
    assert_eq!(place.names(), names, "nothing was written");
    // Without the file the store itself says so.
    std::fs::remove_file(place.path("try/node-2/needs.toml")).expect("it was there");
    let message = place.fails("node run try/node-2");
    assert!(message.contains("needs the feature 'example'"), "{message}");

    let nodes: Vec<Running> = (1..=3).map(|node| start(&place, node, &next)).collect();
    until_ready(&nodes);
    mac(&next);
    assert!(place.names_in("try/node-2").contains(&"needs.toml".to_owned()), "it is written again");
}

/// The workers of one number are upgraded, and switch a feature on. The others of the same nodes find it in
/// the store that they share.
#[test]
fn a_worker_that_finds_a_feature_that_it_does_not_know_stops_and_says_which_release_to_run() {
    let Some(server) = Postgres::start("workers of two releases", &[]) else { return };
    let place = Place::new();
    let url = server.url();
    place.run(&format!("cluster new try --protocol shamir --parties 3 --workers 2 --store {url}"));
    let (this, next) = (Release::this(), Release::ahead(1));
    let dir = |node: usize, worker: u16| format!("try/{}", worker_dir(&format!("node-{node}"), worker));
    let start = |node: usize, worker: u16, release: &Release| {
        place.start_as(release, &format!("node run {} --log error", dir(node, worker)))
    };
    let first: Vec<Running> = (1..=3).map(|node| start(node, 0, &next)).collect();
    let second: Vec<Running> = (1..=3).map(|node| start(node, 1, &this)).collect();
    until_ready(&first);
    until_ready(&second);
    let features = |node: usize| place.run_as(&next, &format!("node features try/node-{node}"));
    place.until("all know it", || (1..=3).all(|node| features(node).contains("it can be switched on")));
    place.run_as(&next, "node features try/node-1 --switch-on example");
    let mut second = second.into_iter();
    assert!(!second.next().expect("it runs").finish(), "it ends with an error");
    let schema = server.run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'polyclave%1'");
    let all = || {
        let rows = ["store", "worker", "record", "delivery"].map(|table| {
            let text = "md5(string_agg(t::text, '|' ORDER BY t::text))";
            format!("SELECT {text} FROM {schema}.polyclave_{table} t")
        });
        server.run(&rows.join(" UNION ALL "))
    };
    first.into_iter().for_each(Running::end);
    let (rows, files) = (all(), contents(&place, &dir(1, 1)));
    let message = place.fails(&format!("node run {}", dir(1, 1)));
    assert!(
        message.contains("needs the feature 'example'")
            && message.contains("Run the next release or a later"),
        "{message}"
    );
    assert_eq!(all(), rows, "nothing in the store was changed");
    assert_eq!(contents(&place, &dir(1, 1)), files, "nothing in the directory was changed");
    // The workers of nodes where it is off go on.
    second.for_each(Running::end);
    let nodes: Vec<Running> = (1..=3).map(|node| start(node, 0, &next)).collect();
    until_ready(&nodes);
}
