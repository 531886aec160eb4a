//! Keys that are made while nodes die or other clients make the same.

use std::time::{Duration, Instant};

use polyclave_api::Mode;

use crate::common::messages::{gcm, ungcm};
use crate::common::{TestCluster, data, key};

#[test]
fn of_clients_that_make_a_key_of_one_name_one_succeeds_at_most_and_the_name_stays_usable() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for round in 0..6 {
        let name = format!("wanted-{round}");
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let (cluster, name) = (cluster.clone(), &name);
                    scope.spawn(move || {
                        let client = cluster.client();
                        match n {
                            0 => client.import(key(name, "aes-128", &[Mode::Gcm]), &[7; 16]).is_ok(),
                            _ => client.generate(key(name, "aes-128", &[Mode::Gcm])).is_ok(),
                        }
                    })
                })
                .collect();
            threads.into_iter().filter_map(|t| t.join().ok().filter(|made| *made)).count()
        });
        assert!(made <= 1, "{made} clients made it");
        if made == 0 {
            client.generate(key(&name, "aes-128", &[Mode::Gcm])).expect("its name is free");
        }
        gcm(&client, &name, b"", b"x").expect("all nodes hold the same key");
        client.delete(&name).expect("deleted");
    }
}

#[test]
fn making_and_deleting_in_turn_needs_no_waiting() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for _ in 0..10 {
        client.generate(key("again", "aes-128", &[Mode::Ctr])).expect("made");
        client.delete("again").expect("deleted").expect("there was one");
        assert_eq!(client.delete("again").expect("nothing to do"), None);
    }
}

#[test]
fn a_key_that_was_promised_is_at_all_nodes_whenever_one_of_them_dies() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let mut number = 0;
    for round in 0..10_u64 {
        let victim = (round % 3) as usize;
        let node = cluster.nodes[victim].take().expect("it runs");
        // Somewhere in one of the generations that go on meanwhile.
        let dying = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 150));
            drop(node);
        });
        let (mut promised, mut failed) = (Vec::new(), Vec::new());
        while failed.is_empty() {
            number += 1;
            let name = format!("key-{number}");
            match client.generate(key(&name, "aes-128", &[Mode::Gcm])) {
                Ok(_) => promised.push(name),
                Err(_) => failed.push(name),
            }
        }
        dying.join().expect("it stopped");
        cluster.restart(victim);
        cluster.wait_until_ready();
        let listed = client.keys().expect("a list");
        assert!(listed.missing.is_empty(), "{:?}", listed.missing);
        for name in &promised {
            let at = listed.keys.iter().find(|k| k.info.properties.name == *name).map(|k| k.at.len());
            assert_eq!(at, Some(3), "{name} was promised");
            let message = gcm(&client, name, b"", &data(20)).expect("usable");
            assert_eq!(ungcm(&client, name, b"", &message).expect("usable"), data(20));
        }
        for name in failed {
            // All nodes may have it although its maker was not told; then it is a good key and can be
            // deleted. The other nodes may still wait for the one that died, and say to try again later.
            let until = Instant::now() + Duration::from_secs(20);
            while let Err(e) = client.delete(&name) {
                assert!(e.may_pass() && Instant::now() < until, "{name}: {e}");
                std::thread::sleep(Duration::from_millis(100));
            }
            client.generate(key(&name, "aes-128", &[Mode::Gcm])).unwrap_or_else(|e| panic!("{name}: {e}"));
            gcm(&client, &name, b"", b"x").expect("usable");
        }
    }
}
