//! The program: `polyclave-acvp --help` says what it takes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use polyclave_acvp::report::Report;
use polyclave_acvp::run::{Settings, response, run};
use polyclave_acvp::set::{Prompt, Response, read};
use polyclave_client::Client;
use polyclave_config::ClientDir;

/// Has nodes answer a vector set of NIST's ACVP. Keys of the tests are imported as session keys, and deleted.
/// It is no validation.
#[derive(Parser)]
#[command(name = "polyclave-acvp", version)]
struct Options {
    /// The set: the JSON that a validation server sends
    prompt: PathBuf,

    /// The directory of a client that may import, use and delete keys named acvp-*; take a cluster to try
    #[arg(long, value_name = "DIR", env = "POLYCLAVE_CLIENT")]
    client: PathBuf,

    /// Compares the answers with these
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,

    /// Writes the answers there, in the form that a server takes; tests without an answer are left out
    #[arg(long, value_name = "FILE")]
    response: Option<PathBuf>,

    /// Runs Monte Carlo tests of AES: 100,000 blocks each, one after the other
    #[arg(long)]
    monte_carlo: bool,

    /// How many tests are under way at the same time; nodes take 8 requests of a client at once, if nothing
    /// else is set
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    at_once: u16,
}

fn main() -> ExitCode {
    match work(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no answer was wrong or refused.
fn work(options: &Options) -> Result<bool> {
    let in_file = |path: &PathBuf| format!("in {}", path.display());
    let prompt = Prompt::parse(&read(&options.prompt)?).with_context(|| in_file(&options.prompt))?;
    let expected = match &options.expected {
        None => None,
        Some(path) => {
            let expected = Response::parse(&read(path)?).and_then(|expected| expected.by_test(&prompt));
            Some(expected.with_context(|| in_file(path))?)
        }
    };
    ensure!(
        options.expected.is_some() || options.response.is_some(),
        "give --expected FILE, --response FILE, or both: else the answers would be lost"
    );
    let client = Client::open(&ClientDir::open(&options.client)?)?;
    let settings = Settings { monte_carlo: options.monte_carlo, at_once: options.at_once.into() };
    let outcomes = run(&client, &prompt, expected.as_ref(), settings)?;
    if let Some(path) = &options.response {
        let text = serde_json::to_string_pretty(&response(&prompt, &outcomes))?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = Report { prompt: &prompt, outcomes: &outcomes };
    println!("{report}");
    Ok(report.is_good())
}
