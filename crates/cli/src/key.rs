//! `polyclave key`: the keys of a cluster.

mod check;
mod combine;
mod configure;
mod copy;
mod delete;
mod derive;
mod describe;
mod generate;
mod import;
mod kcv;
mod kdf;
mod list;
mod made;
mod retire;
mod rotate;
mod sealed;
mod unwrap;
mod wrap;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use polyclave_api::VersionState;

pub use made::{date, standing, warn};

/// The subcommands for keys.
#[derive(Subcommand)]
pub enum Command {
    /// Make a key that no single machine knows; all nodes take part
    Generate(generate::Arguments),
    /// Import a key that exists already; all nodes take part
    Import(import::Arguments),
    /// Seal a key to the nodes of a cluster, on a machine without a network
    SealImport(sealed::SealArguments),
    /// Import a key that was sealed to the nodes; all nodes take part
    ImportSealed(sealed::ImportArguments),
    /// Make a key of the components that several people gave; all nodes take part
    Combine(combine::Arguments),
    /// Put a key under a second name, for the same or less; all nodes take part
    Copy(copy::Arguments),
    /// Derive a key from another one of the nodes; all nodes take part
    Derive(derive::Arguments),
    /// Have bytes derived from a key, which only this client learns
    Kdf(kdf::Arguments),
    /// Wrap a key under another one of the nodes, to take it elsewhere
    Wrap(wrap::Arguments),
    /// Unwrap a key into a key of the nodes; all nodes take part
    Unwrap(unwrap::Arguments),
    /// List the keys that this client may see
    List(list::ListArguments),
    /// Show one key
    Show(list::ShowArguments),
    /// Have the check values of a key computed anew from the shares of the nodes
    Check(check::Arguments),
    /// Make the next version of a key, which becomes the current one; all nodes take part
    Rotate(rotate::Arguments),
    /// Let a version of a key only decrypt, verify and unwrap from now on
    Deactivate(retire::Arguments),
    /// Say that somebody may know a version of a key; it computes nothing more
    Compromise(retire::Arguments),
    /// Set the oldest version of a key that computes, and whether it may be deleted
    Configure(configure::Arguments),
    /// Change the label of a version of a key
    Describe(describe::Arguments),
    /// Delete a key, or an old version of it, at all nodes, permanently
    Delete(delete::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Generate(arguments) => generate::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::SealImport(arguments) => sealed::seal(arguments),
        Command::ImportSealed(arguments) => sealed::import(arguments),
        Command::Combine(arguments) => combine::run(arguments),
        Command::Copy(arguments) => copy::run(arguments),
        Command::Derive(arguments) => derive::run(arguments),
        Command::Kdf(arguments) => kdf::run(arguments),
        Command::Wrap(arguments) => wrap::run(arguments),
        Command::Unwrap(arguments) => unwrap::run(arguments),
        Command::List(arguments) => list::list(arguments),
        Command::Show(arguments) => list::show(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Rotate(arguments) => rotate::run(arguments),
        Command::Deactivate(arguments) => retire::run(arguments, VersionState::Deactivated),
        Command::Compromise(arguments) => retire::run(arguments, VersionState::Compromised),
        Command::Configure(arguments) => configure::run(arguments),
        Command::Describe(arguments) => describe::run(arguments),
        Command::Delete(arguments) => delete::run(arguments),
    }
}
