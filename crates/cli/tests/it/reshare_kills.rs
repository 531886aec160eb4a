//! All keys move to other nodes, from one protocol to itself or to another, while nodes are killed at random
//! moments. The same command, again, finishes it. And a copy of a key, from a backup and through a move.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Reason};

use crate::common::Running;
use crate::kills::random;
use crate::refresh::{Trial, insist, new_key};
use crate::reshare::{at_each_node, at_rest, fingerprint, init, reshare, serves, set_stock, started};

/// Moves in which nodes are killed, where nobody asks for more with `POLYCLAVE_KILL_ROUNDS`.
const ROUNDS: usize = 3;
/// Whatever the nodes can do they do in this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);
/// Blocks that are kept ready by nodes that keep a stock: of two or three, and of those that correct each
/// other.
const STOCKS: [(&str, usize); 2] = [("shamir-active", 256), ("", 32)];

/// A move: to which protocol, how many of the oldest nodes leave, and how many come.
#[derive(Clone, Copy)]
struct Hop {
    to: &'static str,
    leave: usize,
    come: usize,
}

/// One node leaves, and another one comes.
fn within(protocol: &'static str) -> Hop {
    Hop { to: protocol, leave: 1, come: 1 }
}

/// All nodes, or one, are killed at a random moment of every move.
fn survives_kills(from: &str, hops: &[Hop], longest: u64) {
    let mut below = random();
    let rounds = std::env::var("POLYCLAVE_KILL_ROUNDS")
        .map_or(hops.len(), |rounds| rounds.parse().expect("POLYCLAVE_KILL_ROUNDS is a number"));
    let trial = at_rest(from);
    let place = &trial.place;
    let mut current: Vec<usize> = (1..=trial.nodes).collect();
    for (round, hop) in (1..=rounds).zip(hops.iter().cycle()) {
        let last = *current.last().expect("several");
        let come: Vec<usize> = (last + 1..=last + hop.come).collect();
        for node in &come {
            init(place, *node);
            place.write(
                &format!("try/node-{node}/clients.toml"),
                &place.read(&format!("try/node-{last}/clients.toml")),
            );
            place.use_several_streams(*node);
        }
        let (leave, stay) = current.split_at(hop.leave);
        let all: Vec<usize> = current.iter().chain(&come).copied().collect();
        let next: Vec<usize> = stay.iter().chain(&come).copied().collect();
        std::fs::remove_file(place.path("new.toml")).ok();
        let removed: String = leave.iter().map(|node| format!(" --remove node-{node}")).collect();
        let added: String = come.iter().map(|node| format!(" --add try/node-{node}/card.toml")).collect();
        place.run(&format!(
            "cluster reshape try/cluster.toml --protocol {}{removed}{added} --out new.toml",
            hop.to
        ));
        let expected = fingerprint(place, "new.toml");
        let mut running = at_each_node(place, &all, &expected);
        let moment = Duration::from_millis(below(longest));
        std::thread::sleep(moment);
        let victims: Vec<usize> = match below(2) {
            0 => (0..all.len()).collect(),
            _ => vec![below(all.len() as u64) as usize],
        };
        for victim in &victims {
            running[*victim].kill();
            running[*victim].wait_until_gone();
        }
        // Whoever is prepared serves nothing, in either cluster. Those that were not killed wait for the
        // others.
        for victim in &victims {
            running[*victim] = at_each_node(place, &[all[*victim]], &expected).remove(0);
        }
        let began = Instant::now();
        let done: Vec<bool> = running.into_iter().map(Running::finish).collect();
        println!(
            "{round}/{rounds} to {}: {victims:?} after {moment:?}, {done:?} after {:?}",
            hop.to,
            began.elapsed()
        );
        if done.contains(&false) {
            // Some were done and gone before the others came back.
            assert!(
                at_each_node(place, &all, &expected).into_iter().all(Running::finish),
                "the same command again"
            );
        }
        assert!(began.elapsed() < 3 * PATIENCE);
        place.write("try/cluster.toml", &place.read("new.toml"));
        place.run(&format!("client join try/client new.toml --expect {expected}"));
        let level =
            STOCKS.iter().find(|(protocol, _)| hop.to.starts_with(protocol)).map_or(0, |(_, level)| *level);
        next.iter().for_each(|node| set_stock(place, *node, level));
        let nodes = started(&trial, &next);
        serves(&trial);
        for node in leave {
            assert!(place.fails(&format!("node run try/node-{node}")).contains("has left its cluster"));
        }
        nodes.into_iter().for_each(Running::end);
        current = next;
    }
}

#[test]
fn a_reshare_of_shamir_survives_kills() {
    survives_kills("shamir", &[within("shamir"); ROUNDS], 700);
}

#[test]
fn a_reshare_of_shamir_active_survives_kills() {
    survives_kills("shamir-active", &[within("shamir-active"); ROUNDS], 1200);
}

#[test]
fn a_reshare_of_replicated_active_survives_kills() {
    survives_kills("replicated-active", &[within("replicated-active"); ROUNDS], 1000);
}

#[test]
fn a_move_from_replicated_to_shamir_active_and_back_survives_kills() {
    let hops =
        [Hop { to: "shamir-active", leave: 0, come: 1 }, Hop { to: "replicated-active", leave: 1, come: 0 }];
    survives_kills("replicated", &hops, 2000);
}

#[test]
fn a_reshare_of_spdz_tower_survives_kills() {
    survives_kills("spdz-tower", &[within("spdz-tower"); ROUNDS], 4000);
}

#[test]
fn a_move_from_shamir_to_spdz_to_tinytable_and_back_survives_kills() {
    let hops = [
        Hop { to: "spdz-lt", leave: 1, come: 0 },
        Hop { to: "tinytable-linear64", leave: 1, come: 1 },
        Hop { to: "shamir", leave: 0, come: 1 },
    ];
    survives_kills("shamir", &hops, 4000);
}

#[test]
fn a_move_from_shamir_active_to_shamir_and_back_survives_kills() {
    let hops = [Hop { to: "shamir", leave: 1, come: 0 }, Hop { to: "shamir-active", leave: 0, come: 1 }];
    survives_kills("shamir-active", &hops, 2000);
}

/// A node is restored from its backup, another one is lost and replaced, and the key is deleted: the copy is
/// what the key was, and both together have spent no more than the account allows.
#[test]
fn a_copy_of_a_key_comes_through_a_backup_and_a_move_and_its_account_stays() {
    const BUDGET: u64 = 40;
    let (trial, mut nodes) = Trial::begin("shamir");
    let place = &trial.place;
    let poor = || NewKey { budget_blocks: BUDGET, ..new_key("poor", Mode::Cmac) };
    let made = insist("a key", || trial.client().generate(poor()));
    let copy = || NewKey { name: "copy".into(), ..made.properties.clone() };
    insist("a copy", || trial.client().copy("poor", made.id, copy()));
    let code = |key: &str| trial.client().key(key).and_then(|key| key.cmac(&[7; 16]));
    let expected = insist("a code", || code("poor"));
    let mut spent = 1;
    for name in ["copy", "poor", "copy"] {
        assert_eq!(insist("a code", || code(name)), expected);
        spent += 1;
    }
    nodes.remove(2).end();
    place.run("node backup try/node-3 backup --key backup.key");
    std::fs::rename(place.path("try/node-3"), place.path("lost")).expect("moved");
    place.run("node restore backup try/node-3 --key backup.key");
    nodes.push(trial.start_one(3));
    for node in [1, 2] {
        place.until("it is readmitted", || {
            place.output(&format!("node readmit try/node-{node} node-3")).status.success()
        });
    }
    assert_eq!(insist("of the restored shares", || code("copy")), expected);
    spent += 1;
    nodes.into_iter().for_each(Running::end);
    std::fs::remove_dir_all(place.path("try/node-2")).expect("its disk is lost");
    reshare(&trial, "--lost node-2 --add 1");
    let _nodes = started(&trial, &[1, 2, 3]);
    trial.verify();
    let after = insist("it is told", || trial.client().info("copy"));
    assert_eq!((after.account, &after.check_value), (made.account, &made.check_value));
    insist("deleted", || trial.client().delete("poor"));
    let until = Instant::now() + PATIENCE;
    loop {
        match code("copy") {
            Ok(found) => {
                assert_eq!(found, expected);
                spent += 1;
            }
            Err(polyclave_client::Error::Refused { refusal, .. }) if refusal.reason == Reason::Spent => break,
            Err(e) => assert!(e.may_pass() && Instant::now() < until, "{e}"),
        }
        assert!(spent <= BUDGET, "more than the account allows");
    }
    assert!(spent > 5, "nothing was left for the copy");
}
