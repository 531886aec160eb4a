//! What changes in the life of nodes and clients: addresses and certificates, also while a node is down.

use crate::common::{Place, Running, free_range, noise};

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// Three nodes (or others), whose certificates are valid for these days, and the client alice, who has made
/// the key `k`.
struct Three {
    names: &'static [&'static str],
    nodes: Vec<Option<Running>>,
    /// The first of 40 ports; each node has three.
    port: u16,
    place: Place,
}

impl Three {
    fn new(days: [u32; 3], days_of_client: u32) -> Three {
        Three::of(&NAMES, &days, days_of_client)
    }

    fn of(names: &'static [&'static str], days: &[u32], days_of_client: u32) -> Three {
        let (place, port) = (Place::new(), free_range(40));
        for ((name, days), number) in names.iter().zip(days).zip(0..) {
            let port = port + 3 * number;
            place.run(&format!(
                "node init {name} --name {name} --address 127.0.0.1:{port} --http 127.0.0.1:{} --days {days}",
                port + 2
            ));
        }
        let cards: Vec<String> = names.iter().map(|name| format!("{name}/card.toml")).collect();
        place.run(&format!("cluster define --threshold 1 --out c.toml {}", cards.join(" ")));
        place.run(&format!("client init alice --name alice --cluster c.toml --days {days_of_client}"));
        for name in names {
            place.run(&format!("node join {name} c.toml"));
            place.run(&format!("node allow {name} alice/card.toml --rights all --keys *"));
        }
        let mut three = Three { place, port, names, nodes: names.iter().map(|_| None).collect() };
        (0..names.len()).for_each(|node| three.start(node));
        three.until_ready();
        three.place.run("key generate k --client alice");
        three.place.write("f", &noise(1000));
        three.place.run("encrypt --key k --client alice f f.sealed");
        three
    }

    fn start(&mut self, node: usize) {
        self.nodes[node] = Some(self.place.start(&format!("node run {}", self.names[node])));
    }

    fn stop(&mut self, node: usize) {
        let running = self.nodes[node].take().expect("it runs");
        // Before that it may not listen to signals yet.
        running.wait_for(&format!("node {}: ", self.names[node]));
        running.end();
    }

    fn restart(&mut self, node: usize) {
        self.stop(node);
        self.start(node);
    }

    fn until_ready(&self) {
        for name in self.names {
            self.place.until(name, || self.place.output(&format!("node status {name}")).status.success());
        }
        self.place.until("the client reaches all", || {
            self.place.output("client status --client alice").status.success()
        });
    }

    /// Waits until the status of a node has this in it.
    fn until_status(&self, name: &str, message: &str) {
        self.place.until(&format!("{name} says {message:?}"), || {
            let output = self.place.output(&format!("node status {name}"));
            String::from_utf8_lossy(&output.stdout).contains(message)
        });
    }

    fn still_decrypts(&self) {
        self.place.run("decrypt --key k --client alice f.sealed g --force");
        assert_eq!(self.place.read("g"), noise(1000));
    }
}

/// The highest node moves, because the others call it. Each step is taken, and the ones that lack it say what
/// they lack.
#[test]
fn a_node_that_moves_is_missed_by_name_until_the_others_have_its_address_and_loses_nothing() {
    let mut three = Three::new([365; 3], 365);
    let (old, new) = (three.port + 6, three.port + 30);
    let message = three.place.run(&format!("node address gamma --address 127.0.0.1:{new}"));
    assert!(message.contains(&format!("127.0.0.1:{new}, for clients at 127.0.0.1:{}", new + 1)), "{message}");
    let refused = three.place.fails("node join gamma c.toml");
    assert!(refused.contains(&format!("127.0.0.1:{new}")) && refused.contains("cluster update"), "{refused}");
    three.place.run("cluster update c.toml gamma/card.toml");
    NAMES.iter().for_each(|name| drop(three.place.run(&format!("node join {name} c.toml"))));

    three.restart(2);
    three.until_status("alpha", &format!("gamma: no connection to 127.0.0.1:{old}"));
    let alone = three.place.fails("decrypt --key k --client alice f.sealed g --force");
    assert!(alone.contains("gamma"), "{alone}");
    three.restart(0);
    three.until_status("beta", &format!("gamma: no connection to 127.0.0.1:{old}"));
    three.restart(1);
    three.place.run("client join alice c.toml");
    three.until_ready();
    three.still_decrypts();
    three.place.run("key generate later --client alice");
    assert!(three.place.fails("node address gamma").contains("say what changes"));
    assert!(three.place.fails("node address gamma --address nowhere").contains("not an address"));
}

/// Of four nodes any three serve.
#[test]
fn while_one_node_of_four_moves_the_others_serve() {
    let mut four = Three::of(&["alpha", "beta", "gamma", "delta"], &[365; 4], 365);
    let new = four.port + 30;
    four.place.run(&format!("node address delta --address 127.0.0.1:{new}"));
    four.place.run("cluster update c.toml delta/card.toml");
    for name in four.names {
        four.place.run(&format!("node join {name} c.toml"));
    }
    // Delta is at its new place, where only nodes and clients with the new file look for it.
    four.restart(3);
    four.still_decrypts();
    for node in 0..3 {
        four.stop(node);
        // Delta has the new file and cannot be reached by those who have not started with it; with it, it is
        // one of three.
        four.start(node);
        let name = four.names[node];
        four.place.until(name, || {
            four.place.output("decrypt --key k --client alice f.sealed g --force").status.success()
        });
        four.still_decrypts();
    }
    four.place.run("client join alice c.toml");
    four.until_ready();
    // The moved node serves, too: without it and another one there are too few.
    four.stop(0);
    four.still_decrypts();
    four.stop(3);
    assert!(four.place.fails("decrypt --key k --client alice f.sealed g --force").contains("delta"));
}

/// What a kill between the change of the identity and the writing of the card leaves: the card from before.
#[test]
fn a_change_of_certificate_that_was_killed_before_it_wrote_the_card_is_completed_by_the_same_command() {
    let place = Place::new();
    place.run("node init alpha --name alpha --address 127.0.0.1:9");
    place.run("node init beta --name beta --address 127.0.0.1:12");
    place.run("node init gamma --name gamma --address 127.0.0.1:15");
    place.run("cluster define --threshold 1 --out c.toml alpha/card.toml beta/card.toml gamma/card.toml");
    place.run("client init alice --name alice --cluster c.toml");
    for (dir, rotate, finish) in [
        ("alpha", "node rotate alpha", "node rotate alpha --finish --anyway"),
        ("alice", "client rotate alice", "client rotate alice --finish --anyway"),
    ] {
        let card = format!("{dir}/card.toml");
        for command in [rotate, finish] {
            let before = place.read(&card);
            place.run(command);
            let after = place.read(&card);
            assert_ne!(before, after, "{command}");
            place.write(&card, &before);
            let message = place.run(command);
            assert!(
                message.contains("was interrupted") && place.read(&card) == after,
                "{command}: {message}"
            );
            std::fs::remove_file(place.path(&card)).expect("it is lost");
            place.run(command);
            assert_eq!(place.read(&card), after, "{command}");
            place.fails(command);
            assert_eq!(place.read(&card), after, "{command}");
        }
    }
}

/// Both commands in one line, as somebody may type them who has not read on.
#[test]
fn a_rotation_that_others_do_not_know_of_is_not_finished_and_an_early_one_is_mended_as_the_node_says() {
    let mut three = Three::new([365; 3], 365);
    three.place.run("node rotate beta");
    let message = three.place.fails("node rotate beta --finish");
    assert!(
        message.contains("the cluster file of this node") && message.contains("cluster update"),
        "{message}"
    );
    three.place.run("cluster update c.toml beta/card.toml");
    three.place.run("node join beta c.toml");
    let message = three.place.fails("node rotate beta --finish");
    assert!(message.contains("alpha runs with a cluster file without the next certificate"), "{message}");
    assert!(message.contains("gamma runs with") && !message.contains("beta runs"), "{message}");
    three.stop(1);
    let message = three.place.fails("node rotate beta --finish");
    assert!(message.contains("this node is not running, so the others cannot be asked"), "{message}");
    three.start(1);
    three.until_ready();
    three.still_decrypts();

    // All have the file, and the last one is still on its way back.
    ["alpha", "gamma"].iter().for_each(|name| drop(three.place.run(&format!("node join {name} c.toml"))));
    three.restart(0);
    three.stop(2);
    three.until_status("beta", "missing    gamma");
    let place = &three.place;
    let gamma = std::thread::scope(|scope| {
        let finished = scope.spawn(|| place.run("node rotate beta --finish"));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let gamma = place.start("node run gamma");
        assert!(finished.join().expect("it is finished").contains("uses the new certificate alone"));
        gamma
    });
    three.nodes[2] = Some(gamma);

    // Once more, early, against the advice, and with the file from before.
    three.place.run("node rotate beta");
    three.place.run("node rotate beta --finish --anyway");
    three.stop(1);
    let message = three.place.fails("node run beta");
    assert!(message.contains("node rotate --finish") && message.contains("--replace"), "{message}");
    three.place.run("cluster update c.toml beta/card.toml --replace");
    let message = three.place.run("cluster show c.toml");
    let line = message.lines().find(|line| line.contains("fingerprint")).expect("it is shown");
    let expected = line.split_whitespace().last().expect("64 digits");
    for name in ["alpha", "beta", "gamma"] {
        three.place.run(&format!("node join {name} c.toml --expect {expected}"));
    }
    three.place.run(&format!("client join alice c.toml --expect {expected}"));
    three.start(1);
    three.restart(0);
    three.restart(2);
    three.until_ready();
    three.still_decrypts();
}

/// gamma is down while the others learn of beta's next certificate, and comes back with the old file when
/// beta uses the next one.
#[test]
fn a_node_that_was_down_during_a_rotation_says_what_it_lacks_and_is_brought_up_to_date() {
    let mut three = Three::new([365; 3], 365);
    three.stop(2);
    three.place.run("node rotate beta");
    three.place.run("cluster update c.toml beta/card.toml");
    for name in ["alpha", "beta"] {
        three.place.run(&format!("node join {name} c.toml"));
    }
    three.place.run("client join alice c.toml");
    (0..2).for_each(|node| three.restart(node));
    three.until_status("beta", "missing    gamma");
    let message = three.place.fails("node rotate beta --finish");
    assert!(
        message.contains("gamma is not connected") && message.contains("nothing was changed"),
        "{message}"
    );
    three.place.run("node rotate beta --finish --anyway");
    three.restart(1);

    // The file that gamma has knows nothing of beta's certificate.
    three.start(2);
    three.until_status("gamma", "missing    beta");
    three.until_status("beta", "gamma: it refused this node's certificate");
    assert_eq!(three.place.output("node status gamma").status.code(), Some(1));
    three.stop(2);
    three.place.run("node join gamma c.toml");
    three.start(2);
    three.until_ready();
    three.still_decrypts();

    // The old certificate is dropped, again while gamma is down. It may come back with the file from before.
    three.stop(2);
    three.place.run("cluster update c.toml beta/card.toml");
    for name in ["alpha", "beta"] {
        three.place.run(&format!("node join {name} c.toml"));
    }
    (0..2).for_each(|node| three.restart(node));
    three.start(2);
    three.until_ready();
    three.still_decrypts();
    three.place.run("node join gamma c.toml");
    three.place.run("client join alice c.toml");
    three.restart(2);
    three.until_ready();
    three.still_decrypts();
}

#[test]
fn certificates_that_end_soon_are_warned_of_in_status_metrics_and_at_the_client() {
    let three = Three::new([365, 20, 365], 10);
    let text = three.place.run("node status alpha");
    let soon: Vec<&str> = text.lines().filter(|line| line.starts_with("CERTIFICATE")).collect();
    assert_eq!(soon.len(), 2, "{text}");
    assert!(soon[0].contains("the client alice ends on") && soon[0].contains("client rotate"), "{text}");
    assert!(soon[1].contains("the node beta ends on") && soon[1].contains("node rotate"), "{text}");
    let own = three.place.run("node status beta");
    assert!(own.contains("CERTIFICATE this node's own certificate ends on"), "{own}");

    let status: serde_json::Value =
        serde_json::from_str(&three.place.run("node status beta --json")).expect("it is JSON");
    let listed = status["certificates"].as_array().expect("a list");
    let of = |of: &str, name: &str| {
        listed.iter().find(|end| end["of"] == of && end["name"] == name).expect("it is listed")
    };
    assert_eq!(listed.len(), 4);
    assert_eq!((&of("own", "beta")["soon"], &of("node", "alpha")["soon"]), (&true.into(), &false.into()));
    // Whole days: ten as long as no second has passed.
    let days = of("client", "alice")["days"].as_i64().expect("a number");
    assert!((9..=10).contains(&days), "{days}");

    // A node looks at its certificates a moment after it has started.
    let fetch = || three.place.fetch(three.port + 2, "/metrics");
    three.place.until("the metrics have certificates", || fetch().contains("polyclave_certificate_end"));
    let metrics = fetch();
    let metric = |of: &str, name: &str| {
        let label = format!("polyclave_certificate_end_timestamp_seconds{{of=\"{of}\",name=\"{name}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&label));
        line.unwrap_or_else(|| panic!("{label} in {metrics}")).parse::<f64>().expect("a number")
    };
    assert_eq!(metric("node", "beta"), of("own", "beta")["ends"].as_f64().expect("a number"));
    assert_eq!(metric("client", "alice"), of("client", "alice")["ends"].as_f64().expect("a number"));
    assert!(metric("own", "alpha") > metric("node", "beta"));

    let message = three.place.run("client status --client alice");
    assert!(message.contains("CERTIFICATE the certificate of the client alice ends on"), "{message}");
    let message = three.place.run("client status --client alice --warn-days 5");
    assert!(!message.contains("CERTIFICATE"), "{message}");
    let message: serde_json::Value =
        serde_json::from_str(&three.place.run("client status --client alice --json")).expect("it is JSON");
    assert_eq!(message["certificate"]["soon"], true);
}

#[test]
fn a_client_changes_its_certificate_and_keeps_its_rights_and_only_its_old_key_can_vouch_for_the_new_one() {
    let three = Three::new([365; 3], 10);
    let place = &three.place;
    place.run("node allow alpha alice/card.toml --rights decrypt,list,generate --keys k,other");
    place.run("client rotate alice --days 300");
    assert!(place.fails("client rotate alice").contains("already being changed"));
    let unknown = place.fails("client rotate alice --finish");
    assert!(unknown.contains("not finished") && NAMES.iter().all(|name| unknown.contains(name)), "{unknown}");

    // A card that was altered, and a card of somebody else under the same name.
    let card = String::from_utf8(place.read("alice/card.toml")).expect("text");
    place.write("altered.toml", card.replace("name = \"alice\"", "name = \"alice2\"").as_bytes());
    assert!(place.fails("node allow alpha altered.toml").contains("does not vouch"));
    place.run("client init mallory --name alice");
    place.run("client rotate mallory");
    let rules = place.read("alpha/clients.toml");
    let foreign = place.fails("node allow alpha mallory/card.toml");
    assert!(foreign.contains("another certificate") && foreign.contains("--replace"), "{foreign}");
    assert_eq!(place.read("alpha/clients.toml"), rules);
    place.run("client init stranger --name stranger");
    assert!(place.fails("node allow alpha stranger/card.toml").contains("--rights"));

    for name in ["alpha", "beta"] {
        let message = place.run(&format!("node allow {name} alice/card.toml"));
        assert!(message.contains("alice keeps its rights"), "{message}");
    }
    place.until("alpha and beta know it, gamma does not", || {
        let message = place.fails("client rotate alice --finish");
        message.contains("gamma") && !message.contains("beta")
    });
    three.still_decrypts();
    place.run("node allow gamma alice/card.toml");
    place.until("all know it", || place.output("client rotate alice --finish").status.success());
    three.still_decrypts();
    let denied = place.fails("encrypt --key k --client alice f h");
    assert!(denied.contains("alpha") && denied.contains("does not allow alice to encrypt"), "{denied}");
    let text = place.run("node status alpha");
    assert!(!text.contains("CERTIFICATE"), "the next one is valid for longer: {text}");

    // Both are known until the operators have seen the card again. Then the old one is not.
    let old = card.split("[next]").next().expect("a card");
    assert!(
        card.contains("[next]")
            && !String::from_utf8_lossy(&place.read("alice/card.toml")).contains("[next]")
    );
    let has_two = |name: &str| {
        let rules = String::from_utf8(place.read(&format!("{name}/clients.toml"))).expect("text");
        rules.contains("\nnext = ")
    };
    assert!(has_two("alpha"));
    NAMES.iter().for_each(|name| drop(place.run(&format!("node allow {name} alice/card.toml"))));
    assert!(!has_two("alpha"));
    place.write("old.toml", old.as_bytes());
    assert!(place.fails("node allow alpha old.toml").contains("another certificate"));
    assert!(place.fails("node allow alpha alice2.toml").matches("No such file").count() == 1);
    three.still_decrypts();
    let log = place.run("node audit show alpha");
    assert!(log.contains("next-certificate="), "{log}");
}
