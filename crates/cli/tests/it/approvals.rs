//! Approvals as people give them, with the program's commands.

use super::common::{Place, Running};

/// Keys for two approvers, whom the rules of all nodes name. `entries` are added to the rules.
fn approvers(place: &Place, entries: &str) {
    let mut rules = String::new();
    for name in ["ann", "ben"] {
        place.run(&format!("client init {name} --name {name}"));
        let card = String::from_utf8(place.read(&format!("{name}/card.toml"))).expect("text");
        rules += &format!("\n[[approver]]\n{card}");
    }
    for node in 1..=3 {
        let file = format!("try/node-{node}/clients.toml");
        let before = String::from_utf8(place.read(&file)).expect("text");
        place.write(&file, format!("{before}{rules}{entries}").as_bytes());
    }
}

const DELETE: &str = "\n[[approval]]\nname = \"delete\"\nrights = [\"delete\", \"encrypt\"]\nkeys = [\"pay*\"]\nneed = 2\nof = [\"ann\", \"ben\"]\n";
const POLICY: &str =
    "\n[[approval]]\nname = \"rules\"\nnode = [\"policy\"]\nneed = 1\nof = [\"ann\", \"ben\"]\n";

#[test]
fn two_people_approve_that_a_key_is_deleted() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    approvers(&place, DELETE);
    let _cluster = place.cluster_again();
    place.run("key generate payroll");
    let error = place.fails("key delete payroll --yes");
    assert!(error.contains("2 of ann, ben must approve") && error.contains("--ask-approval"), "{error}");
    let needed = place.run("node policy check try/node-1 --client client --right delete --key payroll");
    assert!(needed.contains("needs approval: 2 of ann, ben must approve (approval delete)"), "{needed}");

    let asked = place.run("approval request delete payroll --out a.approval --purpose ticket-4711");
    for told in ["delete the key \"payroll\" at all nodes, for ever", "ticket-4711", "signed by: nobody yet"]
    {
        assert!(asked.contains(told), "{told}: {asked}");
    }
    place.run("key list");
    let signed = place.run("approval sign a.approval --client ann");
    assert!(
        signed.contains("delete the key \"payroll\"") && signed.contains("ann has signed it"),
        "{signed}"
    );
    let error = place.fails("key delete payroll --yes --approval a.approval");
    assert!(error.contains("and ann has signed"), "{error}");
    place.run("approval sign a.approval --client ben");
    let shown = place.run("approval show a.approval --json");
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let verified = shown["signatures"].as_array().expect("signatures");
    assert!(verified.len() == 2 && verified.iter().all(|s| s["verifies"] == true), "{shown}");
    assert!(place.run("key delete payroll --yes --approval a.approval").contains("payroll is deleted"));
    place.run("key generate payroll");
    let error = place.fails("key delete payroll --yes --approval a.approval");
    assert!(error.contains("was used at"), "{error}");

    // Any command can write a request for approval and use it.
    place.write("plain", b"to whom it may concern");
    assert!(place.fails("encrypt --key payroll plain sealed").contains("needs approval"));
    place.run("encrypt --key payroll plain sealed --ask-approval e.approval");
    for name in ["ann", "ben"] {
        place.run(&format!("approval sign e.approval --client {name}"));
    }
    place.run("encrypt --key payroll plain sealed --approval e.approval");
    place.run("decrypt --key payroll sealed copy");
    assert_eq!(place.read("copy"), b"to whom it may concern");
}

#[test]
fn a_file_that_was_changed_is_refused_or_shows_signatures_that_do_not_verify() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    place.run("client init ann --name ann");
    place.run("approval request policy try/node-1/clients.toml --node try/node-1 --out p.approval");
    place.run("approval sign p.approval --client ann");
    let good = String::from_utf8(place.read("p.approval")).expect("text");
    let line = good.lines().find(|line| line.starts_with("signature = ")).expect("a signature");
    let other = line.replace(&line[20..24], if &line[20..24] == "AAAA" { "BBBB" } else { "AAAA" });
    place.write("p.approval", good.replace(line, &other).as_bytes());
    assert!(place.run("approval show p.approval").contains("THIS SIGNATURE DOES NOT VERIFY"));
    for (from, to) in [
        ("statement = \"", "statement = \"AAAA"),
        ("statement = \"", "statement = \"!"),
        ("[[signature]]", "[[signatur]]"),
    ] {
        place.write("p.approval", good.replacen(from, to, 1).as_bytes());
        let error = place.fails("approval show p.approval");
        assert!(error.contains("p.approval"), "{error}");
    }
}

#[test]
fn rules_that_want_approval_are_changed_only_with_it() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    approvers(&place, POLICY);
    let cluster = place.cluster_again();
    let error = place.fails("node revoke try/node-1 client");
    assert!(
        error.contains("needs approval: 1 of ann, ben") && error.contains("nothing was changed"),
        "{error}"
    );

    // Whoever writes the file itself changes nothing, whether the node runs or not.
    let approved = String::from_utf8(place.read("try/node-1/clients.toml")).expect("text");
    let entry = approved.replace("name = \"client\"", "name = \"renamed\"");
    assert_ne!(entry, approved);
    place.write("try/node-1/clients.toml", entry.as_bytes());
    let log = || String::from_utf8_lossy(&place.read("try/node-1/audit.log")).into_owned();
    let refused = "\"operation\":\"policy\",\"key\":\"\",\"outcome\":\"refused\"";
    place.until("the node refuses", || log().contains(refused));
    cluster.end();
    let cluster = place.cluster_again();
    place.run("key generate k");
    assert!(!log().contains("\"client\":\"renamed\""), "the rules from before are in force");

    place.write("new.toml", entry.as_bytes());
    place.run("approval request policy new.toml --node try/node-1 --out p.approval");
    place.run("approval sign p.approval --client ben");
    place.run("node policy set try/node-1 new.toml --approval p.approval");
    place.until("the node takes them", || {
        log().contains("\"client\":\"renamed\"") && log().contains("approved-by=ben")
    });
    cluster.end();
    // The rules stay in force over a start, and the approval is not needed again.
    let _cluster = place.cluster_again();
    place.run("key generate k2");
    assert!(place.fails("node policy set try/node-1 new.toml").contains("needs approval"));
    // The same approval does not put the old rules back, nor the new ones again.
    place.write("try/node-1/clients.toml", approved.as_bytes());
    let refusals = || log().matches(refused).count();
    let before = refusals();
    place.until("the node refuses again", || refusals() > before);
}

/// At how many nodes the key is.
fn held(place: &Place) -> usize {
    let listed: serde_json::Value = serde_json::from_str(&place.run("key list --json")).expect("JSON");
    let of_key = listed.as_array().expect("a list").iter().find(|key| key["name"] == "payroll");
    of_key.map_or(0, |key| key["nodes"].as_array().expect("nodes").len())
}

fn approve(place: &Place) {
    place.run("approval request delete payroll --out k.approval");
    for name in ["ann", "ben"] {
        place.run(&format!("approval sign k.approval --client {name}"));
    }
}

/// Three processes.
fn start_nodes(place: &Place) -> Vec<Running> {
    let start = |node: usize| place.start(&format!("node run try/node-{node} --log error"));
    let nodes: Vec<Running> = (1..=3).map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    nodes
}

/// All nodes are killed at several moments of a deletion. Whatever it had done by then, its approval does not delete what is left.
#[test]
fn an_approval_whose_operation_had_an_effect_before_the_nodes_were_killed_is_spent() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    approvers(&place, DELETE);
    let mut nodes = start_nodes(&place);
    for delay_ms in [0, 50, 100, 200, 400] {
        if held(&place) == 0 {
            place.run("key generate payroll");
        }
        approve(&place);
        let deletion = place.start("key delete payroll --yes --approval k.approval");
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        nodes.iter_mut().for_each(Running::kill);
        // Until they are gone, their stores are in use.
        nodes.drain(..).for_each(|mut node| node.wait_until_gone());
        drop(deletion);
        nodes = start_nodes(&place);
        let left = held(&place);
        let again = place.output("key delete payroll --yes --approval k.approval");
        let told = String::from_utf8_lossy(&again.stderr);
        match left {
            3 => assert!(again.status.success() || told.contains("was used at"), "{told}"),
            _ => assert!(!again.status.success() && told.contains("was used at"), "{left}: {told}"),
        }
        // A new approval finishes what was left half done.
        if held(&place) > 0 {
            approve(&place);
            place.run("key delete payroll --yes --approval k.approval");
            assert_eq!(held(&place), 0);
        }
    }
}
