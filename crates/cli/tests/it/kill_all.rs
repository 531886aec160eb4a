//! All nodes are killed at once, at random moments, while clients work: no announced key is lost, no deleted
//! one comes back, no answer is wrong, and the nodes need nobody's help to serve again. In some rounds they
//! are killed in the middle of a refresh, which they then finish by themselves, or of a reshare, which the
//! same command finishes that began it (docs/operate/replace.md).
//!
//! A few rounds for each protocol that serves. `scripts/kill-all` runs as many as it is told, through the
//! variable `POLYCLAVE_KILL_ROUNDS`. In all of them it is told how long clients waited for an answer after
//! all nodes were started again. A busy machine makes that long, so only where `POLYCLAVE_KILL_WAIT` says how
//! many seconds are too long does it fail a run.

mod clients;
mod shares;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::Mode;

use crate::common::{Place, Running, StopAtEnd};
pub(super) use clients::{CODE, KEY, Worker, insist, is_known, message, new_key};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_protocol::session::random_bytes;

/// Clients that work at the same time.
const CLIENTS: usize = 3;
/// The nodes are killed within so many milliseconds after all are ready; where they make material first,
/// before which they answer nothing, within more. The same holds for a refresh and a reshare after they were
/// begun.
const LONGEST: u64 = 1200;
const LONGEST_WITH_MATERIAL: u64 = 5000;
/// Circuits that far nodes keep: few, so that some are there soon after a start.
const CIRCUITS: usize = 16;
/// What each node counts on: it makes material on half as many streams.
const PROCESSORS: usize = 4;

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
fn replicated_four_survives_the_kill_of_all_nodes() {
    Trial::new("replicated-four").run();
}

#[test]
fn spdz_lt_survives_the_kill_of_all_nodes() {
    Trial::new("spdz-lt").run();
}

/// In circuits, between two nodes that take each other for far.
#[test]
fn spdz_tower_with_garbled_circuits_survives_the_kill_of_all_nodes() {
    Trial::new("spdz-tower").far().run();
}

/// The same among three.
#[test]
fn replicated_active_with_garbled_circuits_survives_the_kill_of_all_nodes() {
    Trial::new("replicated-active").far().run();
}

#[test]
fn tinytable_linear64_survives_the_kill_of_all_nodes() {
    Trial::new("tinytable-linear64").run();
}

/// In the middle of what the nodes are killed, besides the clients' requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amid {
    Requests,
    Refresh,
    Reshare,
}

/// Each once, where nobody asks for more rounds.
const ROUNDS: [Amid; 3] = [Amid::Requests, Amid::Refresh, Amid::Reshare];

/// A cluster whose nodes are processes.
struct Trial {
    protocol: &'static str,
    place: Place,
    /// The numbers of its nodes.
    nodes: Vec<usize>,
    stock: usize,
    longest: u64,
    /// Whether few blocks at a time go through garbled circuits.
    is_far: bool,
    random: blake3::OutputReader,
}

impl Trial {
    fn new(protocol: &'static str) -> Trial {
        let mut seed = [0; 32];
        random_bytes(&mut seed).expect("randomness");
        println!("{protocol}: seed {}", hex::encode(seed));
        let place = Place::new();
        place.run(&format!("cluster new try --protocol {protocol}"));
        let nodes = place.names_in("try").iter().filter(|name| name.starts_with("node-")).count();
        let makes_material = ["spdz-lt", "spdz-tower", "tinytable-linear64"].contains(&protocol);
        // What is in stock after a restart is gone, so a large one would only cost time.
        let stock = if makes_material { 32 } else { 256 };
        for node in 1..=nodes {
            place.set_stock(node, stock, 0);
            place.set_processors(&format!("node-{node}"), PROCESSORS);
        }
        let longest = if makes_material { LONGEST_WITH_MATERIAL } else { LONGEST };
        let random = blake3::Hasher::new_keyed(&seed).finalize_xof();
        Trial { protocol, place, nodes: (1..=nodes).collect(), stock, longest, is_far: false, random }
    }

    /// The same with nodes that take each other for far.
    fn far(mut self) -> Trial {
        self.nodes.iter().for_each(|node| self.place.set_far(*node, CIRCUITS));
        self.is_far = true;
        self
    }

    fn run(mut self) {
        let asked = number_in("POLYCLAVE_KILL_ROUNDS");
        let rounds = asked.unwrap_or(ROUNDS.len());
        let mut nodes = self.start();
        nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
        let key = hex::decode(KEY).expect("hexadecimal");
        insist("import", || self.client().import(new_key("known", Mode::Cmac), &key));
        self.wait_for_circuits();
        let mut workers: Vec<Worker> = (0..CLIENTS).map(Worker::new).collect();
        let mut waits = Vec::new();
        for round in 1..=rounds {
            let amid = if asked.is_none() { ROUNDS[round - 1] } else { self.draw() };
            let (message, waited) = self.round(amid, &mut nodes, &mut workers);
            let keys: usize = workers.iter().map(|worker| worker.announced.len()).sum();
            println!(
                "{} {round}/{rounds}: {message}, {waited:?} until all answers, {keys} keys",
                self.protocol
            );
            waits.push((waited, amid));
        }
        waits.sort_by_key(|(waited, _)| std::cmp::Reverse(*waited));
        let of = |what: Amid| waits.iter().filter(|(_, amid)| *amid == what).count();
        let (refreshes, reshares) = (of(Amid::Refresh), of(Amid::Reshare));
        println!(
            "{}: {rounds} rounds, {refreshes} amid a refresh and {reshares} amid a reshare; clients waited for {:?} at most after all \
             nodes were started, for {:?} in the median",
            self.protocol,
            waits[0],
            waits[waits.len() / 2].0
        );
        if let Some(most) = number_in("POLYCLAVE_KILL_WAIT") {
            let most = Duration::from_secs(most as u64);
            let late: Vec<_> = waits.iter().filter(|(waited, _)| *waited > most).collect();
            assert!(
                late.is_empty(),
                "clients waited for more than {most:?} in {} rounds: {late:?}",
                late.len()
            );
        }
    }

    /// Kills all nodes and starts them again. Says what it has done, and for how long a client then waited
    /// for an answer.
    fn round(&mut self, amid: Amid, nodes: &mut Vec<Running>, workers: &mut [Worker]) -> (String, Duration) {
        let [moment, later] = [(); 2].map(|()| Duration::from_millis(self.below(self.longest)));
        let (mut refresh, mut reshare) = (None, None);
        let stop = AtomicBool::new(false);
        let clients = self.clients();
        let answers: usize = std::thread::scope(|scope| {
            // Also when something fails here.
            let _stop = StopAtEnd(&stop);
            let working: Vec<_> = workers
                .iter_mut()
                .zip(&clients)
                .map(|(worker, client)| scope.spawn(|| worker.work(client, &stop, &AtomicUsize::new(0))))
                .collect();
            std::thread::sleep(moment);
            if amid == Amid::Refresh {
                refresh = Some(self.order_refresh());
                std::thread::sleep(later);
            }
            kill(nodes);
            if amid == Amid::Reshare {
                let mut begun = self.begin_move();
                std::thread::sleep(later);
                kill(&mut begun.running);
                reshare = Some(begun);
            }
            stop.store(true, Relaxed);
            working.into_iter().map(|worker| worker.join().expect("no wrong answer")).sum()
        });
        let mut message = match amid {
            Amid::Requests => format!("killed after {moment:?}"),
            _ => format!("killed after {moment:?} and {later:?} of a {amid:?}"),
        };
        message += &format!(" and {answers} answers");
        reshare.into_iter().for_each(|begun| self.finish_move(begun));
        // Sometimes once more, while they start.
        if self.below(4) == 0 {
            let moment = Duration::from_millis(self.below(self.longest / 2));
            *nodes = self.start();
            std::thread::sleep(moment);
            kill(nodes);
            message += &format!(", again {moment:?} after a start");
        }
        let clients = self.clients();
        *nodes = self.start();
        let waited = std::thread::scope(|scope| {
            let waiting: Vec<_> = workers
                .iter_mut()
                .zip(&clients)
                .map(|(worker, client)| scope.spawn(|| worker.resume(client)))
                .collect();
            waiting.into_iter().map(|worker| worker.join().expect("no wrong answer")).max()
        });
        refresh.iter().for_each(|before| self.is_refreshed(before));
        self.verify(workers);
        self.wait_for_circuits();
        (message, waited.unwrap_or_default())
    }

    fn draw(&mut self) -> Amid {
        match self.below(5) {
            0 => Amid::Refresh,
            1 => Amid::Reshare,
            _ => Amid::Requests,
        }
    }

    /// Everything announced is there, at all nodes, and serves as it did; nothing deleted is.
    fn verify(&self, workers: &mut [Worker]) {
        let client = self.client();
        is_known(&insist("the known key", || client.key("known").and_then(|key| key.cmac(&message()))));
        let listed = insist("a list of all nodes", || match client.keys() {
            Ok(mut listing) if !listing.missing.is_empty() => Err(listing.missing.remove(0).1),
            listing => listing,
        });
        for worker in workers {
            for key in &mut worker.announced {
                let at =
                    listed.keys.iter().find(|listed| listed.info == key.info).map(|listed| listed.at.len());
                assert_eq!(at, Some(self.nodes.len()), "nodes that list {}", key.info.properties.name);
            }
            let back = |name: &&String| listed.keys.iter().any(|key| key.info.properties.name == **name);
            assert_eq!(worker.deleted.iter().find(back), None, "a deleted key came back");
            // One of each client's keys in every round.
            if let Some(key) = worker.announced.first_mut() {
                insist("a key that was announced", || key.use_it(&client));
            }
        }
    }

    /// Asks until something was computed in circuits since the start, where nodes are far from each other.
    fn wait_for_circuits(&self) {
        if !self.is_far {
            return;
        }
        let client = self.client();
        let until = Instant::now() + clients::PATIENCE;
        loop {
            is_known(&insist("the known key", || client.key("known").and_then(|key| key.cmac(&message()))));
            let status = self.place.run(&format!("node status try/node-{}", self.nodes[0]));
            if status.contains("blocks at a time go through garbled circuits")
                && !status.contains("(0 so far")
            {
                return;
            }
            assert!(Instant::now() < until, "nothing goes through circuits: {status}");
        }
    }

    /// Starts all nodes, and does not wait until they are ready.
    fn start(&self) -> Vec<Running> {
        let start = |node| self.place.start(&format!("node run try/node-{node} --log error"));
        self.nodes.iter().map(start).collect()
    }

    fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.place.path("try/client")).expect("there")).expect("a client")
    }

    /// One for each that works.
    fn clients(&self) -> Vec<Client> {
        (0..CLIENTS).map(|_| self.client()).collect()
    }

    fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

fn number_in(variable: &str) -> Option<usize> {
    let number = std::env::var(variable).ok()?;
    Some(number.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn kill(nodes: &mut Vec<Running>) {
    nodes.iter_mut().for_each(Running::kill);
    // Until they are gone, their stores are in use.
    nodes.drain(..).for_each(|mut node| node.wait_until_gone());
}
