//! All nodes are killed at once, at random moments, while clients work: no announced key is lost, no deleted one comes back, no
//! answer is wrong, and the nodes need nobody's help to serve again.
//!
//! A few rounds for each protocol that serves. `scripts/kill-all` runs as many as it is told, through the variable
//! `POLYCLAVE_KILL_ROUNDS`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::common::{Place, Running};
use polyclave_api::{KeyInfo, Mode, NewKey, Reason};
use polyclave_client::{Client, Error, Result};
use polyclave_config::ClientDir;
use polyclave_protocol::session::random_bytes;

/// Rounds where nobody asks for more.
const ROUNDS: usize = 3;
/// Clients that work at the same time.
const CLIENTS: usize = 3;
/// Each client deletes keys beyond so many of its own.
const KEPT: usize = 3;
/// The nodes are killed within so many milliseconds after all are ready; where they make material first, before which they answer
/// nothing, within more.
const LONGEST: u64 = 1200;
const LONGEST_WITH_MATERIAL: u64 = 5000;
/// Whatever the nodes can do they do in this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// SP 800-38B, example 3 of AES-128: a key, a message of 40 bytes and its code.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const MESSAGE: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
const CODE: &str = "dfa66747de9ae63030ca32611497c827";

#[test]
fn shamir_survives_the_kill_of_all_nodes() {
    Trial::new("shamir").run();
}

#[test]
fn shamir_active_survives_the_kill_of_all_nodes() {
    Trial::new("shamir-active").run();
}

#[test]
fn replicated_survives_the_kill_of_all_nodes() {
    Trial::new("replicated").run();
}

#[test]
fn replicated_active_survives_the_kill_of_all_nodes() {
    Trial::new("replicated-active").run();
}

#[test]
fn spdz_survives_the_kill_of_all_nodes() {
    Trial::new("spdz-lt").run();
}

#[test]
fn tinytable_survives_the_kill_of_all_nodes() {
    Trial::new("tinytable-linear64").run();
}

/// A cluster whose nodes are processes.
struct Trial {
    protocol: &'static str,
    place: Place,
    nodes: usize,
    longest: u64,
    random: blake3::OutputReader,
}

/// A key that the nodes have announced, and what is known of it.
pub(super) struct Announced {
    pub(super) info: KeyInfo,
    /// What it was first used for, and what came of it.
    used: Option<Vec<u8>>,
}

/// What a client does, and the keys that nobody else uses.
pub(super) struct Worker {
    number: usize,
    made: usize,
    pub(super) announced: Vec<Announced>,
    pub(super) deleted: Vec<String>,
}

impl Trial {
    fn new(protocol: &'static str) -> Trial {
        let mut seed = [0; 32];
        random_bytes(&mut seed).expect("randomness");
        println!("{protocol}: seed {}", hex::encode(seed));
        let place = Place::new();
        place.run(&format!("cluster new try --protocol {protocol}"));
        let nodes = place.names_in("try").iter().filter(|name| name.starts_with("node-")).count();
        let makes_material = ["spdz-lt", "tinytable-linear64"].contains(&protocol);
        for node in 1..=nodes {
            // What is in stock after a restart is gone, so a large one would only cost time.
            place.set_stock(node, if makes_material { 32 } else { 256 }, 0);
        }
        let longest = if makes_material { LONGEST_WITH_MATERIAL } else { LONGEST };
        Trial { protocol, place, nodes, longest, random: blake3::Hasher::new_keyed(&seed).finalize_xof() }
    }

    fn run(mut self) {
        let rounds = std::env::var("POLYCLAVE_KILL_ROUNDS")
            .map_or(ROUNDS, |rounds| rounds.parse().expect("POLYCLAVE_KILL_ROUNDS is a number"));
        let mut nodes = self.start();
        let key = hex::decode(KEY).expect("hexadecimal");
        insist("import", || self.client().import(new_key("known", Mode::Cmac), &key));
        let mut workers: Vec<Worker> = (0..CLIENTS).map(Worker::new).collect();
        for round in 1..=rounds {
            let moment = Duration::from_millis(self.below(self.longest));
            let stop = AtomicBool::new(false);
            let answers: usize = std::thread::scope(|scope| {
                let work = |worker: &'_ mut Worker| worker.work(&self.client(), &stop, &AtomicUsize::new(0));
                let working: Vec<_> = workers.iter_mut().map(|w| scope.spawn(move || work(w))).collect();
                std::thread::sleep(moment);
                kill(&mut nodes);
                stop.store(true, Relaxed);
                working.into_iter().map(|worker| worker.join().expect("no wrong answer")).sum()
            });
            // Sometimes once more, while they start.
            if self.below(4) == 0 {
                let moment = Duration::from_millis(self.below(self.longest / 2));
                nodes = (1..=self.nodes).map(|node| self.start_one(node)).collect();
                std::thread::sleep(moment);
                kill(&mut nodes);
            }
            let began = Instant::now();
            nodes = self.start();
            self.verify(&mut workers);
            let keys: usize = workers.iter().map(|worker| worker.announced.len()).sum();
            println!(
                "{} {round}/{rounds}: killed after {moment:?} and {answers} answers, all right again after {:?}, {keys} keys",
                self.protocol,
                began.elapsed()
            );
        }
    }

    /// Everything announced is there, at all nodes, and serves as it did; nothing deleted is.
    fn verify(&self, workers: &mut [Worker]) {
        let client = self.client();
        is_known(&insist("the known key", || client.cmac("known", &mut &message()[..], &mut |_| ())));
        let listed = insist("a list of all nodes", || match client.keys() {
            Ok(mut listing) if !listing.missing.is_empty() => Err(listing.missing.remove(0).1),
            listing => listing,
        });
        for worker in workers {
            for key in &mut worker.announced {
                let at =
                    listed.keys.iter().find(|listed| listed.info == key.info).map(|listed| listed.at.len());
                assert_eq!(at, Some(self.nodes), "nodes that list {}", key.info.properties.name);
            }
            let back = |name: &&String| listed.keys.iter().any(|key| key.info.properties.name == **name);
            assert_eq!(worker.deleted.iter().find(back), None, "a deleted key came back");
            // One of each client's keys in every round.
            if let Some(key) = worker.announced.first_mut() {
                insist("a key that was announced", || key.use_it(&client));
            }
        }
    }

    fn start_one(&self, node: usize) -> Running {
        self.place.start(&format!("node run try/node-{node} --log error"))
    }

    fn start(&self) -> Vec<Running> {
        let nodes: Vec<Running> = (1..=self.nodes).map(|node| self.start_one(node)).collect();
        nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
        nodes
    }

    fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.place.path("try/client")).expect("there")).expect("a client")
    }

    fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

impl Worker {
    pub(super) fn new(number: usize) -> Worker {
        Worker { number, made: 0, announced: Vec::new(), deleted: Vec::new() }
    }

    /// Makes, uses and deletes keys until it is stopped; how many answers it got. `all` counts those of all clients, as they come.
    pub(super) fn work(&mut self, client: &Client, stop: &AtomicBool, all: &AtomicUsize) -> usize {
        let mut answers = 0;
        while !stop.load(Relaxed) {
            let outcome = self.one(client);
            match outcome {
                Ok(()) => {
                    answers += 1;
                    all.fetch_add(1, Relaxed);
                }
                Err(e) => {
                    assert!(is_excused(&e), "client {}: {e}", self.number);
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        answers
    }

    fn one(&mut self, client: &Client) -> Result<()> {
        is_known(&client.cmac("known", &mut &message()[..], &mut |_| ())?);
        if self.announced.len() > KEPT {
            let key = self.announced.swap_remove(0);
            // If that fails the key may be there or not.
            client.delete(&key.info.properties.name)?;
            self.deleted.push(key.info.properties.name);
        }
        self.made += 1;
        let mode = if self.made.is_multiple_of(2) { Mode::Gcm } else { Mode::Cmac };
        let name = format!("client{}-{}", self.number, self.made);
        let info = client.generate(new_key(&name, mode))?;
        self.announced.push(Announced { info, used: None });
        self.announced.last_mut().expect("just made").use_it(client)
    }
}

impl Announced {
    /// What comes of it is what came of it the first time.
    pub(super) fn use_it(&mut self, client: &Client) -> Result<()> {
        let name = &self.info.properties.name;
        if self.info.properties.modes == [Mode::Cmac] {
            let code = client.cmac(name, &mut &message()[..], &mut |_| ())?;
            assert_eq!(*self.used.get_or_insert_with(|| code.clone()), code, "the code under {name}");
            return Ok(());
        }
        if self.used.is_none() {
            let mut sealed = Vec::new();
            client.seal(name, &mut &message()[..], &mut sealed, &mut |_| ())?;
            self.used = Some(sealed);
        }
        let mut opened = Vec::new();
        let sealed = self.used.as_deref().unwrap_or_default();
        client.open_sealed(name, &mut &sealed[..], &mut opened, &mut |_| ())?;
        assert_eq!(opened, message(), "what was sealed under {name}");
        Ok(())
    }
}

/// Whether a request may fail like this while nodes are killed. That a key is not there, or that what was sealed does not
/// authenticate, is a wrong answer; so is a quarantine, since nobody cheats.
pub(super) fn is_excused(e: &Error) -> bool {
    let disagreed = matches!(e, Error::Refused { refusal, .. } if refusal.reason == Reason::Disagreement);
    e.may_pass() || disagreed
}

/// Does something that has to be possible again soon.
pub(super) fn insist<T>(what: &str, mut attempt: impl FnMut() -> Result<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(is_excused(&e) && Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn kill(nodes: &mut Vec<Running>) {
    nodes.iter_mut().for_each(Running::kill);
    // Until they are gone, their stores are in use.
    nodes.drain(..).for_each(|mut node| node.wait_until_gone());
}

pub(super) fn new_key(name: &str, mode: Mode) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[mode], 1 << 32)
}

pub(super) fn message() -> Vec<u8> {
    hex::decode(MESSAGE).expect("hexadecimal")
}

pub(super) fn is_known(code: &[u8]) {
    assert_eq!(hex::encode(code), CODE, "the code of the known message under the known key");
}
