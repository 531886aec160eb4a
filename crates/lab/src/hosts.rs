//! Sessions between machines: the files that all parties have, and how they meet.
//!
//! `hosts new` writes one public file, with every party's address and certificate, and one secret key for
//! each party. [`Place`] is a party's own view of them. [`Proposal`] is what the parties tell each other
//! before they run anything, so that an error can name a difference.

mod new;
mod place;
mod proposal;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

pub use place::{Place, PlaceArguments};
pub use proposal::{Agreed, Needed, Proposal, message_of, tell_all};

/// The subcommands for the files of parties.
#[derive(Subcommand)]
pub enum Command {
    /// Make the file of all parties, and a secret key for each
    New(new::Arguments),
}

/// Runs `polyclave-lab hosts`.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::New(arguments) => new::run(arguments),
    }
}

/// The name of a party's key file. `number` counts from 1.
fn key_file(number: usize) -> String {
    format!("party-{number}.key")
}
