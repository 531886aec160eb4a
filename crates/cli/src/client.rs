//! `polyclave client`: a client's own keys, and the file of its cluster.

mod init;
mod join;
mod rotate;
mod seal;
mod status;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The subcommands for clients.
#[derive(Subcommand)]
pub enum Command {
    /// Make the directory of a new client, with keys of its own, and print its card
    Init(init::Arguments),
    /// Give the client the file of its cluster, for the first time or after a change
    Join(join::Arguments),
    /// Change the client's certificate, in two steps; it keeps its rights
    Rotate(rotate::Arguments),
    /// Ask every node for its status
    Status(status::Arguments),
    /// Seal the client's key under PINs, for programs of PKCS#11; only they can use it then
    Seal(seal::SealArguments),
    /// Put the client's key into the clear again
    Unseal(seal::UnsealArguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Init(arguments) => init::run(arguments),
        Command::Join(arguments) => join::run(arguments),
        Command::Rotate(arguments) => rotate::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Seal(arguments) => seal::seal(arguments),
        Command::Unseal(arguments) => seal::unseal(arguments),
    }
}
