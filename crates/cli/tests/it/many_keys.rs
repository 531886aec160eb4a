//! Measures how long a refresh and a reshare of many keys take:
//! `cargo test --release -p polyclave-cli --test it -- --ignored --nocapture many_keys`. Variables of the
//! environment have other values than these: `POLYCLAVE_MANY_KEYS=10000`, `POLYCLAVE_MANY_PROTOCOL=shamir`,
//! `POLYCLAVE_MANY_MODE=gcm`, and `POLYCLAVE_MANY_RESHARE='--lost node-2 --add 1'`, what `cluster reshare` is
//! given.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use polyclave_api::Mode;
use serde_json::Value;

use crate::common::{Running, processor_time_of_commands};
use crate::refresh::{Trial, insist, new_key};
use crate::reshare::{reshare, started};

fn chosen(variable: &str, otherwise: &str) -> String {
    std::env::var(format!("POLYCLAVE_MANY_{variable}")).unwrap_or_else(|_| otherwise.into())
}

/// A cluster with so many keys, whose nodes run.
fn with_many_keys() -> (Trial, Vec<Running>, usize) {
    let keys: usize = chosen("KEYS", "10000").parse().expect("POLYCLAVE_MANY_KEYS is a number");
    let mode: Mode = match chosen("MODE", "gcm").as_str() {
        "gcm" => Mode::Gcm,
        "cmac" => Mode::Cmac,
        "ctr" => Mode::Ctr,
        other => panic!("POLYCLAVE_MANY_MODE is gcm, cmac or ctr, not {other}"),
    };
    let protocol = chosen("PROTOCOL", "shamir");
    let (trial, nodes) = Trial::begin(&protocol);
    // Three keys are there, and a second version.
    let next = AtomicUsize::new(4);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let client = trial.client();
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= keys {
                        break;
                    }
                    insist("a key", || client.generate(new_key(&format!("k{number}"), mode)));
                }
            });
        }
    });
    println!("{keys} keys of {protocol} for {mode} were made in {:?}", began.elapsed());
    (trial, nodes, keys)
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[test]
#[ignore = "it takes minutes to make the keys"]
fn how_long_a_refresh_of_many_keys_takes() {
    let (trial, nodes, keys) = with_many_keys();
    let processor_time = || nodes.iter().map(Running::processor_time).collect::<Vec<_>>();
    let before = processor_time();
    let message = trial.place.run("cluster refresh try --json");
    let taken: Vec<_> =
        processor_time().into_iter().zip(before).map(|(after, before)| after - before).collect();
    println!("{message}load {}; processor time of the nodes: {taken:?}", load());
    let message: Value = serde_json::from_str(&message).expect("one JSON document");
    assert_eq!(message["keys"], keys);
    trial.verify();
}

#[test]
#[ignore = "it takes minutes to make the keys"]
fn how_long_a_reshare_of_many_keys_takes() {
    let (trial, nodes, keys) = with_many_keys();
    nodes.into_iter().for_each(Running::end);
    let before = processor_time_of_commands();
    let message = reshare(&trial, &chosen("RESHARE", "--lost node-2 --add 1"));
    let taken = processor_time_of_commands() - before;
    println!("{message}\nload {}; processor time of all nodes: {taken:?}", load());
    assert_eq!(message["keys"], keys);
    let names = message["nodes"].as_array().expect("a list").iter();
    let number = |name: &Value| name.as_str().and_then(|name| name.strip_prefix("node-")?.parse().ok());
    let numbers: Vec<usize> = names.map(|name| number(name).expect("node-N")).collect();
    let _nodes = started(&trial, &numbers);
    trial.verify();
}
