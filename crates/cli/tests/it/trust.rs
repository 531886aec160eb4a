//! What a person is asked to compare, and that nothing takes the place of what was compared.

use crate::common::{Place, free_ports};

/// Three nodes that have not joined a cluster, and its file.
fn three_nodes(place: &Place) {
    let ports = free_ports(6);
    for (name, ports) in ["alpha", "beta", "gamma"].iter().zip(ports.chunks(2)) {
        place.run(&format!(
            "node init {name} --name {name} --address 127.0.0.1:{} --client-address 127.0.0.1:{} --http none",
            ports[0], ports[1]
        ));
    }
    place.run("cluster define --threshold 1 --out c.toml alpha/card.toml beta/card.toml gamma/card.toml");
}

fn shown(place: &Place, file: &str) -> (String, String) {
    let shown: serde_json::Value =
        serde_json::from_str(&place.run(&format!("cluster show {file} --json"))).expect("JSON");
    let text = |field: &str| shown[field].as_str().expect("text").to_owned();
    (text("fingerprint"), text("words").replace(' ', "-"))
}

fn certificate(card: &str) -> String {
    let (_, after) = card.split_once("certificates = [\"").expect("a card");
    after.split_once('"').expect("a card").0.to_owned()
}

#[test]
fn a_forged_cluster_file_has_another_fingerprint_and_what_expects_the_right_one_writes_nothing() {
    let place = Place::new();
    three_nodes(&place);
    let (hex, words) = shown(&place, "c.toml");
    assert_eq!((hex.len(), words.split('-').count()), (64, 16));

    // The same id, protocol, threshold, names and addresses: another node's certificate, whose key somebody
    // else has.
    place.run("node init mallory --name beta --address 127.0.0.1:1 --client-address 127.0.0.1:2 --http none");
    let text = |name: &str| String::from_utf8(place.read(name)).expect("text");
    let [beta, mallory] = ["beta/card.toml", "mallory/card.toml"].map(|card| certificate(&text(card)));
    let forged = text("c.toml").replace(&beta, &mallory);
    assert_ne!(forged, text("c.toml"));
    place.write("forged.toml", forged.as_bytes());
    assert_ne!(shown(&place, "forged.toml"), (hex.clone(), words.clone()));

    place.run("client init bob --name bob");
    let before = place.names();
    for expected in [&hex, &words, &words.to_uppercase()] {
        for command in [
            "cluster show forged.toml",
            "client init alice --name alice --cluster forged.toml",
            "client join bob forged.toml",
            "client join bob forged.toml --replace",
            "node join alpha forged.toml",
            "cluster update c.toml mallory/card.toml --replace",
        ] {
            let message = place.fails(&format!("{command} --expect {expected}"));
            assert!(message.contains("another fingerprint than was expected"), "{command}: {message}");
        }
        assert_eq!(place.names(), before);
        assert!(!place.path("bob/cluster.toml").exists() && !place.path("alpha/cluster.toml").exists());
    }
    assert_eq!(shown(&place, "c.toml").0, hex, "nothing was changed");
    assert!(place.fails(&format!("client join bob c.toml --expect {}", &hex[..32])).contains("all 64"));

    for (command, expected) in [
        ("client init alice --name alice --cluster c.toml", &words),
        ("client join bob c.toml", &hex),
        ("node join alpha c.toml", &hex),
    ] {
        let done = place.output(&format!("{command} --expect {expected}"));
        let message =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && message.contains(&hex), "{message}");
        let spoken: Vec<&str> = words.split('-').collect();
        assert!(spoken.iter().all(|word| message.contains(word)), "{message}");
    }
    // Once it was taken, a file with another certificate does not take its place in silence; beta itself
    // never joins it.
    assert!(place.fails("client join bob forged.toml").contains("--expect"));
    assert!(place.fails("node join alpha forged.toml").contains("--expect"));
    place.fails("node join beta forged.toml");
}

#[test]
fn a_second_card_of_a_known_name_is_refused_and_both_certificates_are_shown() {
    let place = Place::new();
    three_nodes(&place);
    place.run("client init first --name alice");
    place.run("client init second --name alice");
    place.run("node allow alpha first/card.toml --rights list --keys *");
    let rules = place.read("alpha/clients.toml");
    let message = place.fails("node allow alpha second/card.toml --rights all --keys *");
    assert!(message.contains("--replace") && message.matches("SHA-256").count() == 2, "{message}");
    assert_eq!(place.read("alpha/clients.toml"), rules);
    place.run("node allow alpha first/card.toml --rights list,encrypt --keys *");
    assert!(
        place
            .run("node allow alpha second/card.toml --rights list --keys * --replace")
            .contains("alice may list")
    );
    assert_ne!(place.read("alpha/clients.toml"), rules);

    // The same of a node's card.
    let file = place.read("c.toml");
    place.run("node init other --name beta --address 127.0.0.1:1 --client-address 127.0.0.1:2 --http none");
    let message = place.fails("cluster update c.toml other/card.toml");
    assert!(message.contains("--replace") && message.matches("SHA-256").count() == 2, "{message}");
    assert_eq!(place.read("c.toml"), file);
    let message = place
        .fails("cluster define --threshold 1 --out d.toml alpha/card.toml beta/card.toml other/card.toml");
    assert!(message.contains("two nodes are called beta") && !place.path("d.toml").exists(), "{message}");

    // And of directories and clusters that are there.
    for command in [
        "client init first --name alice",
        "node init alpha --name alpha --address 127.0.0.1:1 --http none",
        "cluster define --threshold 1 --out c.toml alpha/card.toml beta/card.toml gamma/card.toml",
    ] {
        assert!(place.fails(command).contains("is there already"), "{command}");
    }
    place.run("client join first c.toml");
    place.run(
        "cluster define --threshold 1 --out another.toml alpha/card.toml beta/card.toml gamma/card.toml",
    );
    assert!(place.fails("client join first another.toml").contains("uses another cluster"));
    place.run("client join first another.toml --replace");
}

#[test]
fn a_directory_in_place_of_a_key_file_is_called_that() {
    let place = Place::new();
    place.run("client init alice --name alice");
    let message = place.fails("key import k --key-file alice --client alice");
    assert!(message.contains("is a directory; give a file") && !message.contains("chmod"), "{message}");
}
