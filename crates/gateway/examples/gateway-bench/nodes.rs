//! Three nodes in a process of their own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclave_config::NodeDir;
use polyclave_node::Running;
use polyclave_node::local::create;

use crate::Outcome;

/// For how long nodes may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nodes that serve until this is dropped.
pub(crate) struct Nodes {
    /// The directory of a client that may do everything.
    pub(crate) client: PathBuf,
    child: Child,
    dir: tempfile::TempDir,
}

impl Nodes {
    pub(crate) fn start(protocol: &str) -> Outcome<Nodes> {
        let dir = tempfile::tempdir()?;
        let at = dir.path().join("cluster");
        let client = create(&at, protocol, 3, 1)?.client;
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("serve").arg(&at).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut ready = String::new();
        BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut ready)?;
        match ready.trim() {
            "ready" => Ok(Nodes { client, child, dir }),
            _ => Err("the nodes did not become ready".into()),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // They stop when their input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs the nodes of a directory until standard input ends.
pub(crate) fn serve(dir: &str) -> Outcome<()> {
    let open = |number: usize| NodeDir::open(&Path::new(dir).join(format!("node-{number}")));
    let running = (1..=3).map(|number| Ok(Running::start(open(number)?)?)).collect::<Outcome<Vec<_>>>()?;
    let until = Instant::now() + PATIENCE;
    while !running.iter().all(|node| node.is_ready() && node.status().connected.len() >= 3) {
        if Instant::now() > until {
            return Err("the nodes did not find each other".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    running.into_iter().for_each(Running::stop);
    Ok(())
}
