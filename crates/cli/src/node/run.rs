//! `node run`: a node in the foreground.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use polyclave_config::{NodeDir, SecretPlace};
use polyclave_kernels::self_test::{self, WrongAnswer};
use polyclave_node::{Running, SAYS_NO_SECRETS};
use polyclave_protocol::Party;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::passphrase;
use crate::{say, stop};

/// How often the command checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often a worker looks whether the first ones have agreed on common secrets.
const RETRY: Duration = Duration::from_millis(500);
/// A node that could not serve for this long says what it waits for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node run /var/lib/polyclave\n  \
    polyclave node run /var/lib/polyclave --log warn,polyclave_node=debug\n\n\
    Prints one line when the node can serve, and logs to standard error, without secrets. SIGINT or SIGTERM ends it in order; a \
    second one at once.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// What to log: error, warn, info, debug or trace, or a list of levels for parts of the program
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,

    /// Read the passphrase of a sealed secret from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,

    /// Stop when standard input ends: for `cluster run`, whose nodes end with it
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    run_with(arguments, Running::start)
}

/// The same for a node that is started in another way: the laboratory's node may cheat.
pub fn run_with(
    arguments: &Arguments,
    start: impl FnMut(NodeDir) -> polyclave_protocol::Result<Running>,
) -> Result<ExitCode> {
    run_tested(self_test::run(), arguments, start)
}

/// The same after the self-test of the kernels.
fn run_tested(
    tested: Result<(), WrongAnswer>,
    arguments: &Arguments,
    mut start: impl FnMut(NodeDir) -> polyclave_protocol::Result<Running>,
) -> Result<ExitCode> {
    // Before any share is read: a processor that computes wrongly would store or send wrong shares.
    tested?;
    let filter: Targets = arguments.log.parse().with_context(|| {
        format!("--log {:?} is no level; write error, warn, info, debug or trace", arguments.log)
    })?;
    let stopping = stop::on_signals()?;
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(to_stderr).init();
    if arguments.until_input_ends {
        stop_with_input(stopping.clone());
    }
    let open = || {
        let mut dir = super::open(&arguments.dir)?;
        if let Some(file) = &arguments.passphrase_file {
            dir.ask_passphrase(passphrase::from_file(file));
        }
        anyhow::Ok(dir)
    };
    let dir = open()?;
    let name = match dir.settings().worker {
        0 => dir.settings().name.clone(),
        number => format!("{} (worker {number})", dir.settings().name),
    };
    if arguments.passphrase_file.is_some() && dir.secret_place()? == SecretPlace::Clear {
        say!(
            "node {name}: its secret is in the clear, and --passphrase-file protects nothing: `polyclave node seal` seals it"
        );
    }
    let cards = dir.cluster()?.map(|cluster| cluster.cards().to_vec()).unwrap_or_default();
    let mut message = String::new();
    let Some(mut node) = begin(&mut start, dir, &open, (&name, &mut message), &stopping)? else {
        return Ok(ExitCode::SUCCESS);
    };
    say!("node {name}: {}", node.adversary());
    let mut since = Instant::now();
    while !stopping.load(Relaxed) {
        if node.is_outdated() {
            node.stop();
            tell(&mut message, format!("node {name} starts again, under the fresh common secrets"));
            match begin(&mut start, open()?, &open, (&name, &mut message), &stopping)? {
                Some(again) => node = again,
                None => return Ok(ExitCode::SUCCESS),
            }
        }
        if node.is_ready() {
            tell(&mut message, format!("node {name} is ready"));
            since = Instant::now();
        } else if since.elapsed() > PATIENCE {
            let connected = node.status().connected;
            let missing = cards.iter().zip(Party::all(cards.len())).filter(|(_, p)| !connected.contains(*p));
            let missing: Vec<&str> = missing.map(|(card, _)| card.name.as_str()).collect();
            let status = node.status();
            let unlogged = node.stopped_by_audit().unwrap_or_default();
            let waits = match missing.is_empty() {
                _ if status.quarantined => {
                    format!("node {name} is under quarantine: see polyclave node status")
                }
                _ if !unlogged.is_empty() => format!("node {name} refuses requests: {unlogged}"),
                true => format!("node {name} prepares together with the others"),
                false => format!("node {name} waits for {}", missing.join(", ")),
            };
            tell(&mut message, waits);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    node.stop();
    Ok(ExitCode::SUCCESS)
}

/// Starts a node. A worker waits for the first ones to agree on common secrets. `None` if it is to stop
/// meanwhile.
fn begin(
    start: &mut impl FnMut(NodeDir) -> polyclave_protocol::Result<Running>,
    mut dir: NodeDir,
    open: &impl Fn() -> Result<NodeDir>,
    (name, message): (&str, &mut String),
    stopping: &AtomicBool,
) -> Result<Option<Running>> {
    loop {
        match start(dir) {
            Ok(node) => return Ok(Some(node)),
            Err(e) if e.to_string().contains(SAYS_NO_SECRETS) => {
                tell(message, format!("node {name} waits for the first workers of the nodes"));
            }
            Err(e) => return Err(e.into()),
        }
        std::thread::sleep(RETRY);
        if stopping.load(Relaxed) {
            return Ok(None);
        }
        dir = open()?;
    }
}

/// Prints a line, unless it was the last one printed.
fn tell(message: &mut String, text: String) {
    if *message != text {
        say!("{text}");
        *message = text;
    }
}

fn stop_with_input(stopping: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        // The end of standard input matters, not what arrives there.
        let _ = std::io::copy(&mut std::io::stdin().lock().take(u64::MAX), &mut std::io::sink());
        stopping.store(true, Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_computes_wrongly_stops_the_start() {
        let arguments = Arguments {
            dir: PathBuf::from("there is no such directory"),
            log: "info".into(),
            passphrase_file: None,
            until_input_ends: false,
        };
        let wrong = WrongAnswer { kernel: "gf128", portable: false };
        let error = run_tested(Err(wrong), &arguments, |_| panic!("the node was started")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("the self-test failed") && error.contains("gf128"), "{error}");
    }
}
