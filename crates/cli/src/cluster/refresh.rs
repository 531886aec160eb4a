//! `cluster refresh`: fresh shares of all keys, at all nodes of one host.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use polyclave_config::{Cluster, NodeDir};
use polyclave_node::admin::{Answer, Instruction, Status, order};
use serde::Serialize;

use crate::node::refresh::Order;
use crate::say;

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "All nodes have to run. This orders the refresh at each of them, and waits until all have taken their fresh shares into \
    use. If it is interrupted, or gives up waiting, the order stands: the nodes go on. Nodes with operators of their own: each runs \
    polyclave node refresh DIR, whose --help says what a refresh does."
)]
pub struct Arguments {
    /// The directory that `cluster new` has made
    dir: PathBuf,

    #[command(flatten)]
    order: Order,

    /// Seconds to wait for the end
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Refreshed {
    nodes: usize,
    keys: u64,
    seconds: f64,
    /// The public id of the fresh common secrets.
    secrets: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = Cluster::load(&arguments.dir.join("cluster.toml"))
        .context("this is no directory that `polyclave cluster new` has made")?;
    let open = |name: &str| {
        NodeDir::open(&arguments.dir.join(name)).context(format!("cannot use the directory of {name}"))
    };
    let dirs: Vec<NodeDir> = cluster.cards().iter().map(|card| open(&card.name)).collect::<Result<_>>()?;
    let before: Vec<Status> = dirs.iter().map(status).collect::<Result<_>>()?;
    if let Some(node) = before.iter().find(|node| !node.set_up) {
        bail!(
            "{} has not agreed with the others on common secrets yet; wait until all nodes are ready",
            node.name
        );
    }
    let began = Instant::now();
    let instruction = arguments.order.instruction()?;
    for dir in &dirs {
        order(dir, &instruction)?;
    }
    let until = began + Duration::from_secs(arguments.wait);
    let mut message = String::new();
    let after = loop {
        let now: Vec<Status> = dirs.iter().map(status).collect::<Result<_>>()?;
        let is_fresh = |(before, now): (&Status, &Status)| before.secrets != now.secrets;
        if before.iter().zip(&now).all(is_fresh) && now.iter().all(|node| node.secrets == now[0].secrets) {
            break now;
        }
        let gave_up = |(before, now): (&Status, &Status)| {
            !now.refreshing && before.secrets == now.secrets && !now.rotating.contains(&now.name)
        };
        if let Some((_, node)) = before.iter().zip(&now).find(|pair| gave_up(*pair)) {
            bail!("{} has given the refresh up: {}; see its log", node.name, trouble(node));
        }
        let progress = describe(&now);
        if !arguments.json && progress != message {
            say!("{progress}");
            message = progress;
        }
        if Instant::now() > until {
            bail!("the refresh was not done in {} s, and stays ordered: {}", arguments.wait, describe(&now));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let refreshed = Refreshed {
        nodes: dirs.len(),
        keys: after[0].keys,
        seconds: began.elapsed().as_secs_f64(),
        secrets: after[0].secrets.clone().unwrap_or_default(),
    };
    ensure!(!refreshed.secrets.is_empty(), "the nodes have lost their common secrets; see their logs");
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&refreshed)?),
        false => say!(
            "all {} nodes have fresh shares of {} keys, after {:.1} s. Make new backups: older ones cannot be used any more",
            refreshed.nodes,
            refreshed.keys,
            refreshed.seconds
        ),
    }
    Ok(ExitCode::SUCCESS)
}

fn status(dir: &NodeDir) -> Result<Status> {
    match order(dir, &Instruction::Status)? {
        Some(Answer::Status(status)) => Ok(*status),
        Some(_) => bail!("{} answered something else; is it of another version?", dir.settings().name),
        None => bail!("{} is not running, and a refresh takes all nodes; start it", dir.settings().name),
    }
}

fn describe(nodes: &[Status]) -> String {
    if let Some(node) = nodes.iter().find(|node| node.refreshing && node.refreshed_of > 0) {
        return format!("{} of {} keys", node.refreshed_keys, node.refreshed_of);
    }
    if let Some(node) = nodes.iter().find(|node| !node.missing.is_empty()) {
        return format!("waiting: {} is not connected with {}", node.name, node.missing.join(", "));
    }
    match nodes.iter().find(|node| node.refresh_trouble.is_some()) {
        Some(node) => {
            format!("waiting for another attempt; at {} the last one failed: {}", node.name, trouble(node))
        }
        None => "waiting for the nodes to begin or to end".into(),
    }
}

fn trouble(node: &Status) -> &str {
    node.refresh_trouble.as_deref().unwrap_or("it does not say why")
}
