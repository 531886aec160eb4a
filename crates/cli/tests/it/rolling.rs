//! Nodes end and start again one after the other while clients work, with the same program or with one of
//! another release. Where one node may be away, no request fails, if clients repeat requests as the program
//! and the gateway do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use polyclave_api::Mode;
use polyclave_client::{Again, Client, Result};
use polyclave_config::ClientDir;
use polyclave_protocol::versions::NODES;
use serde_json::Value;

use crate::common::{Place, Release, Running, StopAtEnd};
use crate::kill_all::{CODE, KEY, insist, is_known, message, new_key};

mod mixed;

/// Clients that work at the same time, in this process.
const CLIENTS: usize = 2;
/// The time between two requests of a client. Without it clients would use up the stock while a node is
/// away, when none is made.
const PAUSE: Duration = Duration::from_millis(50);
/// Blocks in stock, for all requests while a node is away.
const STOCK: usize = 512;
/// A client that does not notice that the leading node is gone waits for 15 s. No other wait is as long.
const LONGEST: Duration = Duration::from_secs(12);
/// The same where two nodes, and then all three again, first have to make what they need: on a busy machine.
const LONGEST_WITH_STANDBY: Duration = Duration::from_secs(40);
/// How long a client waits at most while a node is away, if nothing else keeps the machine busy.
const SOON: Duration = Duration::from_secs(2);
/// How often each node is ended; as often as this variable says by hand.
const TURNS: usize = 3;
const TURNS_BY_HAND: &str = "POLYCLAVE_ROLLING_TURNS";
/// By hand: for how many milliseconds all nodes run before the next one is ended. With a rest that is longer
/// than a request takes, no request meets two ends.
const REST_BY_HAND: &str = "POLYCLAVE_ROLLING_REST";

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

#[test]
fn no_request_fails_while_nodes_of_shamir_active_are_upgraded_and_one_goes_back() {
    no_request_fails_in_an_upgrade("--protocol shamir-active");
}

#[test]
fn no_request_fails_while_nodes_of_replicated_four_are_upgraded_and_one_goes_back() {
    no_request_fails_in_an_upgrade("--protocol replicated-four");
}

#[test]
fn no_request_fails_while_five_nodes_of_shamir_are_upgraded_and_one_goes_back() {
    no_request_fails_in_an_upgrade("--protocol shamir --parties 5 --threshold 1");
}

#[test]
fn no_request_fails_while_three_nodes_with_standby_are_upgraded_and_one_goes_back() {
    no_request_fails_in_an_upgrade("--protocol replicated-active");
}

fn no_request_fails(options: &str, end: fn(Running)) {
    let (place, this) = (Place::new(), Release::this());
    let by_hand = |name| std::env::var(name).ok().map(|number| number.parse().expect("a number"));
    let turns = by_hand(TURNS_BY_HAND).map_or(TURNS, |turns| turns as usize);
    let rest = Duration::from_millis(by_hand(REST_BY_HAND).unwrap_or_default());
    let load = under_load(&place, options, (&this, &this), WhenDry::Fails, |cluster| {
        let count = cluster.nodes.len();
        for number in 0..turns * count {
            std::thread::sleep(rest);
            cluster.restart_after(end, number % count, &this);
        }
    });
    load.assert_whole(options);
}

/// Each node in turn gets the next release, the first one goes back, and gets it again. Clients of both
/// releases work all the time.
fn no_request_fails_in_an_upgrade(options: &str) {
    let (place, old, next) = (Place::new(), Release::this(), Release::ahead(1));
    let load = under_load(&place, options, (&old, &next), WhenDry::Fails, |cluster| {
        let (count, newest) = (cluster.nodes.len(), NODES.spoken().newest);
        for node in 0..count {
            cluster.restart(node, &next);
            let wires = cluster.wires(node);
            assert_eq!(wires.len(), count - 1, "{wires:?}");
            let expected = |peer: usize| newest + u8::from(peer < node);
            for (peer, (release, wire)) in (0..count).filter(|peer| *peer != node).zip(&wires) {
                assert_eq!(*wire, expected(peer), "with node {}: {wires:?}", peer + 1);
                assert_eq!(release == "the next release", peer < node, "{wires:?}");
            }
        }
        cluster.restart(0, &old);
        assert!(cluster.wires(0).iter().all(|(_, wire)| *wire == newest));
        cluster.restart(0, &next);
    });
    load.assert_whole(options);
}

/// What clients got while something happened to the nodes.
struct Load {
    /// Answers to clients in this process, and to the program of the other release.
    answers: [usize; 2],
    /// What failed, and at which step.
    failures: Vec<(usize, String)>,
    /// How long clients waited for each of their requests.
    waits: Vec<Duration>,
    /// How often a client that does so has asked again because the stock was dry.
    dry: usize,
    steps: Vec<Step>,
    /// The nodes, which still run.
    nodes: Vec<Running>,
}

/// Something that happened to the nodes.
struct Step {
    what: String,
    /// How many answers clients in this process had when it began.
    before: usize,
}

impl Load {
    fn longest(&self) -> Duration {
        self.waits.iter().copied().max().expect("there were requests")
    }

    /// The share of requests that took no longer than clients should notice, in percent.
    fn share_in_time(&self) -> f64 {
        let in_time = self.waits.iter().filter(|wait| **wait <= SOON).count();
        100.0 * in_time as f64 / self.waits.len() as f64
    }

    fn assert_whole(&self, options: &str) {
        let Load { answers: [here, beside], failures, steps, .. } = self;
        let (steps, longest) = (steps.len(), self.longest());
        println!(
            "{options}: {steps} steps, {here} + {beside} answers, {} failed, the longest after {longest:.1?}, {:.2} % within \
             {SOON:?}",
            failures.len(),
            self.share_in_time()
        );
        assert!(failures.is_empty(), "{failures:#?}");
        let has_standby = options.contains("replicated-active");
        let most = if has_standby { LONGEST_WITH_STANDBY } else { LONGEST };
        assert!(longest < most, "{longest:?}");
        assert!(*beside > 0);
    }
}

/// A cluster under load.
struct Cluster<'p> {
    place: &'p Place,
    nodes: Vec<Running>,
    answers: &'p AtomicUsize,
    steps: &'p Mutex<Vec<Step>>,
}

impl Cluster<'_> {
    /// Ends a node and starts it with a program, and waits until all is as it was.
    fn restart(&mut self, node: usize, release: &Release) {
        self.restart_after(Running::end, node, release);
    }

    /// The same, where a node ends in this way.
    fn restart_after(&mut self, end: fn(Running), node: usize, release: &Release) {
        let before = self.begin(format!("node {} gets {}", node + 1, release.name()));
        end(self.nodes.remove(node));
        self.started(node, release, before);
    }

    /// Begins a step. Returns the number of answers so far.
    fn begin(&self, what: String) -> usize {
        let before = self.answers.load(Relaxed);
        tell(&what);
        self.steps.lock().push(Step { what, before });
        before
    }

    /// Starts a node that has ended.
    fn started(&mut self, node: usize, release: &Release, before: usize) {
        self.nodes.insert(node, start(self.place, node, release));
        self.nodes[node].wait_for("is ready");
        self.place.until("clients get answers", || self.answers.load(Relaxed) > before);
        // What was made without a node serves nobody when the next one is away too.
        until_stock_is_made(self.place);
        until_pairs_are_ready(self.place, self.nodes.len());
    }

    /// The release of each peer of a node, and the version of the wire that is in use with it.
    fn wires(&self, node: usize) -> Vec<(String, u8)> {
        let status = status(self.place, &Release::this(), node);
        let programs = status["programs"].as_object().expect("programs by name");
        let program = |of: &Value| {
            (of["version"].as_str().expect("text").into(), of["wire"].as_u64().expect("a number") as u8)
        };
        programs.values().map(program).collect()
    }
}

fn start(place: &Place, node: usize, release: &Release) -> Running {
    place.start_as(release, &format!("node run try/node-{} --log warn", node + 1))
}

/// What a client does when the stock is dry, which the nodes answer with: wait and ask again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenDry {
    /// It takes that for a failure.
    Fails,
    /// It waits and asks again, for as long as a request may take.
    AsksAgain,
}

/// Runs a cluster with the first of two releases, and clients of both, while something is done to it.
fn under_load(
    place: &Place,
    options: &str,
    (old, next): (&Release, &Release),
    when_dry: WhenDry,
    work: impl FnOnce(&mut Cluster<'_>),
) -> Load {
    let count = place.cluster_on_several_streams_as(old, options);
    (1..=count).for_each(|node| place.set_stock(node, STOCK, 0));
    let nodes: Vec<Running> = (0..count).map(|node| start(place, node, old)).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    let client = || {
        let directory = ClientDir::open(&place.path("try/client")).expect("a client's directory");
        Client::open(&directory).expect("a client")
    };
    let key = hex::decode(KEY).expect("hexadecimal");
    insist("import", || client().import(new_key("known", Mode::Cmac), &key));
    insist("generate", || client().generate(new_key("sealing", Mode::Gcm)));
    place.write("message", &message());
    until_stock_is_made(place);
    until_pairs_are_ready(place, count);

    let (stop, steps) = (&AtomicBool::new(false), &Mutex::new(Vec::<Step>::new()));
    let (here, beside, dry) = (&AtomicUsize::new(0), &AtomicUsize::new(0), &AtomicUsize::new(0));
    // How long a client waited for each answer, and what failed.
    let works = |answers: &AtomicUsize, request: &dyn Fn() -> std::result::Result<(), String>| {
        let (mut waits, mut failures) = (Vec::new(), Vec::new());
        while !stop.load(Relaxed) {
            std::thread::sleep(PAUSE);
            let (at, began) = (steps.lock().len(), Instant::now());
            let outcome = loop {
                let outcome = request();
                let is_dry =
                    outcome.as_ref().is_err_and(|e| e.contains("it is being refilled: wait and ask again"));
                if when_dry == WhenDry::Fails || !is_dry || began.elapsed() > LONGEST {
                    break outcome;
                }
                dry.fetch_add(1, Relaxed);
                std::thread::sleep(4 * PAUSE);
            };
            let waited = began.elapsed();
            waits.push(waited);
            if waited > SOON {
                tell(&format!("a request took {waited:.1?}: {outcome:?}"));
            }
            match outcome {
                Ok(()) => _ = answers.fetch_add(1, Relaxed),
                Err(e) => failures.push((at, e)),
            }
        }
        (waits, failures)
    };
    let in_process = || {
        let client = client();
        works(here, &|| {
            let mut again = Again::without_failed_nodes(&client);
            loop {
                match mac_and_seal(&client) {
                    Err(e) if again.after(&e) => {}
                    outcome => return outcome.map_err(|e| e.to_string()),
                }
            }
        })
    };
    // The release that is not that of this process.
    let other = if next.pretends() { next } else { old };
    let program = || {
        works(beside, &|| {
            let output = place.output_as(other, &format!("mac --key known message --verify {CODE}"));
            output
                .status
                .success()
                .then_some(())
                .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into())
        })
    };
    // It ends after the clients.
    let mut cluster = Cluster { place, nodes, answers: here, steps };
    let done: Vec<_> = std::thread::scope(|scope| {
        let _stop = StopAtEnd(stop);
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(in_process)).collect();
        let workers: Vec<_> = workers.into_iter().chain([scope.spawn(program)]).collect();
        work(&mut cluster);
        stop.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let (waits, failures): (Vec<Vec<Duration>>, Vec<Vec<_>>) = done.into_iter().unzip();
    let answers = [here, beside].map(|number| number.load(Relaxed));
    let (nodes, steps) = (cluster.nodes, std::mem::take(&mut *steps.lock()));
    Load { answers, failures: failures.concat(), waits: waits.concat(), dry: dry.load(Relaxed), steps, nodes }
}

/// Says on standard error what happened, with the time, as the nodes do.
fn tell(what: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let (minute, second) = ((now / 60.0) as u64 % 60, now % 60.0);
    eprintln!("{minute:02}:{second:09.6} {what}");
}

fn mac_and_seal(client: &Client) -> Result<()> {
    is_known(&client.key("known")?.cmac(&message())?);
    client.seal("sealing", &mut &message()[..], &mut Vec::new(), &mut |_| ()).map(drop)
}

/// Waits until each node has half of the stock that it is to have. Clients take of it all the time.
fn until_stock_is_made(place: &Place) {
    let number = |kind: &Value, what: &str| kind[what].as_u64().expect("a number");
    let is_made = |kind: &Value| 2 * number(kind, "blocks") >= number(kind, "level");
    place.until("the stock is made", || {
        let status: Value = serde_json::from_str(&place.run("client status --json")).expect("it is JSON");
        let nodes = status["nodes"].as_array().expect("a list");
        nodes.iter().all(|node| node["stock"].as_array().is_some_and(|stock| stock.iter().all(is_made)))
    });
}

/// What a node says of its standby pairs.
pub fn standby(place: &Place, node: usize) -> Vec<Value> {
    status(place, &Release::this(), node)["standby"].as_array().expect("a list").clone()
}

/// Waits until the standby pairs of each node, if there are any, have all keys.
pub fn until_pairs_are_ready(place: &Place, nodes: usize) {
    let is_ready = |pair: &Value| pair["ready"] == true && pair["lacking"] == 0;
    place.until("the standby pairs are ready", || {
        (0..nodes).all(|node| standby(place, node).iter().all(is_ready))
    });
}

/// What a node says of itself. The command fails while the node is not ready, as in a refresh.
fn status(place: &Place, release: &Release, node: usize) -> Value {
    let said = place.output_as(release, &format!("node status try/node-{} --json", node + 1)).stdout;
    serde_json::from_slice(&said).expect("it is JSON")
}
