//! Rules for clients, as an operator writes, tries and lists them. No node runs.

use polyclave_harness::authority::Authority;

use super::common::Place;

/// Three nodes, and a client that may do everything.
fn place() -> Place {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    place
}

fn init(place: &Place, name: &str) {
    place.run(&format!("client init {name} --name {name}"));
}

/// What `node policy check` says, which must end with this status.
fn check(place: &Place, status: i32, arguments: &str) -> String {
    let output = place.output(&format!("node policy check {arguments}"));
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn rules_are_added_tried_and_listed() {
    let place = place();
    init(&place, "alice");
    let allow = |rest: &str| place.run(&format!("node allow try/node-1 alice/card.toml {rest}"));
    allow("--rights list --keys *");
    let message = allow(
        "--add --rule payroll --rights encrypt,decrypt --keys payroll-* --modes gcm --not-after 2026-12-31T18:00:00Z --requests-per-hour 100",
    );
    assert!(
        message.contains("alice may encrypt, decrypt at node-1 with the keys payroll-*, by the rule payroll"),
        "{message}"
    );
    let message = allow("--add --deny --rights encrypt --keys *-old");
    assert!(
        message.contains("alice may no longer encrypt") && message.contains("by the rule alice-1"),
        "{message}"
    );

    let asked = "try/node-1 --client alice --right encrypt --key";
    let message = check(&place, 0, &format!("{asked} payroll-1 --mode gcm --at 2026-12-31T18:00:00Z"));
    assert!(message.contains("alice may encrypt with the key 'payroll-1' in gcm"), "{message}");
    assert!(message.contains("allowed by the rule payroll, within its limits"), "{message}");
    let message = check(&place, 2, &format!("{asked} payroll-1 --mode cbc --at 2026-12-31T18:00:00Z"));
    assert!(message.contains("the rule payroll comes nearest: it is for gcm, not for cbc"), "{message}");
    let message = check(&place, 2, &format!("{asked} payroll-1 --mode gcm --at 2026-12-31T18:00:01Z"));
    assert!(message.contains("comes nearest: it ended at 2026-12-31T18:00:00Z"), "{message}");
    let message = check(&place, 2, &format!("{asked} payroll-old --mode gcm --at 2026-12-31T18:00:00Z"));
    assert!(message.contains("denied by the rule alice-1"), "{message}");
    let message = check(&place, 0, "try/node-1 --client alice --right list --key k --json");
    let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
    assert_eq!(
        (message["allowed"].as_bool(), message["rules"][0].as_str()),
        (Some(true), Some("the entry of alice"))
    );

    let listed = place.run("node policy list try/node-1 --key payroll-7");
    let rows: Vec<&str> = listed.lines().collect();
    assert!(rows[0].starts_with("client"), "{listed}");
    let row = rows.iter().find(|row| row.contains("payroll-*")).expect("the rule");
    for cell in [
        "alice",
        "allow",
        "encrypt, decrypt",
        "gcm",
        "to 2026-12-31T18:00:00Z",
        "100 requests/hour",
        "payroll",
    ] {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    assert!(!listed.contains("*-old"), "it is for other keys: {listed}");
    assert!(rows.iter().any(|row| row.starts_with("client ") && row.contains("(its entry)")), "{listed}");
    let of_alice = place.run("node policy list try/node-1 --client alice --key *-old --json");
    let of_alice: serde_json::Value = serde_json::from_str(&of_alice).expect("JSON");
    let effects: Vec<_> =
        of_alice.as_array().expect("rows").iter().map(|row| row["effect"].as_str()).collect();
    assert_eq!(effects, [Some("allow"), Some("allow"), Some("deny")]);
    assert!(
        place.fails("node policy list try/node-1 --client nobody").contains("there is no client 'nobody'")
    );
}

#[test]
fn a_group_shares_rules_and_revoking_takes_all() {
    let place = place();
    for name in ["bob", "carol"] {
        init(&place, name);
        place.run(&format!("node allow try/node-1 {name}/card.toml --group office"));
    }
    let mut rules = String::from_utf8(place.read("try/node-1/clients.toml")).expect("text");
    rules += "\n# What the office may do.\n[[rule]]\nname = \"office\"\ngroups = [\"office\"]\nrights = [\"mac\"]\nkeys = [\"m?\"]\n";
    place.write("new.toml", rules.as_bytes());
    let asked = "--client carol --right mac --mode cmac --key m1";
    assert!(check(&place, 0, &format!("--file new.toml {asked}")).contains("the rule office"));
    assert!(check(&place, 2, &format!("try/node-1 {asked}")).contains("no rule is for carol"));
    let message = place.run("node policy set try/node-1 new.toml");
    assert!(message.contains("3 clients, 1 groups, 1 rules"), "{message}");
    assert!(
        String::from_utf8(place.read("try/node-1/clients.toml")).expect("text").contains("# What the office")
    );
    check(&place, 0, &format!("try/node-1 {asked}"));
    place.run("node revoke try/node-1 carol");
    assert!(
        place.fails(&format!("node policy check try/node-1 {asked}")).contains("there is no client 'carol'")
    );
    check(&place, 0, "try/node-1 --client bob --right mac --key m1");
}

/// It would go on with the rights of the other entry, and without the rules that denied something to its own.
#[test]
fn clients_of_an_authority_are_not_revoked_while_another_entry_fits_them() {
    let place = place();
    place.write("corp.pem", Authority::new("corp").pem().as_bytes());
    place.run("node authority add try/node-1 corp corp.pem");
    let allow = |name: &str, identity: &str| {
        place.run(&format!(
            "node authority allow try/node-1 corp --name {name} --identity {identity} --rights mac --keys m?"
        ))
    };
    allow("all", "spiffe://corp.example/*");
    allow("web", "spiffe://corp.example/web");
    let before = place.read("try/node-1/clients.toml");
    let message = place.fails("node revoke try/node-1 web");
    assert!(message.contains("its identity is one of all, too"), "{message}");
    assert_eq!(place.read("try/node-1/clients.toml"), before);
    place.run("node revoke try/node-1 all");
    place.run("node revoke try/node-1 web");
    let asked = "--client spiffe://corp.example/web --right mac --mode cmac --key m1";
    place.fails(&format!("node policy check try/node-1 {asked}"));
}

#[test]
fn a_file_that_is_not_in_order_is_refused_with_its_line_and_changes_nothing() {
    let place = place();
    let before = place.read("try/node-1/clients.toml");
    let rules = String::from_utf8(before.clone()).expect("text");
    for (added, message) in [
        (
            "[[rule]]\nname = \"r\"\nclients = [\"nobody\"]\nrights = [\"list\"]\nkeys = [\"*\"]\n",
            "there is no client \"nobody\"",
        ),
        (
            "[[rule]]\nname = \"r\"\nclients = [\"client\"]\nrights = [\"fly\"]\nkeys = [\"*\"]\n",
            "unknown variant `fly`",
        ),
        ("[[rule]]\nname = \"r\"\nrights = [\"list\"]\nkeys = [\"*\"]\n", "it is for nobody"),
    ] {
        place.write("new.toml", format!("{rules}{added}").as_bytes());
        let error = place.fails("node policy set try/node-1 new.toml");
        assert!(error.contains("new.toml") && error.contains("line ") && error.contains(message), "{error}");
        assert_eq!(place.read("try/node-1/clients.toml"), before);
    }
    init(&place, "dave");
    let error = place.output("node allow try/node-1 dave/card.toml --rights encrypt --keys k --modes gcm");
    assert!(String::from_utf8_lossy(&error.stderr).contains("--add"), "conditions are of a rule");
}
