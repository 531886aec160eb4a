//! Drills: backups are restored into a cluster that cannot meet the real one, and every key is proved; and
//! what a backup that cannot be used is told.

use serde_json::Value;

use crate::common::{Place, mode};

/// Backs up all nodes of `try`, each under a key of its own: `NAME-N.backup` and `N.key`.
fn back_up(place: &Place, name: &str, nodes: usize) {
    std::fs::create_dir_all(place.path("scratch")).expect("made");
    for node in 1..=nodes {
        place.run(&format!("node backup try/node-{node} {name}-{node}.backup --key {node}.key"));
    }
}

/// The command for a drill of these nodes on this machine.
fn gather(name: &str, nodes: &[usize]) -> String {
    let of = |node: &usize| format!(" node-{node}={name}-{node}.backup --key node-{node}={node}.key");
    format!(
        "cluster drill gather --scratch scratch --all-shares-on-this-machine{}",
        nodes.iter().map(of).collect::<String>()
    )
}

fn outcomes(document: &str) -> Vec<(String, u64, String)> {
    let document: Value = serde_json::from_str(document).expect("JSON");
    let keys = document["keys"].as_array().expect("keys").iter();
    keys.map(|key| {
        let text = |field: &str| key[field].as_str().expect("text").to_owned();
        (text("name"), key["version"].as_u64().expect("a number"), text("outcome"))
    })
    .collect()
}

/// Nothing is left of the drills on this machine.
fn nothing_is_left(place: &Place) {
    assert_eq!(place.names_in("scratch"), [""; 0]);
}

#[test]
fn a_drill_beside_the_running_cluster_proves_every_key_and_says_what_a_restore_would_lose() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate kept --cipher aes-128 --modes gcm");
    place.run("key generate gone --cipher aes-128 --modes gcm");
    place.run("key generate turned --cipher aes-128 --modes gcm");
    place.run("key rotate turned");
    place.run("key rotate turned");
    place.run("key compromise turned --key-version 1 --yes");
    place.run("key generate restored --cipher aes-128 --modes gcm");
    back_up(&place, "first", 3);
    place.run("key generate later --cipher aes-128 --modes gcm");
    place.run("key delete gone --yes");
    place.run("key deactivate turned --key-version 2");
    place.run("key compromise restored --key-version 1 --yes");
    let real = place.run("key list --json");
    place.write("real.json", real.as_bytes());

    let document = place.run(&(gather("first", &[1, 2, 3]) + " --compare real.json --json"));
    let proved = |name: &str, version| (name.to_owned(), version, "proved".to_owned());
    assert_eq!(
        outcomes(&document),
        [
            proved("gone", 1),
            proved("kept", 1),
            proved("restored", 1),
            ("turned".to_owned(), 1, "not-asked".to_owned()),
            proved("turned", 2),
            proved("turned", 3)
        ],
        "{document}"
    );
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["since"]["made"], serde_json::json!(["later version 1"]), "{document}");
    assert_eq!(document["since"]["deleted"], serde_json::json!(["gone version 1"]), "{document}");
    let changed = [
        "restored version 1: active in the backups, now compromised",
        "turned version 2: active in the backups, now deactivated",
    ];
    assert_eq!(document["since"]["changed"], serde_json::json!(changed), "{document}");
    for backup in document["backups"].as_array().expect("backups") {
        let [after, before] =
            ["made_after", "made_before"].map(|field| backup[field].as_str().expect("a time"));
        assert!(after[..10] <= before[..10], "{backup}");
        assert_eq!(backup["keys"], 6, "{backup}");
    }

    // The real cluster has noticed nothing.
    place.write("file", b"text");
    place.run("encrypt --key kept file file.sealed");
    let status = place.run("node status try/node-1");
    assert!(status.contains("ready      yes"), "{status}");
    cluster.end();
    nothing_is_left(&place);
}

#[test]
fn a_drill_says_loudly_that_shares_gather_and_does_nothing_without_consent() {
    let place = Place::new();
    let error = place.fails("cluster drill gather node-1=a.backup --key node-1=1.key");
    assert!(error.contains("--all-shares-on-this-machine") && error.contains("nothing was done"), "{error}");
    let help = place.run("cluster drill gather --help");
    assert!(help.contains("DANGEROUS"), "{help}");
    let error =
        place.fails("cluster drill gather --all-shares-on-this-machine node-1=a.backup --key node-1=1.key");
    assert!(error.contains("WARNING: this machine now holds the shares of a quorum"), "{error}");
}

#[test]
fn backups_that_cannot_be_used_are_named_with_their_nodes_and_what_to_do() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate k --cipher aes-128 --modes gcm");
    back_up(&place, "good", 3);
    let fails = |command: String, parts: &[&str]| {
        let error = place.fails(&command);
        parts.iter().for_each(|part| assert!(error.contains(part), "no '{part}' in: {error}"));
    };

    fails(gather("good", &[1, 3]), &["3 of the 3 nodes", "of node-1, node-3", "1 more, of node-2"]);
    fails(
        gather("good", &[1, 2]) + " node-3=good-3.backup",
        &["no key for the backup of node-3", "--key node-3=KEYFILE"],
    );
    fails(
        gather("good", &[1, 2]) + " node-3=good-3.backup --key node-3=1.key",
        &["the backup of node-3, good-3.backup", "cannot be opened with this key", "Give the key file"],
    );
    fails(
        gather("good", &[1, 2]) + " node-3=good-2.backup --key node-3=2.key",
        &["good-2.backup is a backup of node-2, not of node-3"],
    );
    fails(gather("good", &[1, 2]) + " node-2=good-2.backup", &["node-2 has two backups"]);
    fails(gather("good", &[1, 2]) + " node-3=nothing --key node-3=3.key", &["the backup of node-3, nothing"]);

    let mut bytes = place.read("good-3.backup");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.write("altered", &bytes);
    fails(
        gather("good", &[1, 2]) + " node-3=altered --key node-3=3.key",
        &["the backup of node-3, altered", "take another backup"],
    );

    // Made before a refresh, with others from after it.
    place.run("cluster refresh try");
    back_up(&place, "later", 3);
    fails(
        gather("later", &[1, 2]) + " node-3=good-3.backup --key node-3=3.key",
        &[
            "good-3.backup of node-3 is from another side of a refresh than later-1.backup of node-1",
            "after the same refresh",
        ],
    );
    cluster.end();

    let other = Place::new();
    let cluster = other.cluster();
    other.run("node backup try/node-3 other.backup --key other.key");
    cluster.end();
    for file in ["other.backup", "other.key"] {
        std::fs::copy(other.path(file), place.path(file)).expect("copied");
    }
    fails(
        gather("good", &[1, 2]) + " node-3=other.backup --key node-3=other.key",
        &["other.backup of node-3 is a backup of another cluster than good-1.backup of node-1"],
    );
    nothing_is_left(&place);
}

#[test]
fn a_restored_node_has_nothing_with_which_it_could_meet_the_real_ones() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate k --cipher aes-128 --modes gcm");
    back_up(&place, "drill", 3);
    cluster.end();
    let text = |path: &str| String::from_utf8(place.read(path)).expect("text");
    let setting = |path: &str, name: &str| {
        let begins = format!("{name} = ");
        let line = text(path).lines().find_map(|line| line.strip_prefix(&begins).map(str::to_owned));
        line.expect("it is there").trim_matches('"').to_owned()
    };
    let restore = |node: usize, address: &str| {
        format!(
            "cluster drill restore drill-{node}.backup drill-{node} --key {node}.key --address {address} --client-address \
             127.0.0.1:2"
        )
    };

    let real = setting("try/node-2/node.toml", "address");
    let error = place.fails(&restore(1, &real));
    assert!(error.contains(&format!("{real} is an address of the real node node-2")), "{error}");
    assert!(!place.path("drill-1").exists(), "what was restored is gone");

    place.run(&restore(1, "127.0.0.1:1"));
    assert_eq!(mode(&place.path("drill-1")), 0o700);
    assert_eq!(setting("drill-1/node.toml", "listen"), "127.0.0.1:1");
    assert_ne!(text("drill-1/identity.crt"), text("try/node-1/identity.crt"));
    let keys = place.names_in("drill-1").into_iter().filter(|name| name.ends_with(".key"));
    for file in keys.filter(|name| name != "secret.key") {
        assert_ne!(place.read(&format!("drill-1/{file}")), place.read("try/node-1/identity.key"), "{file}");
    }

    // The file of the real cluster, and the directory of a real node, are none of a drill.
    place.run("client init client --name drill");
    let cards = "cluster drill define try/cluster.toml drill-1/card.toml";
    let error = place.fails(&format!("{cards} --out drill.toml --client drill-client"));
    assert!(error.contains("3 of the 3 nodes") && error.contains("of node-2, node-3"), "{error}");
    let error = place.fails("cluster drill join try/node-1 try/cluster.toml client/card.toml");
    assert!(error.contains("is not of a drill"), "{error}");
    let error = place.fails("cluster drill join drill-1 try/cluster.toml client/card.toml");
    assert!(error.contains("an address of the real node"), "{error}");
}

/// Rules that want approval of every change of rules do not keep a drill from its client.
#[test]
fn a_quorum_is_enough_and_rules_that_want_approvals_stop_no_drill() {
    let place = Place::new();
    place.run("cluster new try --parties 5 --threshold 1");
    place.run("client init ann --name ann");
    let card = String::from_utf8(place.read("ann/card.toml")).expect("text");
    for node in 1..=5 {
        let file = format!("try/node-{node}/clients.toml");
        let rules = String::from_utf8(place.read(&file)).expect("text");
        let wanted = "[[approval]]\nname = \"rules\"\nnode = [\"policy\"]\nneed = 1\nof = [\"ann\"]\n";
        place.write(&file, format!("{rules}\n[[approver]]\n{card}\n{wanted}").as_bytes());
    }
    let cluster = place.start("cluster run try");
    cluster.wait_for("all 5 nodes are ready");
    place.run("key generate k --cipher aes-128 --modes gcm");
    back_up(&place, "five", 5);
    cluster.end();
    let document = place.run(&(gather("five", &[2, 4, 5]) + " --json"));
    assert_eq!(outcomes(&document), [("k".to_owned(), 1, "proved".to_owned())], "{document}");
}

/// A backup from before a key was made does not have it.
#[test]
fn a_key_that_a_backup_lacks_fails_and_the_drill_with_it() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate early --cipher aes-128 --modes gcm");
    back_up(&place, "early", 3);
    place.run("key generate late --cipher aes-128 --modes gcm");
    back_up(&place, "late", 3);
    cluster.end();
    let command = gather("late", &[1, 2]) + " node-3=early-3.backup --key node-3=3.key --json";
    let output = place.output(&command);
    let document = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{document}");
    let outcome = |name: &str, outcome: &str| (name.to_owned(), 1, outcome.to_owned());
    assert_eq!(outcomes(&document), [outcome("early", "proved"), outcome("late", "failed")], "{document}");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["keys"][1]["nodes"], serde_json::json!(["node-1", "node-2"]), "{document}");
    assert!(document["keys"][1]["why"].as_str().expect("a reason").contains("node-3"), "{document}");
}

#[test]
fn material_is_made_where_the_protocol_takes_some() {
    let place = Place::new();
    place.run("cluster new try --protocol spdz-lt --parties 2");
    let cluster = place.start("cluster run try");
    cluster.wait_for("all 2 nodes are ready");
    place.run("key generate k --cipher aes-128 --modes cmac");
    back_up(&place, "two", 2);
    cluster.end();
    let told = place.run(&gather("two", &[1, 2]));
    assert!(told.contains("1 keys and versions: 1 proved, 0 failed, 0 not asked"), "{told}");
    assert!(told.contains("give --compare"), "{told}");
}
