//! `cluster run`: all nodes of a cluster on one host, as children of this process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use polyclave_config::Cluster;
use polyclave_node::local::worker_dir;

use crate::{say, stop};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long nodes that were asked to end may take.
const LAST_REQUESTS: Duration = Duration::from_secs(15);

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Prints one line when all nodes are ready. To see how a cluster does without a node, end one: its process \
    id is printed."
)]
pub struct Arguments {
    /// The directory that `cluster new` has made
    dir: PathBuf,

    /// What the nodes log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: String,
}

/// A node, or one of its workers, as a child process.
struct Node {
    name: String,
    child: Child,
    /// The node ends when this is closed, even if this process was killed.
    input: Option<ChildStdin>,
    ready: bool,
    ended: bool,
}

/// Child processes that end with this process.
struct Nodes(Vec<Node>);

/// Nodes of a measurement: nothing is printed of them.
pub(super) struct Quiet {
    nodes: Nodes,
    lines: Receiver<(usize, Option<String>)>,
}

impl Quiet {
    /// Starts the nodes of some directories.
    pub(super) fn start<'d>(dirs: impl Iterator<Item = &'d Path>) -> Result<Quiet> {
        let (sender, lines) = channel();
        let mut nodes = Nodes(Vec::new());
        for dir in dirs {
            let name = dir.display().to_string();
            nodes.0.push(start(nodes.0.len(), &name, dir, "error", sender.clone())?);
        }
        Ok(Quiet { nodes, lines })
    }

    /// Ends one of them.
    pub(super) fn end(&mut self, number: usize) -> Result<()> {
        let node = self.nodes.0.get_mut(number).context("there is no such node")?;
        drop(node.input.take());
        node.child.wait().context("cannot follow a node")?;
        node.ended = true;
        Ok(())
    }

    /// Waits until all can serve.
    pub(super) fn wait_until_ready(&mut self, within: Duration, stopping: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + within;
        while !self.nodes.0.iter().all(|node| node.ready) {
            let left = until.saturating_duration_since(Instant::now());
            if stopping() {
                bail!("this was interrupted before the nodes were ready");
            }
            match self.lines.recv_timeout(left.min(POLL_INTERVAL)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                Ok((number, Some(line))) => self.nodes.0[number].ready |= line.ends_with(" is ready"),
                Ok((number, None)) => bail!("{} has ended; see above", self.nodes.0[number].name),
                Err(_) => bail!("the nodes are not ready after {} s", within.as_secs()),
            }
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stopping = stop::on_signals()?;
    let cluster = Cluster::load(&arguments.dir.join("cluster.toml"))
        .context("this is no directory that `polyclave cluster new` has made")?;
    let (sender, lines) = channel();
    let mut nodes = Nodes(Vec::new());
    for (worker_group, card) in
        (0..).take(cluster.worker_groups()).flat_map(|k| cluster.cards().iter().map(move |card| (k, card)))
    {
        let name = match worker_group {
            0 => card.name.clone(),
            number => format!("{} (worker {number})", card.name),
        };
        let dir = arguments.dir.join(worker_dir(&card.name, worker_group));
        let node = start(nodes.0.len(), &name, &dir, &arguments.log, sender.clone())?;
        say!("{} is process {}", node.name, node.child.id());
        nodes.0.push(node);
    }
    drop(sender);
    let outcome = nodes.follow(&lines, || stopping.load(Relaxed));
    nodes.stop();
    outcome
}

fn start(
    number: usize,
    name: &str,
    dir: &Path,
    log: &str,
    lines: Sender<(usize, Option<String>)>,
) -> Result<Node> {
    let program = std::env::current_exe().context("cannot find this program to start nodes with")?;
    let mut child = Command::new(program)
        .args(["node", "run", "--until-input-ends", "--log", log])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a node")?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let node = Node { name: name.to_owned(), child, input, ready: false, ended: false };
    if let Some(output) = output {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody reads this once the process stops.
                let _ = lines.send((number, Some(line)));
            }
            let _ = lines.send((number, None));
        });
    }
    Ok(node)
}

impl Nodes {
    fn follow(
        &mut self,
        lines: &Receiver<(usize, Option<String>)>,
        stopping: impl Fn() -> bool,
    ) -> Result<ExitCode> {
        let mut all_were_ready = false;
        while !stopping() {
            match lines.recv_timeout(POLL_INTERVAL) {
                Ok((number, Some(line))) => {
                    let node = &mut self.0[number];
                    say!("{line}");
                    node.ready |= line == format!("node {} is ready", node.name);
                }
                Ok((number, None)) if !stopping() => {
                    let node = &mut self.0[number];
                    node.ended = true;
                    let status = node.child.wait().context("cannot follow a node")?;
                    if !all_were_ready {
                        bail!("{} did not start ({status}); see above", node.name);
                    }
                    eprintln!("warning: {} has ended ({status}); the others go on", node.name);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("all nodes have ended"),
            }
            if !all_were_ready && self.0.iter().all(|node| node.ready) {
                all_were_ready = true;
                say!("all {} nodes are ready; Ctrl-C ends them", self.0.len());
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn stop(&mut self) {
        self.0.iter_mut().for_each(|node| drop(node.input.take()));
        let until = Instant::now() + LAST_REQUESTS;
        for node in self.0.iter_mut().filter(|node| !node.ended) {
            while !matches!(node.child.try_wait(), Ok(Some(_)) | Err(_)) {
                if Instant::now() > until {
                    eprintln!("warning: {} did not end in order and was killed", node.name);
                    // It may have ended just now.
                    let _ = node.child.kill();
                    let _ = node.child.wait();
                    break;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            node.ended = true;
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.stop();
    }
}
