//! All keys move to other nodes, as operators do it: lost nodes are replaced, nodes come and go, the
//! threshold changes. Keys, and what was encrypted under them, stay.

use polyclave_api::{Mode, NewKey};
use serde_json::Value;

use crate::common::{Place, Running, free_ports};
use crate::refresh::{Trial, insist, new_key};

/// A cluster with keys, one of them deleted, whose nodes have ended.
pub fn at_rest(protocol: &str) -> Trial {
    let (trial, nodes) = Trial::begin(protocol);
    insist("a key", || trial.client().generate(new_key("gone", Mode::Cmac)));
    insist("deleted", || trial.client().delete("gone"));
    nodes.into_iter().for_each(Running::end);
    trial
}

/// Runs these nodes until they can serve.
pub fn started(trial: &Trial, nodes: &[usize]) -> Vec<Running> {
    let running: Vec<Running> = nodes.iter().map(|node| trial.start_one(*node)).collect();
    running.iter().for_each(|node| drop(node.wait_for("is ready")));
    running
}

pub fn reshare(trial: &Trial, options: &str) -> Value {
    let message = trial.place.run(&format!("cluster reshare try {options} --json"));
    serde_json::from_str(&message).expect("one JSON document")
}

/// Keys are what they were, and are made and deleted as before.
pub fn serves(trial: &Trial) {
    trial.verify();
    insist("another key", || trial.client().generate(new_key("another", Mode::Cmac)));
    insist("deleted", || trial.client().delete("another"));
}

#[test]
fn a_lost_node_of_shamir_is_replaced_without_a_backup_and_keys_are_made_again() {
    let trial = at_rest("shamir");
    std::fs::remove_dir_all(trial.place.path("try/node-2")).expect("its disk is lost");
    let message = reshare(&trial, "--lost node-2 --add 1");
    // The free name is taken again, by another node.
    assert_eq!(message["nodes"], serde_json::json!(["node-1", "node-3", "node-2"]));
    // Three keys, of which one has two versions.
    assert_eq!((&message["keys"], &message["left"]), (&4.into(), &serde_json::json!([])));
    let nodes = started(&trial, &[1, 2, 3]);
    serves(&trial);
    let log = trial.place.run("node audit show try/node-1");
    assert!(log.contains("reshare"), "{log}");
    // And once more, from the cluster that was moved to.
    nodes.into_iter().for_each(Running::end);
    reshare(&trial, "--lost node-1 --add 1");
    let _nodes = started(&trial, &[2, 3, 4]);
    serves(&trial);
}

#[test]
fn nodes_of_shamir_come_and_go_and_the_threshold_changes() {
    let trial = at_rest("shamir");
    let message = reshare(&trial, "--add 2 --threshold 2");
    assert_eq!(message["nodes"].as_array().map(Vec::len), Some(5));
    let nodes = started(&trial, &[1, 2, 3, 4, 5]);
    serves(&trial);
    nodes.into_iter().for_each(Running::end);
    let message = reshare(&trial, "--remove node-1 --remove node-2 --remove node-3 --add 1 --threshold 1");
    assert_eq!(message["left"], serde_json::json!(["node-1", "node-2", "node-3"]));
    let _nodes = started(&trial, &[4, 5, 6]);
    serves(&trial);
    let message = trial.place.fails("node run try/node-1");
    assert!(message.contains("has left its cluster") && message.contains("destroyed"), "{message}");
}

#[test]
fn a_lost_node_of_shamir_active_is_replaced_without_a_backup() {
    let trial = at_rest("shamir-active");
    std::fs::remove_dir_all(trial.place.path("try/node-4")).expect("its disk is lost");
    let message = reshare(&trial, "--lost node-4 --add 1");
    assert_eq!(message["keys"], 4);
    let _nodes = started(&trial, &[1, 2, 3, 4]);
    serves(&trial);
}

/// A new node, made by its operator.
pub fn init(place: &Place, node: usize) {
    let ports = free_ports(3);
    let [peers, clients, http] = [0, 1, 2].map(|i| format!("127.0.0.1:{}", ports[i]));
    let addresses = format!("--address {peers} --client-address {clients} --http {http}");
    place.run(&format!("node init try/node-{node} --name node-{node} {addresses}"));
}

/// The command of each operator, as a process.
pub fn at_each_node(place: &Place, nodes: &[usize], expected: &str) -> Vec<Running> {
    let command = |node: &usize| {
        let from = "--from try/cluster.toml";
        place.start(&format!("node reshare try/node-{node} new.toml {from} --expect {expected} --wait 50"))
    };
    nodes.iter().map(command).collect()
}

pub fn fingerprint(place: &Place, file: &str) -> String {
    let message = place.run(&format!("cluster show {file}"));
    let line = message.lines().find(|line| line.contains("fingerprint")).expect("it is shown");
    line.split_whitespace().last().expect("64 digits").to_owned()
}

#[test]
fn each_operator_reshares_at_their_node_and_clients_follow_once_they_have_compared_the_fingerprint() {
    let trial = at_rest("shamir");
    let place = &trial.place;
    init(place, 4);
    place.run("cluster reshape try/cluster.toml --lost node-3 --add try/node-4/card.toml --out new.toml");
    let expected = fingerprint(place, "new.toml");
    let message = place.fails(&format!("node reshare try/node-4 new.toml --expect {expected}"));
    assert!(message.contains("--from"), "{message}");
    let message = place.fails(&format!("node reshare try/node-1 new.toml --expect {}", "0".repeat(64)));
    assert!(message.contains("another fingerprint than was expected"), "{message}");
    place.run("node join try/node-4 new.toml");
    let message = place.fails("node run try/node-4");
    assert!(message.contains("have not moved to this one yet"), "{message}");
    for node in at_each_node(place, &[1, 2, 4], &expected) {
        assert!(node.finish(), "it is done");
    }
    place.write("try/node-4/clients.toml", &place.read("try/node-1/clients.toml"));
    let message = place.fails("client join try/client new.toml");
    assert!(message.contains("--expect"), "{message}");
    let before = place.read("try/client/cluster.toml");
    place.run(&format!("client join try/client new.toml --expect {expected}"));
    let _nodes = started(&trial, &[1, 2, 4]);
    serves(&trial);
    place.write("try/client/cluster.toml", &before);
    let message = place.fails("random 16");
    assert!(message.contains("polyclave client join") && !message.contains("same settings"), "{message}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason_and_nothing_changes() {
    let trial = at_rest("shamir");
    let place = &trial.place;
    let refused = |command: &str, why: &str| {
        let message = place.fails(command);
        assert!(message.contains(why), "{command}: {message}");
    };
    place.run("cluster new other --parties 3");
    init(place, 4);
    init(place, 5);
    let reshape = |old: &str, options: &str| format!("cluster reshape {old}/cluster.toml {options}");
    // Thresholds and numbers that do not fit.
    refused(&reshape("try", "--threshold 2"), "below half");
    refused(
        &reshape("try", "--lost node-1 --lost node-2 --add try/node-4/card.toml --threshold 1"),
        "3 to 9",
    );
    let two_lost = "--lost node-1 --lost node-2 --add try/node-4/card.toml --add try/node-5/card.toml";
    refused(&reshape("try", two_lost), "2 are needed");
    refused(&reshape("try", "--lost node-9"), "no node node-9");
    // A file of another cluster, and nodes that are in neither.
    place.run(&reshape("other", "--add try/node-4/card.toml --add try/node-5/card.toml --out of-other.toml"));
    let of_other = fingerprint(place, "of-other.toml");
    refused(&format!("node reshare try/node-1 of-other.toml --expect {of_other}"), "is of another cluster");
    place.run(&reshape("try", "--remove node-3 --add try/node-4/card.toml --out new.toml"));
    let expected = fingerprint(place, "new.toml");
    let from_try = format!("new.toml --from try/cluster.toml --expect {expected}");
    refused(&format!("node reshare try/node-5 {from_try}"), "is in neither cluster");
    refused("node reshare try/node-1 try/cluster.toml --expect 00", "takes all 64");
    let of_try = fingerprint(place, "try/cluster.toml");
    refused(&format!("node reshare try/node-1 try/cluster.toml --expect {of_try}"), "is no reshare file");
    // Nodes with different files.
    place.run(&reshape("try", "--remove node-3 --add try/node-4/card.toml --out same.toml"));
    let same = fingerprint(place, "same.toml");
    let one = place.start(&format!(
        "node reshare try/node-4 same.toml --from try/cluster.toml --expect {same} --wait 60"
    ));
    refused(
        &format!("node reshare try/node-1 {from_try} --wait 60"),
        "node-4 was given another reshare file",
    );
    drop(one);
    refused("node reshare try/node-1 --abandon", "has prepared no reshare");
    let _nodes = started(&trial, &[1, 2, 3]);
    refused(&format!("node reshare try/node-1 {from_try}"), "is the node already running?");
    serves(&trial);
}

#[test]
fn a_node_on_a_disk_from_before_a_refresh_is_refused_by_name() {
    let (trial, nodes) = Trial::begin("shamir");
    nodes.into_iter().for_each(Running::end);
    let place = &trial.place;
    let files = ["try/node-3/store.redb", "try/node-3/audit.log"];
    let before = files.map(|file| place.read(file));
    let nodes = started(&trial, &[1, 2, 3]);
    place.run("cluster refresh try");
    nodes.into_iter().for_each(Running::end);
    files.iter().zip(before).for_each(|(file, before)| place.write(file, &before));
    let message = place.fails("cluster reshare try --add 2 --threshold 2 --wait 60");
    assert!(message.contains("node-3 has other common secrets than the other old nodes"), "{message}");
    // Without it, the others are enough.
    std::fs::remove_file(place.path("try/reshare.toml")).expect("given up");
    reshare(&trial, "--lost node-3 --add 1");
    let _nodes = started(&trial, &[1, 2, 6]);
    serves(&trial);
}

#[test]
fn what_cannot_move_soundly_is_refused_before_anything_begins() {
    let place = Place::new();
    place.run("cluster new try --protocol spdz-lt");
    place.run("cluster new other --protocol shamir");
    let nodes = |dir: &str| {
        let names = place.names_in(dir).into_iter().filter(|name| name.starts_with("node-"));
        names.collect::<Vec<_>>()
    };
    for (command, why) in [
        ("cluster reshare try --lost node-2 --add 1", "2 are needed under spdz-lt"),
        ("cluster reshare try --protocol tinytable-linear64 --add 1", "tinytable-linear64"),
        ("cluster reshare try --protocol spdz --add 1", "'spdz'"),
        (
            "cluster reshare other --lost node-2 --protocol spdz-lt",
            "3 are needed to move keys from shamir to spdz-lt",
        ),
    ] {
        let message = place.fails(command);
        assert!(message.contains(why), "{command}: {message}");
    }
    assert_eq!((nodes("try").len(), nodes("other").len()), (2, 3), "nothing was made");
    assert!(!place.path("try/reshare.toml").exists());
}

/// A cluster at rest that has a key of two parts as well, and keys of these ciphers; what the former has
/// sealed; and how many keys there are.
fn at_rest_with_siv(protocol: &str, ciphers: &[&str]) -> (Trial, (Vec<u8>, usize)) {
    let (trial, nodes) = Trial::begin(protocol);
    insist("a key", || trial.client().generate(new_key("gone", Mode::Cmac)));
    insist("deleted", || trial.client().delete("gone"));
    insist("a key of two parts", || trial.client().generate(new_key("pair", Mode::Siv)));
    let sealed = trial.place.pipe(&format!("encrypt {SIV}"), TEXT);
    for cipher in ciphers {
        let key = || NewKey::for_modes(cipher, cipher, &[Mode::Ctr], 1 << 20);
        insist("a key of another cipher", || trial.client().generate(key()));
    }
    nodes.into_iter().for_each(Running::end);
    (trial, (sealed, 5 + ciphers.len()))
}

const SIV: &str = "--client try/client --key pair --mode siv --aad 00 -";
const TEXT: &[u8] = b"what was sealed before the move";

/// Moves all keys, and shows that these nodes serve with them.
fn moved(trial: &Trial, (sealed, keys): &(Vec<u8>, usize), options: &str, nodes: &[usize], stock: usize) {
    let message = reshare(trial, options);
    assert_eq!(message["keys"], *keys, "{options}");
    for node in nodes {
        set_stock(&trial.place, *node, stock);
    }
    let running = started(trial, nodes);
    serves(trial);
    let opened = trial.place.pipe(&format!("decrypt {SIV}"), sealed);
    assert_eq!(opened, TEXT, "{options}");
    let message = trial.place.fails("encrypt --client try/client --key gone --raw -");
    assert!(message.contains("gone"), "{message}");
    running.into_iter().for_each(Running::end);
}

/// Whatever the node's file says of its stock.
pub fn set_stock(place: &Place, node: usize, blocks: usize) {
    let path = format!("try/node-{node}/node.toml");
    let settings = String::from_utf8(place.read(&path)).expect("text");
    let others =
        settings.lines().filter(|line| !line.starts_with("aes_blocks") && !line.starts_with("des_blocks"));
    let settings: Vec<&str> = others.collect();
    place.write(&path, settings.join("\n").as_bytes());
    place.set_stock(node, blocks, 0);
}

#[test]
fn keys_move_from_shamir_to_tinytable_and_back_and_to_shamir_active() {
    // Their tables have other forms under the protocols: a move compares check values.
    let (trial, sealed) = at_rest_with_siv("shamir", &["skinny-128-256", "present-80", "3des-ede2"]);
    moved(&trial, &sealed, "--protocol tinytable-linear64 --remove node-2", &[1, 3], 32);
    let message = trial.place.fails("node run try/node-2");
    assert!(message.contains("has left its cluster"), "{message}");
    moved(&trial, &sealed, "--protocol shamir --add 1", &[1, 3, 4], 32);
    moved(&trial, &sealed, "--protocol shamir-active --add 1", &[1, 3, 4, 5], 256);
}

#[test]
fn keys_of_spdz_lt_move_to_more_nodes_to_spdz_tower_and_to_shamir() {
    let (trial, sealed) = at_rest_with_siv("spdz-lt", &[]);
    moved(&trial, &sealed, "--add 1", &[1, 2, 3], 32);
    moved(&trial, &sealed, "--protocol spdz-tower --remove node-1", &[2, 3], 32);
    moved(&trial, &sealed, "--remove node-2 --add 1", &[3, 4], 32);
    moved(&trial, &sealed, "--protocol shamir --add 1", &[3, 4, 5], 32);
    moved(&trial, &sealed, "--protocol spdz-lt --remove node-3", &[4, 5], 32);
}

#[test]
fn keys_of_tinytable_move_to_two_other_nodes() {
    let (trial, sealed) = at_rest_with_siv("tinytable-linear64", &[]);
    moved(&trial, &sealed, "--remove node-1 --remove node-2 --add 2", &[3, 4], 32);
}
