//! `polyclave client`: a client's own keys, and its cluster.

mod init;
mod join;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Subcommand;
use polyclave_client::{Client, Error};
use polyclave_config::ClientDir;
use polyclave_protocol::Party;

use crate::files::show_work;

/// What can be done with a client.
#[derive(Subcommand)]
pub enum Command {
    /// Make the directory of a new client, with keys of its own, and print its card
    Init(init::Arguments),
    /// Give the client the file of its cluster, for the first time or after a change
    Join(join::Arguments),
    /// Ask every node how it is
    Status(status::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Init(arguments) => init::run(arguments),
        Command::Join(arguments) => join::run(arguments),
        Command::Status(arguments) => status::run(arguments),
    }
}

/// Which client asks.
#[derive(clap::Args)]
pub struct ClientOption {
    /// The client's directory
    #[arg(long = "client", value_name = "DIR", env = "POLYCLAVE_CLIENT")]
    dir: PathBuf,
}

impl ClientOption {
    /// The client of that directory.
    pub fn open(&self) -> Result<Client> {
        let client = Client::open(&open(&self.dir)?)?;
        Ok(client.on_remark(|remark| eprintln!("warning: {remark}")).on_work(show_work))
    }
}

/// Nodes may need a moment to notice who is gone, or back.
const BETWEEN: Duration = Duration::from_millis(300);

/// Does something, and again if it failed for a node's sake while others can serve: every time without those that are suspected
/// since. Only what can be begun anew, as `again` tells after a failure.
pub fn persist<T>(
    client: &Client,
    again: impl Fn() -> bool,
    mut work: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut left = if client.spare_nodes() > 0 { client.cluster().nodes() } else { 0 };
    loop {
        match work() {
            Err(e) if left > 0 && e.downcast_ref().is_some_and(Error::may_be_repeated) && again() => {
                eprintln!("note: {e}. It is asked again");
                std::thread::sleep(BETWEEN);
                left -= 1;
            }
            outcome => return outcome,
        }
    }
}

/// What is wrong with a node, with its name once.
pub fn of_node(client: &Client, node: Party, error: &Error) -> String {
    let (name, told) = (client.node_name(node), error.to_string());
    if told.contains(name) { told } else { format!("{name}: {told}") }
}

fn open(dir: &Path) -> Result<ClientDir> {
    ClientDir::open(dir).context("this is no client's directory that can be used")
}
