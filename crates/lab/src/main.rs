//! The laboratory: evaluates ciphers and circuits under every protocol, measures them, reproduces the results
//! of papers, and runs nodes that cheat.
//!
//! In most commands one person runs all parties, so nothing is protected. `party` and `bench --hosts` run one
//! party each, on a machine of its own. The program that protects keys is `polyclave`, which contains none of
//! this.

mod bench;
mod chart;
mod cheating;
mod circuits;
mod eval;
mod hosts;
mod latency;
mod options;
mod party;
mod reproduce;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use polyclave_cli::{exit_code, say};

/// The laboratory of Polyclave: evaluate and measure block ciphers and circuits under every protocol of
/// secure multi-party computation, and compare them with the papers; also between machines. It stores no
/// keys: use `polyclave` for keys.
#[derive(Parser)]
#[command(name = "polyclave-lab", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Encrypt or decrypt blocks, run a circuit from a file, or check known answers, with all parties in this
    /// process.
    Eval(eval::Arguments),
    /// Measure a cipher with the parties as processes of their own over TLS.
    ///
    /// Measures preprocessing and online time, separately and together, over several repeats. Inputs are
    /// public blocks and a shared key, and outputs stay shared. Some blocks are opened first, and a wrong
    /// output is an error. Rates are those of the slowest party, bytes those of the busiest. With --hosts
    /// and --me this process is one of the parties, and the others run elsewhere; each prints the same
    /// summary.
    Bench(bench::Arguments),
    /// Run one party of an evaluation. The others run on other machines, each with its own input.
    ///
    /// For example, one party gives the key and another the message, and all learn the output. The parties
    /// know each other by the certificates of the hosts file, and compare what they are about to run before
    /// they use any input.
    Party(party::Arguments),
    /// Make the files by which parties on several machines know each other.
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Recompute the tables of a paper and print them beside the published ones.
    Reproduce(reproduce::Arguments),
    /// Draw how long requests take against the way between the nodes: runs of `polyclave cluster bench`.
    Latency(latency::Arguments),
    /// See how nodes serve while one of them cheats: `polyclave demo` with the option --cheat.
    Demo(cheating::DemoArguments),
    /// Run a node that cheats, for demonstrations.
    #[command(subcommand)]
    Node(cheating::NodeCommand),
    /// A party process of `bench`.
    #[command(hide = true)]
    BenchParty,
}

fn main() -> ExitCode {
    polyclave_protocol_lab::add_to_catalog();
    polyclave_protocol_lab::add_toy();
    let command = Arguments::parse().command;
    if let Err(wrong) = polyclave_kernels::self_test::run() {
        return exit_code(Err(wrong.into()));
    }
    exit_code(match command {
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Party(arguments) => party::run(&arguments),
        Command::Hosts(command) => hosts::run(&command),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Latency(arguments) => latency::run(&arguments),
        Command::Demo(arguments) => cheating::demo(&arguments),
        Command::Node(command) => cheating::node(&command),
        Command::BenchParty => bench::child::run(),
    })
}
