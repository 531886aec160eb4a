//! `polyclave gateway`: Vault's transit API, those of AWS Payment Cryptography and of external key stores of AWS
//! KMS, and a KMS for Kubernetes, over keys of the nodes.

mod access_key;
mod certificate;
mod check;
mod rewrap;
mod run;
mod token;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The subcommands for gateways.
#[derive(Subcommand)]
pub enum Command {
    /// Serve, in the foreground
    Run(run::Arguments),
    /// Make a token, and print it once, with the entry for gateway.toml, which has its hash only
    Token(token::Arguments),
    /// Make an access key for the APIs that clients of AWS ask, and print the entry for gateway.toml
    AccessKey(access_key::Arguments),
    /// Make a certificate and its key for a listener, if you have no authority that makes one
    Certificate(certificate::Arguments),
    /// Read gateway.toml, look for the files and keys that it names, and say what it means, without serving
    Check(check::Arguments),
    /// Have a gateway encrypt a file of ciphertexts, one a line, under the newest version of their key
    Rewrap(rewrap::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Token(arguments) => token::run(arguments),
        Command::AccessKey(arguments) => access_key::run(arguments),
        Command::Certificate(arguments) => certificate::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Rewrap(arguments) => rewrap::run(arguments),
    }
}
