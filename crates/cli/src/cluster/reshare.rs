//! `cluster reshare`: moves all keys to other nodes of one host.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use polyclave_config::{Change, ClientDir, Cluster, Consent, NodeDir, load_approval};
use polyclave_node::local::add_nodes;
use polyclave_node::reshare::{self, Done};
use serde::Serialize;

use crate::{fingerprint, say};

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster reshare try --lost node-2 --add 1\n  \
    polyclave cluster reshare try --add 2 --threshold 2\n  \
    polyclave cluster reshare try --remove node-3 --remove node-4\n  \
    polyclave cluster reshare try --remove node-3 --protocol spdz-tower\n\n\
    The nodes must not be running. This makes directories for new nodes, moves all keys, and gives the client the new file. If it is \
    interrupted, run it again without options: it goes on. Nodes with operators of their own: polyclave cluster reshape makes \
    the file, and each operator runs polyclave node reshare, whose --help says what a reshare does.")]
pub struct Arguments {
    /// The directory that `cluster new` has made
    dir: PathBuf,

    /// A node that is gone: it takes no part. May be given several times
    #[arg(long, value_name = "NODE")]
    lost: Vec<String>,

    /// A node that hands its shares over and leaves. May be given several times
    #[arg(long, value_name = "NODE")]
    remove: Vec<String>,

    /// How many new nodes to make
    #[arg(long, value_name = "N", default_value_t = 0)]
    add: usize,

    /// How many nodes together learn nothing; as before if absent, as far as the protocol allows it
    #[arg(long, value_name = "T")]
    threshold: Option<usize>,

    /// The protocol of the new nodes; as before if absent
    #[arg(long, value_name = "P")]
    protocol: Option<String>,

    /// The approval of this reshare, if the rules of nodes want one. It is for a file that exists: run this
    /// once without, so that it writes reshare.toml, and then again
    #[arg(long, value_name = "FILE")]
    approval: Option<PathBuf>,

    /// Seconds that nodes wait for each other
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Reshared {
    nodes: Vec<String>,
    left: Vec<String>,
    keys: u64,
    seconds: f64,
    fingerprint: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = &arguments.dir;
    let current = Cluster::load(&dir.join("cluster.toml"))
        .context("this is no directory that `polyclave cluster new` has made")?;
    let file = dir.join("reshare.toml");
    let new = match file.exists() {
        true => unfinished(arguments, &file)?,
        false => begin(arguments, &current, &file)?,
    };
    let began = Instant::now();
    // An earlier run was interrupted at its very end.
    let done = match current == new {
        true => Vec::new(),
        false => all_nodes(arguments, &current, &new)?,
    };
    follow(dir, &new)?;
    let left = done.iter().filter(|(_, done)| done.left).map(|(name, _)| name.clone()).collect();
    let reshared = Reshared {
        nodes: new.cards().iter().map(|card| card.name.clone()).collect(),
        left,
        keys: done.iter().map(|(_, done)| done.keys).max().unwrap_or_default(),
        seconds: began.elapsed().as_secs_f64(),
        fingerprint: new.fingerprint().to_string(),
    };
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&reshared)?),
        false => say!(
            "{} keys are with {}, after {:.1} s. Next:\n  polyclave cluster run {}\nMake new backups: older ones cannot be used any more.",
            reshared.keys,
            fingerprint::names(&new),
            reshared.seconds,
            dir.display()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// A reshare that was interrupted.
fn unfinished(arguments: &Arguments, file: &Path) -> Result<Cluster> {
    let asks = !arguments.lost.is_empty() || !arguments.remove.is_empty();
    if asks || arguments.add > 0 || arguments.threshold.is_some() || arguments.protocol.is_some() {
        bail!(
            "{} is there: a reshare was interrupted. Run this again without options, so that it goes on; only then order another one",
            file.display()
        );
    }
    Ok(Cluster::load(file)?)
}

fn begin(arguments: &Arguments, current: &Cluster, file: &Path) -> Result<Cluster> {
    let change = |added| Change {
        lost: arguments.lost.clone(),
        removed: arguments.remove.clone(),
        added,
        threshold: arguments.threshold,
        protocol: arguments.protocol.as_ref().map(|protocol| protocol.to_ascii_lowercase()),
    };
    let gone = |name: &String| arguments.lost.contains(name) || arguments.remove.contains(name);
    let staying = current.cards().iter().map(|card| &card.name).find(|name| !gone(name));
    let like =
        staying.or(arguments.remove.first()).context("at least one node that is not lost takes part")?;
    let added = add_nodes(&arguments.dir, arguments.add, like)?;
    let made: Vec<PathBuf> = added.iter().map(|card| arguments.dir.join(&card.name)).collect();
    let define = || -> Result<Cluster> {
        let new = current.reshaped(&change(added))?;
        reshare::check(current, &new)?;
        new.save(file)?;
        Ok(new)
    };
    define().inspect_err(|_| {
        // Nobody has seen these nodes.
        made.iter().for_each(|dir| drop(std::fs::remove_dir_all(dir)));
    })
}

/// Runs all nodes that take part, each on a thread.
fn all_nodes(arguments: &Arguments, current: &Cluster, new: &Cluster) -> Result<Vec<(String, Done)>> {
    let lost = new.replaces().map(|replaced| replaced.lost.clone()).unwrap_or_default();
    let takes_part = |name: &String| !lost.contains(name) || new.card_named(name).is_some();
    let mut names: Vec<String> =
        current.cards().iter().chain(new.cards()).map(|card| card.name.clone()).filter(takes_part).collect();
    names.sort();
    names.dedup();
    let approval = arguments.approval.as_ref().map(|file| load_approval(file)).transpose()?;
    let approval = approval.as_ref().map(|(approval, _)| approval);
    let run = |name: &String| -> Result<(String, Done)> {
        let dir = NodeDir::open(&arguments.dir.join(name))
            .context(format!("cannot use the directory of {name}"))?;
        let mut tell = |message: &str| {
            if !arguments.json {
                say!("{name} {message}");
            }
        };
        let wait = Duration::from_secs(arguments.wait);
        let done = reshare::reshare(&dir, new, Some(current), approval, wait, &mut tell);
        Ok((name.clone(), done.with_context(|| format!("{name} cannot go on"))?))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(|| run(name))).collect();
        let failed = |_| Err(anyhow!("a node's thread failed"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect()
    })
}

/// The client and this directory use the new nodes from now on.
fn follow(dir: &Path, new: &Cluster) -> Result<()> {
    let client = dir.join("client");
    if client.exists() {
        ClientDir::set_cluster_of(&client, new, Consent::Cluster)?;
    }
    new.save(&dir.join("cluster.toml"))?;
    std::fs::remove_file(dir.join("reshare.toml"))
        .context("cannot remove the file of the reshare that is done")
}
