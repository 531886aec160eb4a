//! Nodes with several workers, which share a store at a real server: workers and the server are killed at
//! random moments while clients work. Requests go on with the workers that are left, no answer is wrong, and
//! afterwards the logs of all workers fit the stores.
//!
//! `scripts/kill-workers` makes as many kills as it is told. Without PostgreSQL these tests say that they
//! were not run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::Mode;
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_harness::postgres::Postgres;
use polyclave_node::local::worker_dir;
use polyclave_protocol::session::random_bytes;

use crate::common::{Place, Running, StopAtEnd};
use crate::kill_all::{Worker, insist, is_known, message, new_key};

const NODES: usize = 3;
/// Kills and workers of each node where nobody asks for more.
const KILLS: usize = 10;
const WORKERS: usize = 2;
const CLIENTS: usize = 3;
/// A worker is killed within so many milliseconds after all are ready.
const LONGEST: u64 = 500;
/// Answers that have to come while a worker is gone.
const ANSWERS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(120);

fn asked(variable: &str, usual: usize) -> usize {
    std::env::var(variable)
        .map_or(usual, |number| number.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn below(bound: u64) -> u64 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes).expect("randomness");
    u64::from_le_bytes(bytes) % bound
}

/// A cluster whose workers are processes.
struct Trial {
    place: Place,
    nodes: usize,
    workers: usize,
}

impl Trial {
    fn new(protocol: &str, workers: usize, server: &Postgres) -> Trial {
        let place = Place::new();
        let url = server.url();
        place.run(&format!(
            "cluster new try --protocol {protocol} --parties {NODES} --workers {workers} --store {url}"
        ));
        Trial { place, nodes: NODES, workers }
    }

    fn start(&self, at: usize) -> Running {
        let (node, worker) = (1 + at % self.nodes, at / self.nodes);
        let dir = worker_dir(&format!("node-{node}"), worker as u16);
        self.place.start(&format!("node run try/{dir} --log error"))
    }

    fn start_all(&self) -> Vec<Running> {
        let all: Vec<Running> = (0..self.nodes * self.workers).map(|at| self.start(at)).collect();
        all.iter().for_each(|worker| drop(worker.wait_for("is ready")));
        all
    }

    fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.place.path("try/client")).expect("there")).expect("a client")
    }
}

/// Waits for some more answers.
fn goes_on(answers: &AtomicUsize, what: &str) {
    let (begun, until) = (answers.load(Relaxed), Instant::now() + PATIENCE);
    while answers.load(Relaxed) < begun + ANSWERS {
        assert!(Instant::now() < until, "no more answers after {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_go_on_while_workers_and_the_server_are_killed_and_nothing_is_lost_or_spent_twice() {
    let kills = asked("POLYCLAVE_KILLS", KILLS);
    let workers = asked("POLYCLAVE_WORKERS", WORKERS);
    let Some(mut server) = Postgres::start("workers that are killed", &[]) else { return };
    let trial = Trial::new("shamir", workers, &server);
    let mut running = trial.start_all();
    let key = hex::decode("2b7e151628aed2a6abf7158809cf4f3c").expect("hexadecimal");
    insist("import", || trial.client().import(new_key("known", Mode::Cmac), &key));
    let mut clients: Vec<Worker> = (0..CLIENTS).map(Worker::new).collect();
    let (stop, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // Also when something fails here.
        let _stop = StopAtEnd(&stop);
        for client in &mut clients {
            let (stop, answers, asks) = (&stop, &answers, trial.client());
            scope.spawn(move || client.work(&asks, stop, answers));
        }
        for kill in 1..=kills {
            std::thread::sleep(Duration::from_millis(below(LONGEST)));
            let at = below(running.len() as u64) as usize;
            running[at].kill();
            running[at].wait_until_gone();
            let began = Instant::now();
            goes_on(&answers, &format!("kill {kill}, of worker {} of node {}", at / NODES, 1 + at % NODES));
            let took = began.elapsed();
            if kill % 5 == 0 {
                server.kill();
                server.start_again();
            }
            running[at] = trial.start(at);
            running[at].wait_for("is ready");
            println!(
                "kill {kill}/{kills}: {ANSWERS} more answers after {took:?}, {} in all",
                answers.load(Relaxed)
            );
        }
        goes_on(&answers, "the last start");
    });
    let client = trial.client();
    is_known(&insist("the known key", || client.key("known").and_then(|key| key.cmac(&message()))));
    let listed = insist("a list of all nodes", || match client.keys() {
        Ok(mut listing) if !listing.missing.is_empty() => Err(listing.missing.remove(0).1),
        listing => listing,
    });
    for client_work in &mut clients {
        for key in &mut client_work.announced {
            let at = listed.keys.iter().find(|listed| listed.info == key.info).map(|listed| listed.at.len());
            assert_eq!(at, Some(NODES), "nodes that list {}", key.info.properties.name);
            insist("a key that was announced", || key.use_it(&client));
        }
        let back = |name: &&String| listed.keys.iter().any(|key| key.info.properties.name == **name);
        assert_eq!(client_work.deleted.iter().find(back), None, "a deleted key came back");
    }
    client.end();
    running.into_iter().for_each(Running::end);
    let report = trial.place.run("cluster check try");
    println!("{report}");
    assert!(report.contains("nothing is lost, and nothing was spent twice"), "{report}");
}

#[test]
fn nothing_is_lost_when_a_standby_takes_the_place_of_a_server_that_is_killed_under_load() {
    let Some(mut server) = Postgres::start("a standby that takes over", &[]) else { return };
    server.replicate();
    let trial = Trial::new("shamir", WORKERS, &server);
    let running = trial.start_all();
    let key = hex::decode("2b7e151628aed2a6abf7158809cf4f3c").expect("hexadecimal");
    insist("import", || trial.client().import(new_key("known", Mode::Cmac), &key));
    let mut client = Worker::new(0);
    let (stop, answers, asks) = (AtomicBool::new(false), AtomicUsize::new(0), trial.client());
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| client.work(&asks, &stop, &answers));
        goes_on(&answers, "the start");
        server.promote();
        goes_on(&answers, "the standby's promotion");
    });
    let listed = insist("a list of all nodes", || match asks.keys() {
        Ok(mut listing) if !listing.missing.is_empty() => Err(listing.missing.remove(0).1),
        listing => listing,
    });
    for key in &mut client.announced {
        assert!(listed.keys.iter().any(|listed| listed.info == key.info && listed.at.len() == NODES));
        insist("a key that was announced", || key.use_it(&asks));
    }
    asks.end();
    running.into_iter().for_each(Running::end);
    let report = trial.place.run("cluster check try");
    assert!(report.contains("nothing is lost, and nothing was spent twice"), "{report}");
}

#[test]
fn a_server_with_a_full_disk_costs_changes_until_there_is_room() {
    let Some(server) = Postgres::start_on_disk("a full disk", 160) else { return };
    let trial = Trial::new("shamir", WORKERS, &server);
    let running = trial.start_all();
    let place = &trial.place;
    place.run("key generate k");
    place.write("plain", b"twelve boxes");
    place.run("encrypt --key k plain sealed");
    server.fill_disk();
    let tried = AtomicUsize::new(0);
    place.until("a key cannot be stored", || {
        let message = place.output(&format!("key generate more{}", tried.fetch_add(1, Relaxed)));
        !message.status.success() && String::from_utf8_lossy(&message.stderr).contains("cannot write")
    });
    assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes", "what was leased is there");
    server.make_room();
    place.until("a key is stored", || place.output("key generate after").status.success());
    assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes");
    running.into_iter().for_each(Running::end);
    assert!(place.run("cluster check try").contains("nothing is lost, and nothing was spent twice"));
}

/// Workers 0 only serve, 1 and 2 only make material.
#[test]
fn workers_serve_with_material_that_other_workers_make_and_go_on_when_one_of_these_is_killed() {
    let Some(server) = Postgres::start("workers that only make material", &[]) else { return };
    let place = Place::new();
    let url = server.url();
    let new = format!("cluster new try --protocol spdz-tower --parties 2 --workers 3 --store {url}");
    assert!(place.fails(&format!("{new} --make-only 0")).contains("worker 0 has to serve"));
    place.run(&format!("{new} --serve-only 0 --make-only 1,2"));
    // Little, so that requests soon take what was made after a kill.
    (1..=2)
        .flat_map(|node| (0..3).map(move |worker| worker_dir(&format!("node-{node}"), worker)))
        .for_each(|dir| place.set_stock_of(&dir, 4, 1));
    let trial = Trial { place, nodes: 2, workers: 3 };
    let mut running = trial.start_all();
    let place = &trial.place;
    assert!(place.run("cluster show try/cluster.toml").contains("Workers 2 make material only"));
    place.run("key generate k");
    // A client with the file from before takes those that only make material for others, and goes on to one
    // that serves.
    let (client, before) = (place.path("try/client"), place.path("before"));
    let copied = std::process::Command::new("cp").arg("-rp").args([&client, &before]).status();
    assert!(copied.expect("copied").success());
    let file = String::from_utf8(place.read("before/cluster.toml")).expect("text");
    let roles = "[workers]\nserve_only = [0]\nmake_only = [\n    1,\n    2,\n]\n";
    let before = file.replace(roles, "").replace("[workers]\nserve_only = [0]\nmake_only = [1, 2]\n", "");
    assert_ne!(before, file, "{file}");
    place.write("before/cluster.toml", before.as_bytes());
    (0..4).for_each(|_| drop(place.run("encrypt --client before --key k try/cluster.toml sealed --force")));
    let client = trial.client();
    let (stop, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let message = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                let (mut sealed, mut opened) = (Vec::new(), Vec::new());
                let sealing = client.seal("k", &mut &b"twelve boxes"[..], &mut sealed, &mut |_| ());
                if sealing
                    .and_then(|_| client.open_sealed("k", &mut &sealed[..], &mut opened, &mut |_| ()))
                    .is_ok()
                {
                    assert_eq!(opened, b"twelve boxes");
                    answers.fetch_add(1, Relaxed);
                }
            }
        });
        goes_on(&answers, "the start");
        // A maker, one of the other makers, and one that serves; after these by chance.
        let chosen = [2, 5, 0].into_iter().chain(std::iter::repeat_with(|| below(6) as usize));
        for (kill, at) in chosen.take(asked("POLYCLAVE_MAKER_KILLS", 3)).enumerate() {
            println!(
                "kill {} of worker {} of node {}, {} answers so far",
                kill + 1,
                at / 2,
                1 + at % 2,
                answers.load(Relaxed)
            );
            std::thread::sleep(Duration::from_millis(below(LONGEST)));
            running[at].kill();
            running[at].wait_until_gone();
            // Those that serve are needed; of those that make material one worker group is left.
            if at >= 2 {
                goes_on(&answers, "the end of a worker that makes material");
            }
            running[at] = trial.start(at);
            running[at].wait_for("is ready");
            goes_on(&answers, "its next start");
        }
        place.run("client status")
    });
    assert!(message.contains("workers 1, which make material only: all are ready"), "{message}");
    client.end();
    running.into_iter().for_each(Running::end);
    assert!(place.run("cluster check try").contains("nothing is lost, and nothing was spent twice"));
}

#[test]
fn workers_start_again_after_a_refresh_and_what_cannot_be_meant_is_refused() {
    let Some(server) = Postgres::start("a refresh with workers", &[]) else { return };
    let trial = Trial::new("shamir", 2, &server);
    let running = trial.start_all();
    let place = &trial.place;
    place.run("key generate k");
    place.write("plain", b"twelve boxes");
    place.run("encrypt --key k plain sealed");
    assert!(place.fails("cluster check try").contains("another process is using the store"));
    (1..=NODES).for_each(|node| drop(place.run(&format!("node refresh try/node-{node}"))));
    running[NODES..]
        .iter()
        .for_each(|worker| drop(worker.wait_for("starts again, under the fresh common secrets")));
    running[NODES..].iter().for_each(|worker| drop(worker.wait_for("is ready")));
    for _ in 0..4 {
        assert_eq!(place.pipe("decrypt --key k sealed -", b""), b"twelve boxes");
    }
    place.until("all workers serve", || {
        let message = place.output("client status");
        String::from_utf8_lossy(&message.stdout).matches(": all are ready").count() == 2
    });
    assert!(place.run("cluster show try/cluster.toml").contains("worker 1 at 127.0.0.1:"));
    let settings = String::from_utf8(place.read("try/node-2-worker-1/node.toml")).expect("text");
    let http = settings.lines().find_map(|line| line.strip_prefix("http_listen = \"127.0.0.1:"));
    let http = http.expect("a port").trim_end_matches('"').parse().expect("a number");
    let message = place.run("node status try/node-2-worker-1");
    assert!(
        message.contains("worker     1; the workers of this number serve and make material"),
        "{message}"
    );
    assert!(!message.contains("put back to a disk"), "{message}");
    place.until("its metrics", || place.fetch(http, "/metrics").contains("polyclave_ready{worker=\"1\"} 1"));
    // What is for all workers is done at the first.
    place.run("client init other --name other");
    let message = place.fails("node allow try/node-1-worker-1 other/card.toml --rights encrypt --keys *");
    assert!(message.contains("first worker"), "{message}");
    let message = place.fails("node rotate try/node-1-worker-1");
    assert!(message.contains("first worker"), "{message}");
    // A backup that a further worker makes is one of the whole node.
    place.run("node backup try/node-1-worker-1 backup --key backup.key");
    place.run("node restore backup restored --key backup.key");
    let settings = |dir: &str| {
        let text = String::from_utf8(place.read(&format!("{dir}/node.toml"))).expect("text");
        let address = text.lines().find(|line| line.starts_with("client_address")).expect("there").to_owned();
        (address, text.contains("postgresql") || text.contains("worker"))
    };
    assert_eq!(settings("restored"), (settings("try/node-1").0, false));
    assert!(place.path("restored/store.redb").exists());
    // A second process of one number.
    let message = place.fails("node run try/node-2-worker-1");
    assert!(
        message.contains("another process is using the store") || message.contains("already"),
        "{message}"
    );
    running.into_iter().for_each(Running::end);
    assert!(place.fails("node migrate try/node-1 --to file").contains("shared by several workers"));
    assert!(place.fails("node migrate try/node-1-worker-1 --to file").contains("first worker"));
    assert!(place.run("cluster check try").contains("node-3: 2 workers"));
    let message = place.output("cluster new other --workers 2");
    assert!(
        !message.status.success() && String::from_utf8_lossy(&message.stderr).contains("--store"),
        "{message:?}"
    );
}
