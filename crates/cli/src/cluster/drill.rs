//! `cluster drill`: restores backups into a cluster that cannot meet the real one, and proves every key.
//!
//! In the main way shares never gather: each operator restores the backup of one node on a machine of their
//! own ([`restore`], [`join`]). `gather` does all of it on one machine, which then holds what the project
//! keeps apart.
//!
//! A node of a drill has the store of its backup and a certificate of its own. The real nodes do not know
//! that certificate, and the file of the drill names no address and no certificate of them. So neither side
//! can make a connection to the other that TLS would accept.

mod check;
mod define;
mod gather;
mod join;
mod loss;
mod part;
mod proof;
mod restore;
mod scratch;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The steps of a drill.
#[derive(Subcommand)]
pub enum Command {
    /// Restore the backup of one node on a machine of its operator, as a node of a drill
    Restore(restore::Arguments),
    /// Make the file of the drill's cluster, and its client, from the cards of the restored nodes
    Define(define::Arguments),
    /// Let a restored node take part in a drill
    Join(join::Arguments),
    /// Prove every key of the drill's cluster by its check value
    Check(check::Arguments),
    /// Do all of it on this machine. DANGEROUS: whoever can read this machine then knows all keys
    Gather(gather::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Restore(arguments) => restore::run(arguments),
        Command::Define(arguments) => define::run(arguments),
        Command::Join(arguments) => join::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Gather(arguments) => gather::run(arguments),
    }
}
