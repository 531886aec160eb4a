//! Polyclave's command line: parse, call, print.

mod bench;
mod chart;
mod circuits;
mod client;
mod cluster;
mod crypt;
mod demo;
mod eval;
mod files;
mod fingerprint;
mod job;
mod key;
mod launch;
mod mac;
mod manual;
mod names;
mod node;
mod options;
mod output;
mod party;
mod protocols;
mod reproduce;
mod source;
mod stock;
mod stop;
mod workload;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Block ciphers under a key that nobody holds: several servers, each with one share of the key, encrypt and decrypt by
/// secure multi-party computation.
#[derive(Parser)]
#[command(name = "polyclave", version, arg_required_else_help = true, after_help = examples())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn examples() -> String {
    let ciphers: Vec<String> = polyclave_cipher::catalog::all().into_iter().map(|c| c.name).collect();
    format!(
        "Start with `polyclave demo`: five nodes make a key that nobody holds, and a client seals a file with it.\n\
         Then a cluster to try out:\n  \
         polyclave cluster new try && polyclave cluster run try\n  \
         export POLYCLAVE_CLIENT=try/client                  (in another terminal)\n  \
         polyclave key generate first\n  \
         polyclave encrypt --key first FILE FILE.sealed\n  \
         polyclave decrypt --key first FILE.sealed COPY\n\n\
         Protocols: cleartext (no protection, for comparison), shamir (3 to 9 parties, passive, honest majority), shamir-active \
         (4 to 9, fewer than a third may cheat), spdz-lt (2 \
         parties or more, active, all but one may cheat; slow, since the nodes make its material ahead).\n\
         Ciphers: {} (DES and Triple DES are legacy).",
        ciphers.join(", ")
    )
}

#[derive(Subcommand)]
enum Command {
    /// See it work: nodes on this machine make a key, data is encrypted and decrypted, a node is killed, and it explains.
    ///
    /// With shamir it seals and opens FILE (or a sample) with AES-128-GCM, under a key of which every node has one share. With
    /// spdz-lt it encrypts a short message, shows how the nodes make material ahead, what happens when it is used up, and when
    /// a node is gone. A file is only read; the nodes and all their files are gone at the end.
    Demo(demo::Options),
    /// Encrypt or decrypt blocks, run a circuit from a file, or check known answers, with all parties in this process.
    Eval(eval::Arguments),
    /// Measure a cipher with the parties as processes of their own over TLS.
    ///
    /// Measures preprocessing and online, apart and together, over several repeats. Inputs are public blocks and a shared
    /// key, outputs stay shared; some blocks are opened first, and a wrong output is an error. Rates are of the slowest
    /// party, bytes of the busiest.
    Bench(bench::Arguments),
    /// Run one node of a cluster, and everything its operator does.
    #[command(subcommand)]
    Node(node::Command),
    /// Define a cluster; or make and run one on this host, to try it out.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Set up a client of a cluster.
    #[command(subcommand)]
    Client(client::Command),
    /// Make, import, list and delete keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Encrypt a file.
    ///
    /// By default into a sealed file (AES-GCM in chunks), which cannot be altered, cut or reordered unnoticed. CTR, CBC and
    /// ECB, which need --raw, authenticate nothing.
    Encrypt(crypt::EncryptArguments),
    /// Decrypt a file.
    Decrypt(crypt::DecryptArguments),
    /// Compute or verify a message authentication code (CMAC).
    Mac(mac::Arguments),
    /// Recompute the tables of a paper and print them beside the published ones.
    Reproduce(reproduce::Arguments),
    /// A party process of `bench`.
    #[command(hide = true)]
    Party,
    /// Write manual pages.
    #[command(hide = true)]
    Manual(manual::ManualArguments),
    /// Print what a shell completes.
    #[command(hide = true)]
    Completions(manual::CompletionArguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Node(command) => node::run(&command),
        Command::Cluster(command) => cluster::run(&command),
        Command::Client(command) => client::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Encrypt(arguments) => crypt::encrypt(&arguments),
        Command::Decrypt(arguments) => crypt::decrypt(&arguments),
        Command::Mac(arguments) => mac::run(&arguments),
        Command::Party => party::run(),
        Command::Manual(arguments) => manual::pages(&arguments, Arguments::command()),
        Command::Completions(arguments) => manual::completions(&arguments, Arguments::command()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
