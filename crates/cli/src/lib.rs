//! The commands of the program `polyclave`: parse, call, print.
//!
//! `main.rs` calls [`main`] and nothing else. The other public items are those that the laboratory
//! (`crates/lab`) shares with the product.

mod approval;
mod client;
mod client_option;
mod cluster;
mod crypt;
mod dashboard;
pub mod demo;
mod files;
mod fingerprint;
mod gateway;
mod key;
mod mac;
mod manual;
mod names;
pub mod node;
pub mod options;
mod otp;
pub mod output;
mod pay;
mod protocols;
mod random;
mod rewrap;
mod statement;
mod stock;
mod stop;
mod tokenize;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

/// Block ciphers under a key that no single machine knows: several servers, each with one share of the key,
/// encrypt and decrypt by secure multi-party computation.
#[derive(Parser)]
#[command(name = "polyclave", version = version(), arg_required_else_help = true, after_help = examples())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The version, and what is in this program that must not be shipped: cargo adds it where it builds the
/// program together with the laboratory or with tests.
fn version() -> String {
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    let for_tests = [
        (polyclave_node::HAS_CHEATS, "contains nodes that cheat"),
        (polyclave_protocol::versions::CAN_PRETEND, "can pretend to be of another release"),
    ];
    for (_, what) in for_tests.into_iter().filter(|(is_there, _)| *is_there) {
        version += &format!(", for tests: {what}");
    }
    version
}

fn examples() -> String {
    let ciphers = polyclave_cipher::keyed::names();
    format!(
        "Start with `polyclave demo`: five nodes make a key that nobody holds, and a client seals a file with it.\n\
         Then a cluster to try out:\n  \
         polyclave cluster new try && polyclave cluster run try\n  \
         export POLYCLAVE_CLIENT=try/client                  (in another terminal)\n  \
         polyclave key generate first\n  \
         polyclave encrypt --key first FILE FILE.sealed\n  \
         polyclave decrypt --key first FILE.sealed COPY\n\n\
         Protocols (see docs/security/model.md for what each promises):\n{}\n\
         Ciphers: {} (DES and Triple DES are legacy).",
        protocols::table(),
        ciphers.join(", ")
    )
}

#[derive(Subcommand)]
enum Command {
    /// See it work: nodes on this machine make a key, data is encrypted and decrypted, a node is killed, and
    /// the program explains.
    ///
    /// Under a passive protocol it seals and opens FILE (or a sample) with AES-128-GCM, under a key of which
    /// every node has one share. Under an active protocol it encrypts a short message, and shows how the
    /// nodes make material ahead, what happens when it is used up, and what happens when a node is gone. FILE
    /// is only read. The nodes and all their files are removed at the end.
    Demo(demo::Options),
    /// Run one node of a cluster, and do everything that its operator does.
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
    /// Have several people approve an operation.
    #[command(subcommand)]
    Approval(approval::Command),
    /// Encrypt a short ciphertext or a wrapped key under another key or version, without showing what is in
    /// it.
    Rewrap(rewrap::Arguments),
    /// Encrypt a file.
    ///
    /// By default the output is a sealed file (AES-GCM in chunks), in which changes, cuts and reordering are
    /// detected; under a key made for envelope it is a file that the client encrypts by itself under a key
    /// from the nodes. CTR, CBC and ECB, which need --raw, authenticate nothing.
    Encrypt(crypt::EncryptArguments),
    /// Decrypt a file.
    Decrypt(crypt::DecryptArguments),
    /// Compute or verify a message authentication code (CMAC, or HMAC with SHA-2).
    Mac(mac::Arguments),
    /// Compute or verify a one-time password (TOTP, HOTP) under a key for HMAC.
    Otp(otp::Arguments),
    /// Serve Vault's transit API, and a KMS for Kubernetes, to programs that do not know this one.
    #[command(subcommand)]
    Gateway(gateway::Command),
    /// Serve a page on this machine that shows how the nodes are.
    Dashboard(dashboard::Arguments),
    /// Exchange values for tokens of the same format (FF1).
    Tokenize(tokenize::Arguments),
    /// Exchange tokens for the values that they were made of.
    Detokenize(tokenize::Arguments),
    /// Compute payment commands: verify and translate PINs, compute values of cards, codes and card keys.
    Pay(pay::Arguments),
    /// Random bytes, to which all nodes contribute.
    Random(random::Arguments),
    /// Write manual pages.
    Manual(manual::ManualArguments),
    /// Print the completions for a shell.
    Completions(manual::CompletionArguments),
    /// Commands that moved to the laboratory. They print where they are.
    #[command(hide = true, name = "eval", aliases = ["bench", "reproduce"], disable_help_flag = true)]
    Laboratory {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// The arguments of this process. Ends it if they are wrong.
fn parsed() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|mut error| {
        let lacks = |name: &str| {
            let lacking = error.get(ContextKind::InvalidArg);
            matches!(lacking, Some(ContextValue::Strings(all)) if all.iter().any(|one| one.contains(name)))
        };
        if lacks("--client <DIR>") || lacks("<CLIENT_DIR>") {
            let tip = "or set the variable POLYCLAVE_CLIENT to the client's directory";
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        error.exit()
    })
}

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    exit_code(match parsed().command {
        Command::Demo(options) => demo::run(&options),
        Command::Node(command) => node::run(&command),
        Command::Cluster(command) => cluster::run(&command),
        Command::Client(command) => client::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Approval(command) => approval::run(&command),
        Command::Encrypt(arguments) => crypt::encrypt(&arguments),
        Command::Decrypt(arguments) => crypt::decrypt(&arguments),
        Command::Mac(arguments) => mac::run(&arguments),
        Command::Otp(arguments) => otp::run(&arguments),
        Command::Tokenize(arguments) => tokenize::run(&arguments, tokenize::Direction::ToTokens),
        Command::Detokenize(arguments) => tokenize::run(&arguments, tokenize::Direction::ToValues),
        Command::Pay(arguments) => pay::run(&arguments),
        Command::Random(arguments) => random::run(&arguments),
        Command::Gateway(command) => gateway::run(&command),
        Command::Dashboard(arguments) => dashboard::run(&arguments),
        Command::Rewrap(arguments) => rewrap::run(&arguments),
        Command::Manual(arguments) => manual::pages(&arguments, Arguments::command()),
        Command::Completions(arguments) => manual::completions(&arguments, Arguments::command()),
        Command::Laboratory { .. } => laboratory(),
    })
}

/// The exit status of a program. Prints an error, if there is one.
pub fn exit_code(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        if let Some(polyclave_client::Error::Drafted) = error.downcast_ref() {
            return ExitCode::SUCCESS;
        }
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn laboratory() -> Result<ExitCode> {
    bail!(
        "eval, bench and reproduce are commands of the program polyclave-lab, with the same options: in the repository \
         `cargo run --release -p polyclave-lab -- eval ...`"
    )
}
