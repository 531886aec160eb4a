//! `polyclave node`: all commands for the operator of a node.

mod address;
mod allow;
mod audit;
mod authority;
mod backup;
pub mod features;
mod init;
mod join;
mod migrate;
mod passphrase;
mod policy;
mod readmit;
pub mod refresh;
mod reshare;
mod rotate;
pub mod run;
mod seal;
mod status;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use polyclave_config::NodeDir;

/// The subcommands for nodes.
#[derive(Subcommand)]
pub enum Command {
    /// Make the directory of a new node, with keys of its own, and print its card
    Init(init::Arguments),
    /// Give the node the file of its cluster, for the first time or after a change
    Join(join::Arguments),
    /// Give the node another address
    Address(address::Arguments),
    /// Let a client do something at this node
    Allow(allow::AllowArguments),
    /// Let an authority vouch for clients (SPIFFE, or an own one)
    #[command(subcommand)]
    Authority(authority::Command),
    /// Take all rights from a client at this node
    Revoke(allow::RevokeArguments),
    /// Try, list or replace the rules for clients
    #[command(subcommand)]
    Policy(policy::Command),
    /// Run the node until SIGINT or SIGTERM
    Run(run::Arguments),
    /// Show the status of the running node
    Status(status::Arguments),
    /// Give all stored keys fresh shares, once the operators of all nodes have ordered it
    Refresh(refresh::Arguments),
    /// Take part in moving all keys to another set of nodes: to replace a lost node, to add or remove some
    Reshare(reshare::Arguments),
    /// Change the node's identity (certificate), in two steps
    Rotate(rotate::Arguments),
    /// Show which features the nodes have, or switch one on
    Features(features::Arguments),
    /// Accept another node again that was restored from a backup
    Readmit(readmit::Arguments),
    /// Back up the whole node into one sealed file, whether or not it is running
    Backup(backup::BackupArguments),
    /// Make a node's directory from a backup
    Restore(backup::RestoreArguments),
    /// Move the node's store to a PostgreSQL server, or back into a file
    Migrate(migrate::Arguments),
    /// Add a worker: another machine that serves under the node's name, with the same store
    Worker(worker::Arguments),
    /// Seal the node's secret under a passphrase, or change the passphrase
    Seal(seal::SealArguments),
    /// Put the node's sealed secret into the clear again
    Unseal(seal::UnsealArguments),
    /// Check or show the log that records who did what
    #[command(subcommand)]
    Audit(audit::Command),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Init(arguments) => init::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
        Command::Worker(arguments) => worker::run(arguments),
        Command::Join(arguments) => join::run(arguments),
        Command::Address(arguments) => address::run(arguments),
        Command::Allow(arguments) => allow::allow(arguments),
        Command::Authority(command) => authority::run(command),
        Command::Revoke(arguments) => allow::revoke(arguments),
        Command::Policy(command) => policy::run(command),
        Command::Run(arguments) => run::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Refresh(arguments) => refresh::run(arguments),
        Command::Reshare(arguments) => reshare::run(arguments),
        Command::Rotate(arguments) => rotate::run(arguments),
        Command::Features(arguments) => features::run(arguments),
        Command::Readmit(arguments) => readmit::run(arguments),
        Command::Backup(arguments) => backup::backup(arguments),
        Command::Restore(arguments) => backup::restore(arguments),
        Command::Seal(arguments) => seal::seal(arguments),
        Command::Unseal(arguments) => seal::unseal(arguments),
        Command::Audit(command) => audit::run(command),
    }
}

/// The file with a node's card, which its operator gives to others.
pub(crate) fn card_path(dir: &Path) -> PathBuf {
    dir.join("card.toml")
}

pub(crate) fn open(dir: &Path) -> Result<NodeDir> {
    let mut dir = NodeDir::open(dir).context("this is no node's directory that can be used")?;
    dir.ask_passphrase(passphrase::from_terminal());
    Ok(dir)
}
