//! Approvals as people give them, with the program's commands.

use polyclave_api::{Approval, Statement};
use polyclave_config::{ClientDir, Moment, approval_to_text, load_approval, sign_approval};
use polyclave_transport::Identity;

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

    let message = place.fails("approval request decrypt payroll --out a.approval");
    assert!(message.contains("`polyclave decrypt` with --ask-approval FILE"), "{message}");
    let message = place.fails("approval request derive");
    assert!(message.contains("`polyclave key derive` with --ask-approval FILE"), "{message}");
    let message = place.fails("approval request reed");
    assert!(message.contains("no other command is called 'reed'"), "{message}");
    let asked = place.run("approval request delete payroll --out a.approval --purpose ticket-4711");
    for message in
        ["delete the key \"payroll\" at all nodes, for ever", "ticket-4711", "signed by: nobody yet"]
    {
        assert!(asked.contains(message), "{message}: {asked}");
    }
    place.run("key list");
    let signed = place.run("approval sign a.approval --client ann");
    assert!(signed.contains("only if their rules have this certificate"), "{signed}");
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

/// All nodes are killed at several moments of a deletion. Whatever it had done by then, its approval does not
/// delete what is left.
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
        let message = String::from_utf8_lossy(&again.stderr);
        match left {
            3 => assert!(again.status.success() || message.contains("was used at"), "{message}"),
            _ => assert!(!again.status.success() && message.contains("was used at"), "{left}: {message}"),
        }
        // A new approval finishes what was left half done.
        if held(&place) > 0 {
            approve(&place);
            place.run("key delete payroll --yes --approval k.approval");
            assert_eq!(held(&place), 0);
        }
    }
}

const MOVES: &str = "\n[[approver_group]]\nname = \"custodians\"\napprovers = [\"ann\", \"ben\"]\n\n[[approval]]\nname = \"moves\"\nnode = [\"refresh\", \"reshare\"]\nneed = 2\nof = [\"@custodians\"]\n";

fn sign(place: &Place, file: &str, names: &[&str]) {
    for name in names {
        place.run(&format!("approval sign {file} --client {name}"));
    }
}

/// The same request with something changed, signed by both.
fn altered(place: &Place, from: &str, to: &str, change: impl Fn(&mut Statement)) {
    let (_, mut statement) = load_approval(&place.path(from)).expect("a request");
    change(&mut statement);
    let mut approval = Approval::new(&statement).expect("encoded");
    for name in ["ann", "ben"] {
        let dir = ClientDir::open(&place.path(name)).expect("an approver");
        let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key);
        sign_approval(&mut approval, &identity.expect("an identity")).expect("signed");
    }
    place.write(to, approval_to_text(&approval).as_bytes());
}

/// What every node says to an order with these files, none of which approves it.
fn no_approval_of(place: &Place, command: &str, good: &str) {
    altered(place, good, "expired.approval", |s| s.not_after = Moment::now().seconds() - 1);
    altered(place, good, "foreign.approval", |s| s.cluster = [9; 16]);
    place.run("approval request policy try/node-1/clients.toml --node try/node-1 --out other.approval");
    sign(place, "other.approval", &["ann", "ben"]);
    for (file, message) in [
        (None, "needs approval: 2 of @custodians must approve (approval moves)"),
        (Some("expired.approval"), "this approval ended at"),
        (Some("foreign.approval"), "of another cluster"),
        (Some("other.approval"), "this approval is of something else"),
    ] {
        let with = file.map_or(String::new(), |file| format!(" --approval {file}"));
        let error = place.fails(&format!("{command}{with}"));
        assert!(error.contains(message), "{file:?}: {error}");
    }
}

#[test]
fn a_refresh_that_needs_approval_is_ordered_at_every_node_with_it_and_once() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    approvers(&place, MOVES);
    let cluster = place.cluster_again();
    place.run("key generate k");
    let request = |out: &str| place.run(&format!("approval request refresh --node try/node-1 --out {out}"));
    let message = request("r.approval");
    assert!(message.contains("give all keys fresh shares, in the place of those under"), "{message}");
    no_approval_of(&place, "node refresh try/node-1", "r.approval");
    sign(&place, "r.approval", &["ann"]);
    let error = place.fails("node refresh try/node-1 --approval r.approval");
    assert!(error.contains("and ann has signed"), "{error}");
    altered(&place, "r.approval", "despite.approval", |s| {
        if let polyclave_api::Subject::Refresh { despite_failures, .. } = &mut s.subject {
            *despite_failures = true;
        }
    });
    let error = place.fails("node refresh try/node-1 --approval despite.approval");
    assert!(error.contains("with --despite-failed-checks"), "{error}");
    sign(&place, "r.approval", &["ben"]);
    place.run("node refresh try/node-1 --approval r.approval");
    place.run("node refresh try/node-1 --approval r.approval");
    // Another approval of the same refresh, for a node that does not run.
    request("second.approval");
    sign(&place, "second.approval", &["ann", "ben"]);
    cluster.end();
    assert!(place.fails("node refresh try/node-2").contains("needs approval"));
    place.run("node refresh try/node-2 --approval second.approval");
    let cluster = place.cluster_again();
    let status = |node: u8| {
        let message = place.run(&format!("node status try/node-{node} --json"));
        serde_json::from_str::<serde_json::Value>(&message).expect("JSON")
    };
    let before = status(1)["secrets"].clone();
    place.run("node refresh try/node-3 --approval r.approval");
    place.until("all have fresh shares", || (1..=3).all(|node| status(node)["secrets"] != before));
    for node in 1..=3 {
        let log = String::from_utf8_lossy(&place.read(&format!("try/node-{node}/audit.log"))).into_owned();
        assert!(log.contains("approved-by=ann,ben"), "node-{node}: {log}");
    }
    // Neither of them is of the next refresh.
    for file in ["r.approval", "second.approval"] {
        let error = place.fails(&format!("node refresh try/node-2 --approval {file}"));
        assert!(error.contains("there was a refresh since") || error.contains("was used at"), "{error}");
    }
    // All nodes of a host at once; and who has left the group since does not count.
    request("third.approval");
    sign(&place, "third.approval", &["ann", "ben"]);
    place.run("cluster refresh try --approval third.approval");
    request("fourth.approval");
    sign(&place, "fourth.approval", &["ann", "ben"]);
    let rules = String::from_utf8(place.read("try/node-2/clients.toml")).expect("text");
    let fewer = rules.replace("[\"ann\", \"ben\"]", "[\"ann\"]").replace("need = 2", "need = 1");
    let without_ann = fewer.replace("[\"ann\"]", "[\"ben\"]");
    assert_ne!(without_ann, fewer);
    place.write("try/node-2/clients.toml", without_ann.as_bytes());
    altered(&place, "fourth.approval", "of-ann.approval", |_| ());
    let (mut of_ann, _) = load_approval(&place.path("of-ann.approval")).expect("signed");
    of_ann.signatures.truncate(1);
    place.write("of-ann.approval", approval_to_text(&of_ann).as_bytes());
    place.until("the rules are taken", || {
        place.fails("node refresh try/node-2 --approval of-ann.approval").contains("1 of @custodians")
    });
    let error = place.fails("node refresh try/node-2 --approval of-ann.approval");
    assert!(error.contains("and nobody has signed; 1 further"), "{error}");
    cluster.end();
}

#[test]
fn a_reshare_that_needs_approval_is_made_with_one_for_its_two_files_and_goes_on_with_it_when_interrupted() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    approvers(&place, MOVES);
    let cluster = place.cluster_again();
    place.run("key generate k");
    place.write("plain", b"to whom it may concern");
    place.run("encrypt --key k plain sealed");
    place.run("approval request refresh --node try/node-1 --out refresh.approval");
    sign(&place, "refresh.approval", &["ann", "ben"]);
    cluster.end();
    let error = place.fails("cluster reshare try --lost node-2 --add 1");
    assert!(error.contains("needs approval: 2 of @custodians"), "{error}");
    let message = place.run("approval request reshare try/reshare.toml --node try/node-1 --out r.approval");
    assert!(message.contains("move all keys from the nodes of the cluster file"), "{message}");
    no_approval_of(&place, "cluster reshare try", "r.approval");
    assert!(place.fails("cluster reshare try --approval refresh.approval").contains("of something else"));
    // Of the same cluster, and to another one.
    place.run("node init other --name other --address other.example:7000");
    place.run("cluster reshape try/cluster.toml --lost node-3 --add other/card.toml --out other.toml");
    place.run("approval request reshare other.toml --node try/node-1 --out wrong.approval");
    sign(&place, "wrong.approval", &["ann", "ben"]);
    let error = place.fails("cluster reshare try --approval wrong.approval");
    assert!(error.contains("between other cluster files"), "{error}");

    // One node spends it and then waits in vain. It may begin again, also without the file; the others need
    // it.
    sign(&place, "r.approval", &["ann", "ben"]);
    let shown = place.run("cluster show try/reshare.toml");
    let line = shown.lines().find(|line| line.contains("fingerprint")).expect("it is shown");
    let expected = line.split_whitespace().last().expect("64 digits").to_owned();
    let alone = format!("node reshare try/node-1 try/reshare.toml --expect {expected} --wait 1");
    assert!(!place.fails(&format!("{alone} --approval r.approval")).contains("approv"));
    assert!(!place.fails(&alone).contains("approv"));
    let other = alone.replace("node-1", "node-3");
    assert!(place.fails(&other).contains("needs approval"), "each node wants it");
    place.run("cluster reshare try --approval r.approval");
    for node in [1, 3] {
        let log = String::from_utf8_lossy(&place.read(&format!("try/node-{node}/audit.log"))).into_owned();
        assert!(log.contains("approved-by=ann,ben"), "node-{node}: {log}");
    }
    let error = place.fails("cluster reshare try --lost node-1 --add 1 --approval r.approval");
    assert!(error.contains("of another cluster"), "{error}");
    std::fs::remove_file(place.path("try/reshare.toml")).expect("nobody has prepared it");
    let _cluster = place.cluster_again();
    place.run("decrypt --key k sealed copy");
    assert_eq!(place.read("copy"), b"to whom it may concern");
}
