//! The laboratory: evaluates ciphers and circuits under every protocol, measures them, and reproduces what papers say.
//!
//! Here one person runs all parties, so nothing is protected. What protects keys is the program `polyclave`, which has none of this.

mod bench;
mod chart;
mod circuits;
mod eval;
mod job;
mod launch;
mod options;
mod party;
mod reproduce;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use polyclave_cli::{exit_code, say};

/// The laboratory of Polyclave: block ciphers and circuits under every protocol of secure multi-party computation, evaluated, measured
/// and compared with the papers. It protects nothing: for keys there is `polyclave`.
#[derive(Parser)]
#[command(name = "polyclave-lab", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Encrypt or decrypt blocks, run a circuit from a file, or check known answers, with all parties in this process.
    Eval(eval::Arguments),
    /// Measure a cipher with the parties as processes of their own over TLS.
    ///
    /// Measures preprocessing and online, apart and together, over several repeats. Inputs are public blocks and a shared
    /// key, outputs stay shared; some blocks are opened first, and a wrong output is an error. Rates are of the slowest
    /// party, bytes of the busiest.
    Bench(bench::Arguments),
    /// Recompute the tables of a paper and print them beside the published ones.
    Reproduce(reproduce::Arguments),
    /// A party process of `bench`.
    #[command(hide = true)]
    BenchParty,
}

fn main() -> ExitCode {
    exit_code(match Arguments::parse().command {
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::BenchParty => party::run(),
    })
}
