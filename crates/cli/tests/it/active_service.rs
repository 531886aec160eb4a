//! Four nodes under shamir-active as a person runs them: one may be killed, and answers are right all the
//! same.

use std::time::Duration;

use crate::common::{Place, Running, noise};

/// FIPS-197, C.1, and SP 800-67's way of naming three keys; what the reference implementations in this
/// repository compute.
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const BLOCK: &str = "00112233445566778899aabbccddeeff";
const ENCRYPTED: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

/// Blocks in stock.
const LEVEL: usize = 64;

/// Four nodes that keep little in stock, each started for itself.
fn four_nodes(place: &Place) -> Vec<Running> {
    let said = place.run("cluster new try --protocol shamir-active");
    assert!(said.contains("4 nodes") && said.contains("at most 1 of 4 parties"), "{said}");
    for node in 1..=4 {
        place.set_stock(node, LEVEL, 64);
    }
    let start = |node| place.start(&format!("node run try/node-{node} --log warn"));
    let nodes: Vec<Running> = (1..=4).map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    until_full(place);
    nodes
}

fn status(place: &Place) -> serde_json::Value {
    serde_json::from_slice(&place.output("client status --json").stdout).expect("it is JSON")
}

fn until_full(place: &Place) {
    let full = |node: &serde_json::Value| {
        let stock = node["stock"].as_array();
        stock.is_some_and(|stock| {
            !stock.is_empty() && stock.iter().all(|k| k["blocks"].as_u64() >= k["level"].as_u64())
        })
    };
    for _ in 0..300 {
        if status(place)["nodes"].as_array().expect("a list").iter().all(full) {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("the stock is not full: {}", status(place));
}

fn import(place: &Place) {
    use std::os::unix::fs::PermissionsExt;
    place.write("key.hex", KEY.as_bytes());
    std::fs::set_permissions(place.path("key.hex"), std::fs::Permissions::from_mode(0o600)).expect("set");
    place.run("key import known --modes ecb --key-file key.hex");
    place.write("block", &hex::decode(BLOCK).expect("hexadecimal"));
}

/// The known answer; what was said beside it.
fn is_right(place: &Place) -> String {
    let done = place.output("encrypt --key known --mode ecb --raw --no-padding --force block out");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert_eq!(hex::encode(place.read("out")), ENCRYPTED, "{said}");
    said
}

#[test]
fn all_modes_come_back_and_so_they_do_without_a_node_that_was_killed() {
    let place = Place::new();
    let mut nodes = four_nodes(&place);
    import(&place);
    place.run("key generate sealing");
    place.run("key generate legacy --cipher 3des-ede3 --modes ctr,cbc");
    place.run("key generate tags --cipher 3des-ede3 --modes cmac");
    until_full(&place);
    let round_trip = |what: &str| {
        let text = noise(150);
        place.write("text", &text);
        for (key, options) in [
            ("sealing", ""),
            ("sealing", "--raw"),
            ("legacy", "--mode ctr --raw"),
            ("legacy", "--mode cbc --raw"),
        ] {
            let text = if key == "legacy" { &text[..40] } else { &text[..] };
            place.write("text", text);
            place.run(&format!("encrypt --key {key} {options} --force text sealed"));
            place.run(&format!("decrypt --key {key} {options} --force sealed back"));
            assert!(place.read("back") == text, "{what}: {key} {options}");
        }
        assert_eq!(place.run("mac --key tags text").trim().len(), 16, "{what}");
    };
    round_trip("all nodes");
    assert!(!is_right(&place).contains("Correction is off"));
    until_full(&place);
    drop(nodes.remove(0));
    let said = is_right(&place);
    assert!(said.contains("node-1 takes no part") && said.contains("Correction is off"), "{said}");
    round_trip("without node 1");
    let message = place.run("node status try/node-2");
    assert!(message.contains("missing    node-1") && message.contains("correction off"), "{message}");
}

#[test]
fn the_demo_shows_a_node_that_is_killed() {
    let said = Place::new().run("demo --protocol shamir-active");
    assert!(said.contains("Correction is off") && said.contains("As published."), "{said}");
    assert!(said.contains(ENCRYPTED), "{said}");
}

#[test]
fn the_program_cannot_be_told_to_cheat() {
    let place = Place::new();
    for arguments in [
        "demo --protocol shamir-active --cheat",
        "node run try/node-1 --cheat openings",
        "node run try/node-1 --cheat-in-openings",
    ] {
        let refused = place.output(arguments);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(2) && message.contains("unexpected argument '--cheat"),
            "{message}"
        );
    }
}
