//! `polyclave client`: a client's own keys, and its cluster.

mod init;
mod join;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use polyclave_client::{Client, Error};
use polyclave_config::ClientDir;

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
        Ok(client.on_remark(|remark| eprintln!("note: {remark}")))
    }
}

/// Does something, and again if nodes that correct each other did not agree in the middle of it: every time without those that
/// are suspected since. Only what can be begun anew, `whole`.
pub fn persist<T>(client: &Client, whole: bool, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut left = if whole && client.asks_again() { client.cluster().nodes() } else { 0 };
    loop {
        match work() {
            Err(e) if left > 0 && matches!(e.downcast_ref(), Some(Error::Contested(_))) => {
                eprintln!("note: {e}. It is asked again");
                left -= 1;
            }
            outcome => return outcome,
        }
    }
}

fn open(dir: &Path) -> Result<ClientDir> {
    ClientDir::open(dir).context("this is no client's directory that can be used")
}
