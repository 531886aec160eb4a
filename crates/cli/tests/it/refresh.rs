//! Fresh shares of all keys, as operators order them: keys and what was encrypted under them stay, whatever
//! is killed meanwhile, and a node on a disk from before is not let in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Reason, Usage, Wrapping};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_node::SAYS_REFRESHING;
use polyclave_protocol::session::random_bytes;
use serde_json::Value;

use crate::common::{Place, Running};

/// SP 800-38B, example 3 of AES-128: a key, a message of 40 bytes and its code.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const MESSAGE: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
const CODE: &str = "dfa66747de9ae63030ca32611497c827";
/// Whatever the nodes can do they do in this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rounds in which nodes are killed, where nobody asks for more with `POLYCLAVE_KILL_ROUNDS`.
const ROUNDS: usize = 6;

/// A cluster whose nodes are processes, with a known key and a sealed message.
pub struct Trial {
    pub place: Place,
    pub nodes: usize,
    sealed: Vec<u8>,
    /// The known key under one that wraps.
    wrapped: Vec<u8>,
}

impl Trial {
    pub fn begin(protocol: &str) -> (Trial, Vec<Running>) {
        let place = Place::new();
        let nodes = place.cluster_on_several_streams(&format!("--protocol {protocol}"));
        for node in 1..=nodes {
            place.set_stock(node, if nodes == 2 { 32 } else { 256 }, 0);
        }
        let mut trial = Trial { place, nodes, sealed: Vec::new(), wrapped: Vec::new() };
        let running = trial.start();
        let key = hex::decode(KEY).expect("hexadecimal");
        let known = || NewKey { wrappable: true, ..new_key("known", Mode::Cmac) };
        insist("import", || trial.client().import(known(), &key));
        let wrapping =
            || NewKey { usage: vec![Usage::Wrap], ..NewKey::for_modes("wrapping", "aes-128", &[], 1 << 32) };
        insist("a key that wraps", || trial.client().generate(wrapping()));
        trial.wrapped = insist("wrapped", || trial.client().wrap("wrapping", "known", Wrapping::Kw));
        insist("a key", || trial.client().generate(new_key("sealing", Mode::Gcm)));
        trial.sealed = insist("sealed", || {
            let mut sealed = Vec::new();
            trial.client().seal("sealing", &mut &message()[..], &mut sealed, &mut |_| ())?;
            Ok(sealed)
        });
        insist("a second version", || trial.client().rotate("sealing"));
        (trial, running)
    }

    pub fn start_one(&self, node: usize) -> Running {
        self.place.start(&format!("node run try/node-{node} --log error"))
    }

    fn start(&self) -> Vec<Running> {
        let nodes: Vec<Running> = (1..=self.nodes).map(|node| self.start_one(node)).collect();
        nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
        nodes
    }

    pub fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.place.path("try/client")).expect("there")).expect("a client")
    }

    pub fn status(&self, node: usize) -> Value {
        let said = self.place.output(&format!("node status try/node-{node} --json")).stdout;
        serde_json::from_slice(&said).expect("it is JSON")
    }

    fn secrets(&self) -> Vec<Value> {
        (1..=self.nodes).map(|node| self.status(node)["secrets"].clone()).collect()
    }

    /// All keys are what they were.
    pub fn verify(&self) {
        let code =
            insist("the known key", || self.client().key("known").and_then(|key| key.cmac(&message())));
        assert_eq!(hex::encode(code), CODE);
        let opened = insist("what was sealed", || {
            let mut opened = Vec::new();
            self.client().open_sealed("sealing", &mut &self.sealed[..], &mut opened, &mut |_| ())?;
            Ok(opened)
        });
        assert_eq!(opened, message());
        let again = insist("the second version", || {
            let (mut sealed, mut opened) = (Vec::new(), Vec::new());
            self.client().seal("sealing", &mut &message()[..], &mut sealed, &mut |_| ())?;
            self.client().open_sealed("sealing", &mut &sealed[..], &mut opened, &mut |_| ())?;
            assert_ne!(sealed[16..32], self.sealed[16..32]);
            Ok(opened)
        });
        assert_eq!(again, message());
        let wrapped = insist("the key itself", || self.client().wrap("wrapping", "known", Wrapping::Kw));
        assert_eq!(wrapped, self.wrapped);
    }
}

pub fn new_key(name: &str, mode: Mode) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[mode], 1 << 32)
}

fn message() -> Vec<u8> {
    hex::decode(MESSAGE).expect("hexadecimal")
}

/// Does something that has to be possible again soon, and never fails as it would with a wrong key.
pub fn insist<T>(what: &str, mut attempt: impl FnMut() -> polyclave_client::Result<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(may_pass(&e) && Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn may_pass(e: &polyclave_client::Error) -> bool {
    let disagreed = matches!(e, polyclave_client::Error::Refused { refusal, .. } if refusal.reason == Reason::Disagreement);
    e.may_pass() || disagreed
}

fn keys_survive(protocol: &str) {
    let (trial, _nodes) = Trial::begin(protocol);
    let before = trial.secrets();
    let message = trial.place.run("cluster refresh try --json");
    let message: Value = serde_json::from_str(&message).expect("one JSON document");
    assert_eq!((&message["nodes"], &message["keys"]), (&trial.nodes.into(), &4.into()));
    let after = trial.secrets();
    assert!(after.iter().all(|secrets| *secrets == message["secrets"] && *secrets != before[0]), "{after:?}");
    trial.verify();
    assert!(trial.status(1)["refreshed"].as_u64() > Some(1_600_000_000));
    // By each operator, in the old spelling and the new one; and keys are made and deleted as before.
    for node in 1..=trial.nodes {
        let how =
            if node == 1 { "rotate try/node-1 --secrets".into() } else { format!("refresh try/node-{node}") };
        trial.place.run(&format!("node {how}"));
    }
    trial.place.until("it is done once more", || {
        let now = trial.secrets();
        now.iter().all(|secrets| *secrets == now[0] && *secrets != after[0])
    });
    trial.verify();
    insist("another key", || trial.client().generate(new_key("another", Mode::Cmac)));
    insist("deleted", || trial.client().delete("another"));
}

#[test]
fn keys_of_shamir_survive_a_refresh() {
    keys_survive("shamir");
}

#[test]
fn keys_of_shamir_active_survive_a_refresh() {
    keys_survive("shamir-active");
}

#[test]
fn keys_of_replicated_survive_a_refresh() {
    keys_survive("replicated");
}

#[test]
fn keys_of_replicated_active_survive_a_refresh() {
    keys_survive("replicated-active");
}

#[test]
fn keys_of_replicated_four_survive_a_refresh() {
    keys_survive("replicated-four");
}

#[test]
fn keys_of_spdz_survive_a_refresh() {
    keys_survive("spdz-lt");
}

#[test]
fn keys_of_tinytable_survive_a_refresh() {
    keys_survive("tinytable-linear64");
}

/// While shares are replaced again and again, requests go on: no answer is wrong, and no request is turned
/// away because of a refresh, unless it has waited for fresh shares to be taken into use for as long as nodes
/// let it wait.
#[test]
fn keys_of_shamir_are_used_during_refreshes() {
    const WAITED: Duration = Duration::from_secs(10);
    let (trial, _nodes) = Trial::begin("shamir");
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let using = scope.spawn(|| {
            let client = trial.client();
            while !over.load(Relaxed) {
                let code = insist("used", || {
                    let began = Instant::now();
                    let code = client.key("known").and_then(|key| key.cmac(&message()));
                    if let Err(e) = &code {
                        let turned_away = e.to_string().contains(SAYS_REFRESHING);
                        assert!(!turned_away || began.elapsed() >= WAITED, "{e}");
                    }
                    code
                });
                assert_eq!(hex::encode(code), CODE);
                answered.fetch_add(1, Relaxed);
            }
        });
        // Each refresh meets a request under way, however slow the machine is.
        for _ in 0..5 {
            let before = answered.load(Relaxed);
            trial.place.run("cluster refresh try");
            while answered.load(Relaxed) == before && !using.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        over.store(true, Relaxed);
        using.join().expect("no wrong answer, and none missing");
    });
    println!("{} answers", answered.into_inner());
    trial.verify();
}

/// All nodes, or one, are killed at a random moment after a refresh was ordered. It is done in the end.
fn survives_kills(protocol: &str, longest: u64) {
    let mut seed = [0; 32];
    random_bytes(&mut seed).expect("randomness");
    println!("{protocol}: seed {}", hex::encode(seed));
    let mut random = blake3::Hasher::new_keyed(&seed).finalize_xof();
    let mut below = |bound: u64| {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    };
    let rounds = std::env::var("POLYCLAVE_KILL_ROUNDS")
        .map_or(ROUNDS, |rounds| rounds.parse().expect("POLYCLAVE_KILL_ROUNDS is a number"));
    let (trial, mut nodes) = Trial::begin(protocol);
    for round in 1..=rounds {
        let before = trial.secrets();
        for node in 1..=trial.nodes {
            trial.place.run(&format!("node refresh try/node-{node}"));
        }
        let moment = Duration::from_millis(below(longest));
        std::thread::sleep(moment);
        let victims: Vec<usize> = match below(2) {
            0 => (0..trial.nodes).collect(),
            _ => vec![below(trial.nodes as u64) as usize],
        };
        victims.iter().for_each(|victim| nodes[*victim].kill());
        for victim in &victims {
            nodes[*victim].wait_until_gone();
            nodes[*victim] = trial.start_one(victim + 1);
        }
        let began = Instant::now();
        while {
            let now = trial.secrets();
            now[0].is_null() || now.iter().any(|secrets| *secrets != now[0] || *secrets == before[0])
        } {
            assert!(began.elapsed() < PATIENCE, "it is not done: {:?}", trial.status(1));
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("{round}/{rounds}: {victims:?} after {moment:?}, done after {:?}", began.elapsed());
        trial.verify();
    }
}

#[test]
fn a_refresh_of_shamir_survives_kills() {
    survives_kills("shamir", 600);
}

#[test]
fn a_refresh_of_shamir_active_survives_kills() {
    survives_kills("shamir-active", 800);
}

#[test]
fn a_refresh_of_replicated_active_survives_kills() {
    survives_kills("replicated-active", 600);
}

#[test]
fn a_refresh_of_spdz_survives_kills() {
    survives_kills("spdz-lt", 3000);
}

#[test]
fn a_refresh_waits_for_all_operators_and_says_what_it_waits_for() {
    let place = Place::new();
    let cluster = place.cluster();
    let message = place.fails("node refresh try/node-1 --despite-failed-checks");
    assert!(message.contains("under shamir there is no MAC key"), "{message}");
    place.run("node refresh try/node-1");
    let message = place.run("node status try/node-1");
    assert!(message.contains("ordered at 1 of 3 nodes: node-1"), "{message}");
    cluster.end();
    let message = place.fails("cluster refresh try");
    assert!(message.contains("is not running, and a refresh takes all nodes"), "{message}");
}

/// Somebody who puts an old disk back, and readmits the node, learns that its shares are of no use and what
/// to do.
#[test]
fn a_store_from_before_a_refresh_is_refused_and_the_error_says_what_to_do() {
    let (trial, mut nodes) = Trial::begin("shamir");
    let place = &trial.place;
    let old = nodes.remove(2);
    old.end();
    let files = ["try/node-3/store.redb", "try/node-3/audit.log"];
    let disk = files.map(|file| place.read(file));
    nodes.push(trial.start_one(3));
    nodes[2].wait_for("is ready");
    place.run("cluster refresh try");
    nodes.remove(2).end();
    place.write(files[0], &disk[0]);
    let text = place.fails("node run try/node-3");
    assert!(text.contains("the store was put back to an older state"), "its own log shows it: {text}");
    place.write(files[1], &disk[1]);
    nodes.push(trial.start_one(3));
    for node in [1, 2] {
        place.run(&format!("node readmit try/node-{node} node-3"));
    }
    place.until("it is told", || {
        let trouble = trial.status(1)["refresh_trouble"].to_string();
        trouble.contains("node-3 has other common secrets")
            && trouble.contains("restore its backup from after")
    });
    assert_eq!(trial.status(1)["missing"], serde_json::json!(["node-3"]));
    // The two others go on only if they are enough, which 2 of 3 are not.
    assert!(trial.client().key("known").and_then(|key| key.cmac(&message())).is_err());
}
