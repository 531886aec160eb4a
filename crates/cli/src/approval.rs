//! `polyclave approval`: several people approve an operation, each with a key of their own.

mod request;
mod show;
mod sign;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The subcommands for approvals.
#[derive(Subcommand)]
pub enum Command {
    /// Write a request for approval
    Request(request::Arguments),
    /// Say in words what a request is for, and who has signed it
    Show(show::Arguments),
    /// Show a request and sign it
    Sign(sign::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Request(arguments) => request::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Sign(arguments) => sign::run(arguments),
    }
}
