//! Two releases under one load (`scripts/mixed-versions`): each node is upgraded in turn and a node is killed
//! after each, all shares are made anew while the nodes are of both releases, one node goes back and gets the
//! new release again; and in the end all keys move to other nodes, by programs of both releases.
//!
//! A refresh, and two nodes that start again one soon after the other, leave `shamir-active` without stock.
//! Clients are told to wait and ask again, and do so here; the report counts it.

use std::fmt::Write;
use std::time::Duration;

use polyclave_client::Client;
use polyclave_config::ClientDir;
use serde_json::{Value, json};

use super::{Cluster, Load, WhenDry, under_load};
use crate::common::{Place, Release, Running};
use crate::kill_all::{insist, is_known, message};
use crate::reshare::{fingerprint, init};

/// Clusters in which one node may be away.
const CLUSTERS: [&str; 4] = [
    "--protocol shamir-active",
    "--protocol replicated-four",
    "--protocol replicated-active",
    "--protocol shamir --parties 5 --threshold 1",
];

#[test]
#[ignore = "scripts/mixed-versions runs it: it takes minutes, and shows most with a program of another release"]
fn no_request_fails_in_a_cluster_of_two_releases() {
    let releases = Release::two();
    let is_json = std::env::var_os("POLYCLAVE_MIXED_JSON").is_some();
    let asked = std::env::var("POLYCLAVE_MIXED_ONLY").unwrap_or_default();
    let mut loads: Vec<(&str, Load)> = Vec::new();
    for options in CLUSTERS.iter().filter(|options| options.contains(&asked)) {
        let load = run(options, &releases);
        // Told at once: the next one may fail.
        if !is_json {
            print!("{}", table(options, &load));
        }
        loads.push((options, load));
    }
    if is_json {
        println!("{}", json!(loads.iter().map(|(options, load)| report(options, load)).collect::<Vec<_>>()));
    }
    for (options, load) in &loads {
        assert!(load.failures.is_empty(), "{options}: {:#?}", load.failures);
    }
}

fn run(options: &str, (old, next): &(Release, Release)) -> Load {
    let place = Place::new();
    let mut count = 0;
    let mut load = under_load(&place, options, (old, next), WhenDry::AsksAgain, |cluster| {
        count = cluster.nodes.len();
        let mut releases = vec![old; count];
        for node in 0..count {
            releases[node] = next;
            cluster.restart(node, next);
            let other = (node + 1) % count;
            cluster.kill(other, releases[other]);
            if node + 1 == count / 2 {
                cluster.refresh(&releases);
            }
        }
        cluster.restart(0, old);
        cluster.refresh(&[&[old], &vec![next; count - 1][..]].concat());
        cluster.restart(0, next);
    });
    std::mem::take(&mut load.nodes).into_iter().for_each(Running::end);
    // Where no old node can be lost, the one that leaves takes part.
    reshare(&place, count, options.contains("replicated-active"), (old, next));
    load
}

impl Cluster<'_> {
    /// Kills a node and starts it again.
    fn kill(&mut self, node: usize, release: &Release) {
        let before = self.begin(format!("node {} is killed", node + 1));
        let mut killed = self.nodes.remove(node);
        killed.kill();
        killed.wait_until_gone();
        self.started(node, release, before);
    }

    /// Gives all keys fresh shares: each operator orders it with his own program.
    fn refresh(&mut self, releases: &[&Release]) {
        self.begin("all shares are made anew".into());
        let secrets = || -> Vec<Value> {
            let status = |(node, release): (usize, &&Release)| {
                super::status(self.place, release, node)["secrets"].clone()
            };
            releases.iter().enumerate().map(status).collect()
        };
        let before = secrets();
        for (node, release) in releases.iter().enumerate() {
            self.place.run_as(release, &format!("node refresh try/node-{}", node + 1));
        }
        self.place.until("fresh shares", || secrets().iter().all(|secrets| *secrets != before[0]));
        super::until_stock_is_made(self.place);
        // Pairs begin anew. Nodes of the release before this one told what they saw a second ago.
        std::thread::sleep(Duration::from_millis(1500));
        super::until_pairs_are_ready(self.place, releases.len());
    }
}

/// The last node is replaced by a new one. The first operator has the old program.
fn reshare(place: &Place, count: usize, all_take_part: bool, (old, next): (&Release, &Release)) {
    let (added, lost) = (count + 1, count);
    init(place, added);
    // As at all nodes: otherwise they make no material together.
    place.set_stock(added, super::STOCK, 0);
    place.use_several_streams(added);
    let leaves = if all_take_part { "--remove" } else { "--lost" };
    let change = format!("{leaves} node-{lost} --add try/node-{added}/card.toml --out new.toml");
    place.run(&format!("cluster reshape try/cluster.toml {change}"));
    let expected = fingerprint(place, "new.toml");
    place.write(&format!("try/node-{added}/clients.toml"), &place.read("try/node-1/clients.toml"));
    let stay: Vec<usize> = (1..lost).chain([added]).collect();
    let release = |node: usize| if node == 1 { old } else { next };
    let take_part = stay.iter().copied().chain(all_take_part.then_some(lost));
    let moving: Vec<Running> = take_part
        .map(|node| {
            let from = format!("new.toml --from try/cluster.toml --expect {expected} --wait 50");
            place.start_as(release(node), &format!("node reshare try/node-{node} {from}"))
        })
        .collect();
    assert!(moving.into_iter().all(Running::finish), "all keys move");
    place.run(&format!("client join try/client new.toml --expect {expected}"));
    let start =
        |node: &usize| place.start_as(release(*node), &format!("node run try/node-{node} --log warn"));
    let nodes: Vec<Running> = stay.iter().map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    // They have just begun to make material.
    let directory = ClientDir::open(&place.path("try/client")).expect("a client's directory");
    let client = Client::open(&directory).expect("a client");
    is_known(&insist("the known key", || client.key("known")?.cmac(&message())));
}

/// By step: what happened, how many answers came until the next step, and how many requests failed.
fn rows(load: &Load) -> Vec<(&str, usize, usize)> {
    let ends = load.steps.iter().skip(1).map(|step| step.before).chain([load.answers[0]]);
    let failed = |number: usize| load.failures.iter().filter(|(at, _)| *at == number).count();
    let steps = load.steps.iter().zip(ends).zip(1..);
    steps.map(|((step, end), number)| (step.what.as_str(), end - step.before, failed(number))).collect()
}

fn report(options: &str, load: &Load) -> Value {
    let [clients, programs] = load.answers;
    let step = |(what, answers, failed)| json!({"step": what, "answers": answers, "failed": failed});
    json!({
        "cluster": options,
        "answers": clients + programs,
        "failed": load.failures.len(),
        "asked_again_when_dry": load.dry,
        "longest_seconds": load.longest().as_secs_f64(),
        "percent_within_2_seconds": load.share_in_time(),
        "steps": rows(load).into_iter().map(step).collect::<Vec<_>>(),
    })
}

fn table(options: &str, load: &Load) -> String {
    let [clients, programs] = load.answers;
    let mut table = format!("\n{options}\n");
    let mut line = |what: &str, answers: usize, failed: usize| {
        writeln!(table, "  {what:<42} {answers:>8} answers {failed:>5} failed").expect("there is memory");
    };
    rows(load).into_iter().for_each(|(what, answers, failed)| line(what, answers, failed));
    line("the program of the other release", programs, 0);
    line("in all", clients + programs, load.failures.len());
    let dry = format!("  {} times a client waited for stock and asked again", load.dry);
    let (longest, share) = (load.longest(), load.share_in_time());
    writeln!(table, "{dry}\n  the longest request took {longest:.1?}; {share:.2} % took 2 s at most")
        .expect("there is memory");
    table
}
