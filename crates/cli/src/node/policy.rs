//! `node policy`: tries, lists and replaces the rules for clients.

mod check;
mod list;
mod set;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Subcommand;
use polyclave_config::ClientPolicy;

/// The subcommands for rules.
#[derive(Subcommand)]
pub enum Command {
    /// Say whether the rules allow something, and by which of them; nothing is done
    Check(check::Arguments),
    /// List who may do what
    List(list::Arguments),
    /// Replace all rules with those of a file, if they are in order
    Set(set::Arguments),
}

/// Whose rules.
#[derive(clap::Args)]
struct Source {
    /// The node's directory
    #[arg(required_unless_present = "file")]
    dir: Option<PathBuf>,

    /// A file with rules that is not in use yet, in the place of the node's
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Source {
    fn load(&self) -> Result<ClientPolicy> {
        match (&self.file, &self.dir) {
            (Some(file), _) => Ok(ClientPolicy::load(file)?),
            (None, dir) => {
                ensure!(dir.is_some(), "give the node's directory, or a file with --file");
                Ok(super::open(dir.as_deref().unwrap_or(".".as_ref()))?.policy()?)
            }
        }
    }
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => check::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Set(arguments) => set::run(arguments),
    }
}
