//! `cluster drill gather`: a whole drill on one machine, which holds the shares of a quorum meanwhile.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use polyclave_client::Client;
use polyclave_config::{ClientDir, Place};
use polyclave_node::local::free_ports;
use serde_json::json;
use tempfile::TempDir;

use super::define::make_client;
use super::loss::{self, Since};
use super::part::{self, Part};
use super::proof::{prove, succeeded, tell};
use super::scratch;
use crate::cluster::run::Quiet;
use crate::{say, stop};

/// How long the nodes may take to find each other and to make material.
const START: Duration = Duration::from_secs(300);
/// A file system in memory, where shares reach no disk.
const MEMORY: &str = "/dev/shm";

const WARNING: &str = "WARNING: this machine now holds the shares of a quorum. Everybody who can read its memory or its disks can learn every key: its \
    administrators, its hypervisor, a finder of its swap space. No node of the cluster ever has that much. Do this on a machine without a \
    network that all operators watch, and destroy what it remembers afterwards. Where operators do not want that: each restores one node on a \
    machine of their own (polyclave cluster drill restore).";

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster drill gather --all-shares-on-this-machine alpha=a.backup beta=b.backup gamma=c.backup \\\n      \
    --key alpha=a.key --key beta=b.key --key gamma=c.key\n\n\
    DANGEROUS. Polyclave exists so that no machine has the shares of a quorum. This command brings them together on this one: while it runs, \
    everybody who can read this machine can learn all keys. Use a machine without a network that all operators watch, without swap space, and wipe it \
    afterwards. The safer way needs more machines: `cluster drill restore`, `define`, `join` and `check`, by each operator.\n\n\
    The nodes run on the loopback interface, from a directory in memory if there is one (/dev/shm), which is removed at the end. They have \
    certificates of their own, and the addresses of no real node. Ends with 0 if every key that computes anything is proved, else with 1.")]
pub struct Arguments {
    /// The backups, each with its node: NODE=FILE
    #[arg(required = true, value_name = "NODE=FILE", value_parser = of_node)]
    backups: Vec<(String, PathBuf)>,

    /// The files with their keys
    #[arg(long = "key", required = true, value_name = "NODE=KEYFILE", value_parser = of_node)]
    keys: Vec<(String, PathBuf)>,

    /// Say that you know: this machine will hold enough shares to know all keys
    #[arg(long)]
    all_shares_on_this_machine: bool,

    /// The directory in which to make another one for the nodes; by default one in memory
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// What `key list --json` printed of the real cluster: says what a restore would lose and bring back
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn of_node(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((node, file)) if !node.is_empty() && !file.is_empty() => Ok((node.into(), file.into())),
        _ => Err("write the node's name, '=' and the file: alpha=alpha.backup".into()),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    ensure!(
        arguments.all_shares_on_this_machine,
        "this would bring the shares of a quorum together on this machine, which then knows all keys; nothing was done. Let each operator \
         restore one node on a machine of their own (polyclave cluster drill restore). If you accept it on this machine, say so with \
         --all-shares-on-this-machine"
    );
    let stopping = stop::on_signals()?;
    let stopping = || stopping.load(Relaxed);
    let real = arguments.compare.as_deref().map(loss::read).transpose()?;
    eprintln!("{WARNING}");
    let networks = networks();
    if !networks.is_empty() {
        eprintln!(
            "WARNING: this machine has a network: {}. Take it away, and begin again.",
            networks.join(", ")
        );
    }
    let scratch = scratch_dir(arguments.scratch.as_deref())?;
    let parts = unpack(arguments, scratch.path(), &stopping)?;
    let proved = {
        let (_nodes, client) = start(scratch.path(), &parts, &stopping)?;
        prove(&client, stopping)?
    };
    let place = scratch.path().to_owned();
    scratch.close().with_context(|| format!("SHARES ARE LEFT in {}; remove it", place.display()))?;
    let since = real.map(|real| Since::between(&proved, &real));
    if arguments.json {
        let document = json!({ "backups": parts, "keys": proved, "since": since, "networks": networks });
        say!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        parts.iter().for_each(loss::tell_part);
        say!("");
        tell(&proved);
        loss::tell(since.as_ref());
        say!("");
        say!(
            "{} is removed. This machine has held the shares of a quorum: turn it off, and wipe what it wrote.",
            place.display()
        );
    }
    Ok(if succeeded(&proved) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A private directory, which is removed when it is dropped.
fn scratch_dir(within: Option<&Path>) -> Result<TempDir> {
    let mut private = tempfile::Builder::new();
    private.prefix("polyclave-drill-");
    match within {
        Some(within) => private
            .tempdir_in(within)
            .with_context(|| format!("cannot make a directory in {}", within.display())),
        None => private
            .tempdir_in(MEMORY)
            .or_else(|_| private.tempdir())
            .context("cannot make a temporary directory; name a place for it with --scratch DIR"),
    }
}

/// Restores all backups, each into a directory of its node's name.
fn unpack(arguments: &Arguments, scratch: &Path, stopping: &impl Fn() -> bool) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, (node, file)) in arguments.backups.iter().enumerate() {
        ensure!(!stopping(), "the drill was interrupted");
        ensure!(
            arguments.backups[..number].iter().all(|(other, _)| other != node),
            "{node} has two backups; give one of each node, the latest"
        );
        let key = arguments.keys.iter().find(|(of, _)| of == node);
        let (_, key) = key
            .ok_or_else(|| anyhow!("there is no key for the backup of {node}; give --key {node}=KEYFILE"))?;
        let ports = free_ports(2)?;
        let at = |port: u16| format!("127.0.0.1:{port}");
        let place = Place { address: at(ports[0]), client_address: at(ports[1]) };
        let dir = scratch.join(node);
        let part = part::unpack(file, key, &dir, &place).with_context(|| {
            format!("the backup of {node}, {}, cannot be used in a drill", file.display())
        })?;
        if part.node != *node {
            bail!(
                "{} is a backup of {}, not of {node}; name each backup after its node",
                file.display(),
                part.node
            );
        }
        parts.push(part);
    }
    let first = part::real_cluster(&scratch.join(&parts[0].node))?;
    for part in &parts[1..] {
        let cluster = part::real_cluster(&scratch.join(&part.node))?;
        ensure!(
            cluster.lasting_digest() == first.lasting_digest(),
            "{} of {} is a backup of another cluster than {} of {}; give backups of one cluster, all from before or all from after a reshare",
            part.backup.display(),
            part.node,
            parts[0].backup.display(),
            parts[0].node
        );
        ensure!(
            part.common_secrets == parts[0].common_secrets,
            "{} of {} is from another side of a refresh than {} of {}, so their shares do not fit together; give backups of all nodes that \
             were made after the same refresh",
            part.backup.display(),
            part.node,
            parts[0].backup.display(),
            parts[0].node
        );
    }
    scratch::refuse_too_few(&first, &parts.iter().map(|part| part.node.as_str()).collect::<Vec<_>>())?;
    Ok(parts)
}

/// Starts the nodes, and waits until they can serve. They end when they are dropped.
fn start(scratch: &Path, parts: &[Part], stopping: &impl Fn() -> bool) -> Result<(Quiet, Client)> {
    let dirs: Vec<PathBuf> = parts.iter().map(|part| scratch.join(&part.node)).collect();
    let cards = dirs.iter().map(|dir| part::card(dir)).collect::<Result<Vec<_>>>()?;
    let drill = scratch::cluster(&part::real_cluster(&dirs[0])?, &cards)?;
    let client = scratch.join("client of the drill");
    let card = make_client(&client, &drill)?;
    dirs.iter().try_for_each(|dir| part::join(dir, &drill, &card))?;
    let mut nodes = Quiet::start(dirs.iter().map(PathBuf::as_path))?;
    nodes.wait_until_ready(START, stopping)?;
    Ok((nodes, Client::open(&ClientDir::open(&client)?)?))
}

/// The network interfaces of this machine that are up, except the loopback interface.
fn networks() -> Vec<String> {
    let interfaces = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let up = interfaces.filter(|interface| {
        std::fs::read_to_string(interface.path().join("operstate")).is_ok_and(|state| state.trim() == "up")
    });
    up.map(|interface| interface.file_name().to_string_lossy().into_owned()).collect()
}
