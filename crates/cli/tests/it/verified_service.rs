//! A cluster under a protocol that verifies as a person runs it: every node is needed, cheating ends in a
//! refusal, and what a request may take is what the nodes have made ahead.

use std::time::Duration;

use crate::common::{Place, Running, noise};

/// RFC 4493 and SP 800-38A, F.1: the same key and first block.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const BLOCK: &str = "6bc1bee22e409f96e93d7e117393172a";
const ENCRYPTED: &str = "3ad77bb40d7a3660a89ecaf32466ef97";
const CMAC: &str = "070a16b46b4d4144f79bdd9dd04a287c";

/// Blocks in stock: a key takes more than two, and material takes its time.
const LEVEL: usize = 6;

/// Two nodes that keep little in stock, started each for itself.
fn two_nodes(place: &Place, protocol: &str) -> [Running; 2] {
    place.run(&format!("cluster new try --protocol {protocol} --parties 2"));
    for node in 1..=2 {
        place.set_stock(node, LEVEL, 0);
    }
    let nodes = [1, 2].map(|node| place.start(&format!("node run try/node-{node} --log warn")));
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    nodes
}

fn status(place: &Place) -> serde_json::Value {
    let said = place.output("client status --json").stdout;
    serde_json::from_slice(&said).expect("it is JSON")
}

/// Waits until all nodes are connected and their stock is full: longer than anything else takes.
fn until_full(place: &Place) {
    let full = || {
        let status = status(place);
        status["nodes"].as_array().expect("a list").iter().all(|node| {
            let stock = node["stock"].as_array();
            node["prepared"] == true
                && stock.is_some_and(|stock| {
                    stock.iter().all(|kind| kind["blocks"].as_u64() >= kind["level"].as_u64())
                })
        })
    };
    for _ in 0..600 {
        if full() {
            return;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("the stock is not full: {}", status(place));
}

fn import(place: &Place) {
    use std::os::unix::fs::PermissionsExt;
    place.write("key.hex", KEY.as_bytes());
    std::fs::set_permissions(place.path("key.hex"), std::fs::Permissions::from_mode(0o600)).expect("set");
    let message = place.fails("key import known --modes cbc,cmac --key-file key.hex");
    assert!(message.contains("cbc undoes cmac under the same key"), "{message}");
    place.run("key import known --modes ecb --key-file key.hex");
    until_full(place);
    place.run("key import known-mac --modes cmac --key-file key.hex");
}

#[test]
fn two_nodes_of_spdz_serve_and_nothing_is_lost_when_one_is_killed() {
    two_nodes_serve("spdz-lt");
}

#[test]
fn two_nodes_of_tinytable_serve_and_nothing_is_lost_when_one_is_killed() {
    two_nodes_serve("tinytable-linear64");
}

fn two_nodes_serve(protocol: &str) {
    let place = Place::new();
    let [_one, two] = two_nodes(&place, protocol);
    until_full(&place);
    let message = place.run("client status");
    assert!(
        message.contains("material: ") && message.contains(&format!("{LEVEL} of {LEVEL} blocks")),
        "{message}"
    );
    let message = place.run("node status try/node-1");
    assert!(message.contains("active") && message.contains("ready      yes"), "{message}");

    place.run("key generate k --modes ctr");
    until_full(&place);
    place.write("f", &noise(50));
    place.run("encrypt --key k --mode ctr --raw --iv-out iv f c");
    let iv = String::from_utf8(place.read("iv")).expect("hex");
    until_full(&place);
    place.run(&format!("decrypt --key k --mode ctr --raw --iv {} c g", iv.trim()));
    assert_eq!(place.read("g"), noise(50));

    until_full(&place);
    import(&place);
    until_full(&place);
    place.write("block", &hex::decode(BLOCK).expect("hex"));
    place.run("encrypt --key known --mode ecb --raw --no-padding block encrypted");
    assert_eq!(hex::encode(place.read("encrypted")), ENCRYPTED);
    assert_eq!(place.run("mac --key known-mac block").trim(), CMAC);

    until_full(&place);
    place.run("key generate sealing --modes gcm");
    until_full(&place);
    place.run("encrypt --key sealing f f.sealed");
    until_full(&place);
    place.run("decrypt --key sealing f.sealed f.opened");
    assert_eq!(place.read("f.opened"), noise(50));

    two.signal("-KILL");
    place.until("it is noticed", || !place.output("node status try/node-1").status.success());
    place.fails(&format!("decrypt --key k --mode ctr --raw --force --iv {} c g", iv.trim()));
    drop(two);
    let _two = place.start("node run try/node-2 --log warn");
    until_full(&place);
    place.run(&format!("decrypt --key k --mode ctr --raw --force --iv {} c g", iv.trim()));
    assert_eq!(place.read("g"), noise(50), "a new epoch, the same key");
}

#[test]
fn a_node_of_spdz_killed_at_any_moment_costs_the_stock_and_nothing_else() {
    killed_at_any_moment("spdz-lt");
}

#[test]
fn a_node_of_tinytable_killed_at_any_moment_costs_the_stock_and_nothing_else() {
    killed_at_any_moment("tinytable-linear64");
}

/// While material is made, while a request runs, and between: each node in turn. What a killed node leaves
/// behind is neither taken for cheating nor used again, and every answer is right.
fn killed_at_any_moment(protocol: &str) {
    let place = Place::new();
    let [one, two] = two_nodes(&place, protocol);
    let mut nodes = [Some(one), Some(two)];
    until_full(&place);
    import(&place);
    place.write("block", &hex::decode(BLOCK).expect("hex"));
    let mut cut_short = 0;
    for (turn, moment) in [0, 3, 7, 12, 20, 40, 150, 900].into_iter().enumerate() {
        let victim = turn % 2;
        // From the fourth on the stock is being filled meanwhile, for want of waiting.
        if turn < 4 {
            until_full(&place);
        }
        std::thread::scope(|scope| {
            let request = scope
                .spawn(|| place.output("encrypt --key known --mode ecb --raw --no-padding --force block e"));
            std::thread::sleep(Duration::from_millis(moment));
            nodes[victim].take().expect("it runs").signal("-KILL");
            nodes[victim] = Some(place.start(&format!("node run try/node-{} --log warn", victim + 1)));
            let request = request.join().expect("no panic");
            // It asks again until the node is back.
            let asked_again = String::from_utf8_lossy(&request.stderr).contains("Asking again");
            cut_short += usize::from(asked_again);
            match request.status.success() {
                true => assert_eq!(hex::encode(place.read("e")), ENCRYPTED),
                false => assert!(asked_again, "{request:?}"),
            }
        });
        if turn >= 3 {
            place.until("both prepare", || status(&place)["nodes"][1 - victim]["prepared"] == true);
        }
    }
    until_full(&place);
    assert!(cut_short > 0, "no kill came in time");
    for node in 1..=2 {
        let message = place.run(&format!("node status try/node-{node}"));
        assert!(!message.contains("uarantine"), "{message}");
    }
    assert_eq!(place.run("mac --key known-mac block").trim(), CMAC);
}

#[test]
fn what_is_not_in_stock_is_made_while_the_client_waits() {
    let place = Place::new();
    let _nodes = two_nodes(&place, "spdz-lt");
    place.run("key generate k --modes ctr");
    let data = noise(16 * 4 * LEVEL + 1);
    place.write("all", &data);
    place.run("encrypt --key k --mode ctr --raw all c");
    place.run("decrypt --key k --mode ctr --raw c back");
    assert_eq!(place.read("back"), data);
}

#[test]
fn two_nodes_have_a_default_protocol_under_which_either_may_cheat_and_seal_a_file_from_the_start() {
    let place = Place::new();
    let message = place.run("cluster new try --parties 2");
    assert!(
        message.contains("spdz-tower, the default of 2 nodes") && message.contains("active"),
        "{message}"
    );
    let cluster = place.start("cluster run try");
    cluster.wait_for("all 2 nodes are ready");
    place.run("key generate k");
    let data = noise(100_000);
    place.write("f", &data);
    place.run("encrypt --key k f f.sealed");
    place.run("decrypt --key k f.sealed f.opened");
    assert_eq!(place.read("f.opened"), data);
    let status = place.run("client status");
    assert!(status.contains("of 4096 blocks"), "{status}");
}

#[test]
fn a_node_that_starts_again_under_load_costs_no_request() {
    let place = Place::new();
    place.run("cluster new try --parties 2");
    let mut nodes = [1, 2].map(|node| Some(place.start(&format!("node run try/node-{node} --log warn"))));
    nodes.iter().flatten().for_each(|node| drop(node.wait_for("is ready")));
    place.run("key generate k --modes ecb");
    place.write("block", &[7; 16]);
    let request = |to: &str| {
        place.run(&format!("encrypt --key k --mode ecb --raw --no-padding --force block {to}"));
        place.read(to)
    };
    let expected = request("e");
    for victim in [1, 0] {
        let served = std::sync::atomic::AtomicUsize::new(0);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(request("again"), expected);
                    served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
            std::thread::sleep(Duration::from_millis(200));
            nodes[victim].take().expect("it runs").signal("-KILL");
            nodes[victim] = Some(place.start(&format!("node run try/node-{} --log warn", victim + 1)));
            let before = served.load(std::sync::atomic::Ordering::Relaxed);
            place.until("it serves again", || served.load(std::sync::atomic::Ordering::Relaxed) > before + 2);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

#[test]
fn fresh_common_secrets_of_spdz_keep_every_key() {
    fresh_common_secrets("spdz-lt");
}

#[test]
fn fresh_common_secrets_of_tinytable_keep_every_key() {
    fresh_common_secrets("tinytable-linear64");
}

fn fresh_common_secrets(protocol: &str) {
    let place = Place::new();
    let _nodes = two_nodes(&place, protocol);
    until_full(&place);
    import(&place);
    until_full(&place);
    place.write("block", &hex::decode(BLOCK).expect("hex"));
    place.run("node rotate try/node-1 --secrets");
    let message = place.output("node status try/node-1").stdout;
    assert!(String::from_utf8_lossy(&message).contains("ordered at 1 of 2 nodes: node-1"));
    place.run("node rotate try/node-2 --secrets");
    // Not ready meanwhile, which the status says by its exit code, too.
    place.until("it is done", || {
        let status = place.output("node status try/node-2");
        status.status.success() && !String::from_utf8_lossy(&status.stdout).contains("refresh ")
    });
    until_full(&place);
    assert_eq!(place.run("mac --key known-mac block").trim(), CMAC);
}

#[test]
fn a_cluster_that_cannot_be_is_refused() {
    let place = Place::new();
    let message = place.fails("cluster new try --protocol spdz-lt --parties 3 --threshold 1");
    assert!(message.contains("any 2 of 3") && message.contains("leave it out"), "{message}");
    place.fails("cluster new try --protocol spdz-lt --parties 1");
    let message = place.fails("cluster new try --protocol tinytable-linear64 --parties 3");
    assert!(message.contains("runs among 2 parties, not 3"), "{message}");
    let message = place.fails("demo --protocol spdz-lt --threshold 7");
    assert!(message.contains("leave it out"), "{message}");
}
