//! Nodes end and start again one after the other while clients work. Where one node may be away, no request
//! fails, if clients repeat requests as the program and the gateway do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::Mode;
use polyclave_client::{Again, Client, Result};
use polyclave_config::ClientDir;

use crate::common::{Place, Running, StopAtEnd};
use crate::kill_all::{KEY, insist, is_known, message, new_key};

/// Clients that work at the same time.
const CLIENTS: usize = 2;
/// The time between two requests of a client. Without it clients would use up the stock while a node is
/// away, when none is made.
const PAUSE: Duration = Duration::from_millis(50);
/// Blocks in stock, for all requests while a node is away.
const STOCK: usize = 512;
/// A client that does not notice that the leading node is gone waits for 15 s. No other wait is as long.
const LONGEST: Duration = Duration::from_secs(12);
/// How often each node is ended; as often as this variable says by hand.
const TURNS: usize = 3;
const TURNS_BY_HAND: &str = "POLYCLAVE_ROLLING_TURNS";

#[test]
fn no_request_fails_while_nodes_of_shamir_active_start_again_one_after_the_other() {
    no_request_fails("--protocol shamir-active", Running::end);
}

#[test]
fn no_request_fails_while_nodes_of_replicated_four_start_again_one_after_the_other() {
    no_request_fails("--protocol replicated-four", Running::end);
}

#[test]
fn no_request_fails_while_five_nodes_of_shamir_start_again_one_after_the_other() {
    no_request_fails("--protocol shamir --parties 5 --threshold 1", Running::end);
}

/// Two nodes go on, as a standby pair.
#[test]
fn no_request_fails_while_three_nodes_with_standby_start_again_one_after_the_other() {
    no_request_fails("--protocol replicated-active", Running::end);
}

#[test]
fn no_request_fails_while_three_nodes_with_standby_are_killed_one_after_the_other() {
    no_request_fails("--protocol replicated-active", |mut node| {
        node.kill();
        node.wait_until_gone();
    });
}

fn no_request_fails(options: &str, end: fn(Running)) {
    let place = Place::new();
    let count = place.cluster_on_several_streams(options);
    (1..=count).for_each(|node| place.set_stock(node, STOCK, 0));
    let start = |node: usize| place.start(&format!("node run try/node-{node} --log warn"));
    let mut nodes: Vec<Running> = (1..=count).map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    let client = || {
        let directory = ClientDir::open(&place.path("try/client")).expect("a client's directory");
        Client::open(&directory).expect("a client")
    };
    let key = hex::decode(KEY).expect("hexadecimal");
    insist("import", || client().import(new_key("known", Mode::Cmac), &key));
    insist("generate", || client().generate(new_key("sealing", Mode::Gcm)));
    until_stock_is_made(&place);
    until_pairs_are_ready(&place, count);

    let (stop, answers, turn) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    // The longest time that a client waited for an answer, and what failed.
    let work = || {
        let (client, mut longest, mut failures) = (client(), Duration::ZERO, Vec::new());
        while !stop.load(Relaxed) {
            std::thread::sleep(PAUSE);
            let (at, began, mut again) =
                (turn.load(Relaxed), Instant::now(), Again::without_failed_nodes(&client));
            let outcome = loop {
                match mac_and_seal(&client) {
                    Err(e) if again.after(&e) => {}
                    outcome => break outcome,
                }
            };
            longest = longest.max(began.elapsed());
            match outcome {
                Ok(()) => _ = answers.fetch_add(1, Relaxed),
                Err(e) => failures.push(format!("turn {at}: {e}")),
            }
        }
        (longest, failures)
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        let by_hand = std::env::var(TURNS_BY_HAND).ok().map(|turns| turns.parse().expect("a number"));
        for number in 0..by_hand.unwrap_or(TURNS) * count {
            turn.store(number, Relaxed);
            let (node, before) = (number % count, answers.load(Relaxed));
            end(nodes.remove(node));
            nodes.insert(node, start(node + 1));
            nodes[node].wait_for("is ready");
            place.until("clients get answers", || answers.load(Relaxed) > before);
            // What was made without a node serves nobody when the next one is away too.
            until_stock_is_made(&place);
            until_pairs_are_ready(&place, count);
        }
        stop.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let (longest, failures): (Vec<Duration>, Vec<Vec<String>>) = done.into_iter().unzip();
    let (answers, failures) = (answers.load(Relaxed), failures.concat());
    println!("{options}: {answers} answers, {} failed, the longest after {longest:?}", failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(longest.iter().all(|longest| *longest < LONGEST), "{longest:?}");
}

fn mac_and_seal(client: &Client) -> Result<()> {
    is_known(&client.key("known")?.cmac(&message())?);
    client.seal("sealing", &mut &message()[..], &mut Vec::new(), &mut |_| ()).map(drop)
}

/// Waits until each node has half of the stock that it is to have. Clients take of it all the time.
fn until_stock_is_made(place: &Place) {
    let number = |kind: &serde_json::Value, what: &str| kind[what].as_u64().expect("a number");
    let is_made = |kind: &serde_json::Value| 2 * number(kind, "blocks") >= number(kind, "level");
    place.until("the stock is made", || {
        let status: serde_json::Value =
            serde_json::from_str(&place.run("client status --json")).expect("it is JSON");
        let nodes = status["nodes"].as_array().expect("a list");
        nodes.iter().all(|node| node["stock"].as_array().is_some_and(|stock| stock.iter().all(is_made)))
    });
}

/// Waits until the standby pairs of each node, if there are any, have all keys.
pub fn until_pairs_are_ready(place: &Place, nodes: usize) {
    let is_ready = |pair: &serde_json::Value| pair["ready"] == true && pair["lacking"] == 0;
    place.until("the standby pairs are ready", || {
        (1..=nodes).all(|node| {
            let status = place.run(&format!("node status try/node-{node} --json"));
            let status: serde_json::Value = serde_json::from_str(&status).expect("it is JSON");
            status["standby"].as_array().expect("a list").iter().all(is_ready)
        })
    });
}
