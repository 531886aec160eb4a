//! `polyclave client`: a client's own keys, and its cluster.

mod init;
mod join;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use polyclave_client::Client;
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
        Ok(Client::open(&open(&self.dir)?)?)
    }
}

fn open(dir: &Path) -> Result<ClientDir> {
    ClientDir::open(dir).context("this is no client's directory that can be used")
}
