//! `dashboard`: the operator's page, on the loopback interface.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_gateway::Dashboard;

use crate::{say, stop};

/// How often the command checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave dashboard try/client                 # prints the address of the page; open it in a browser\n  \
    polyclave dashboard --port 9300                # the client of POLYCLAVE_CLIENT, always on the same port\n  \
    ssh -L 9300:127.0.0.1:9300 operator@machine    # to see it from another machine\n\n\
    The page shows nodes and who sees whom, what the protocol promises now, keys by state and budget, certificates, stock, requests, \
    refusals, faults and the ends of audit logs. It changes nothing, and nodes are asked only while somebody looks.\n\n\
    The client needs the right observe at each node (`polyclave node allow DIR CARD --rights observe,list --keys '*'`); what a node does not tell \
    is shown as not told. Right list is for the search.\n\n\
    The page is on 127.0.0.1 only. Its address ends with a token, drawn at each start: whoever has the address may look, until the command ends. A \
    gateway serves the same page for others at /ui, to tokens with the right observe. See docs/operate/dashboard.md.")]
pub struct Arguments {
    /// The client's directory
    #[arg(value_name = "CLIENT_DIR", env = "POLYCLAVE_CLIENT")]
    client: PathBuf,

    /// The port; one that is free if it is left out
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stopping = stop::on_signals()?;
    let client = Client::open(&ClientDir::open(&arguments.client)?)?;
    let dashboard = Dashboard::start(client, arguments.port).context("the page cannot be served")?;
    say!("the page is at {}", *dashboard.url());
    say!("whoever has this address may look; Ctrl-C ends it");
    while !stopping.load(Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(ExitCode::SUCCESS)
}
