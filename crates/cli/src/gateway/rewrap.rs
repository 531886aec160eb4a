//! `gateway rewrap`: a file of ciphertexts of Vault's API, one a line, under the newest version of their key.

mod lines;
mod partial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use indicatif::ProgressBar;
use polyclave_config::private;
use polyclave_gateway::{NotRewrapped, RewrapBatch, Rewrapped};
use serde_json::json;
use zeroize::Zeroizing;

use crate::files::{Source, progress};
use crate::say;
use lines::{Line, Lines};
use partial::Partial;

/// Seconds before a batch is asked for again.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// More lines that fail end the command: then something else is wrong.
const MAX_FAILED: usize = 10_000;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave gateway rewrap --key orders old.txt new.txt\n  \
    polyclave gateway rewrap --key orders --resume old.txt new.txt\n\n\
    The input has one ciphertext of Vault's transit API a line (vault:v1:..), and the output has as many lines in the same order. A line that \
    fails stays as it is, is reported with its number, and the rest goes on; the command fails at its end then. The gateway is asked for a batch \
    at a time, so this also works with another server that has Vault's API. Until it is complete, the output is in OUT.partial. If the command \
    is interrupted, run it again with --resume and the same input: what is done is not done again. The token needs the right rewrap for the key.")]
pub struct Arguments {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    /// The gateway
    #[arg(long, value_name = "URL", env = "VAULT_ADDR")]
    address: String,

    /// The file with the token [default: the token is in the variable VAULT_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The authorities (PEM) of which one knows the gateway's certificate
    #[arg(long, value_name = "FILE", env = "VAULT_CACERT")]
    ca: Option<PathBuf>,

    /// The context of all ciphertexts, for a derived key, in base64
    #[arg(long, value_name = "BASE64")]
    context: Option<String>,

    /// The associated data of all ciphertexts, in base64
    #[arg(long, value_name = "BASE64")]
    associated_data: Option<String>,

    /// How many lines are asked for at a time
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    batch: u32,

    /// Go on where an interrupted run stopped
    #[arg(long, conflicts_with = "force")]
    resume: bool,

    /// Replace OUT if it exists, and begin anew if an interrupted run is there
    #[arg(long)]
    force: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The ciphertexts, one a line; - for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file with the new ciphertexts
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { key, resume, force, json, input, output, .. } = arguments;
    let gateway = arguments.gateway()?;
    let mut partial = Partial::open(output, (*resume, *force))?;
    let input = Source::new(input).open()?;
    let bar = progress(input.len());
    let mut lines = Lines::new(input);
    let done = lines.skip(partial.done())?;
    ensure!(
        done == partial.digest(),
        "the input does not begin with the {} lines that the interrupted run has done; give the same input, or --force to begin anew",
        partial.done()
    );
    bar.inc(lines.bytes());
    loop {
        let before = lines.bytes();
        let batch = lines.next_batch(arguments.batch as usize)?;
        if batch.is_empty() {
            break;
        }
        let anew = arguments.rewrap(&gateway, &batch, &bar).with_context(|| {
            format!("{} lines are done, and --resume goes on behind them", partial.done())
        })?;
        for (number, error) in partial.add(&batch, anew, lines.digest())? {
            bar.suspend(|| eprintln!("line {number}: {error}"));
        }
        ensure!(
            partial.failed().len() <= MAX_FAILED,
            "more than {MAX_FAILED} lines failed; {} lines are done. Is {key} their key?",
            partial.done()
        );
        bar.inc(lines.bytes() - before);
    }
    bar.finish_and_clear();
    let (all, rewrapped, failed) = (partial.done(), partial.rewrapped(), partial.failed().to_vec());
    partial.finish()?;
    if *json {
        let failed: Vec<_> =
            failed.iter().map(|(line, error)| json!({ "line": line, "error": error })).collect();
        say!("{}", json!({ "key": key, "lines": all, "rewrapped": rewrapped, "failed": failed }));
    } else {
        say!("{}: {rewrapped} of {all} lines are under the newest version of {key}", output.display());
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let shown: Vec<String> = failed.iter().take(20).map(|(line, _)| line.to_string()).collect();
    let more = if failed.len() > shown.len() { " .." } else { "" };
    bail!("{} lines failed and stayed as they were: {}{more}", failed.len(), shown.join(", "))
}

impl Arguments {
    fn gateway(&self) -> Result<RewrapBatch> {
        let token = match &self.token_file {
            Some(file) => Zeroizing::new(String::from_utf8_lossy(&private::read(file)?).trim().to_owned()),
            None => Zeroizing::new(
                std::env::var("VAULT_TOKEN")
                    .context("there is no token: name its file with --token-file, or set VAULT_TOKEN")?,
            ),
        };
        let broken = |file: &PathBuf| format!("cannot read {}", file.display());
        let ca =
            self.ca.as_ref().map(|file| std::fs::read(file).with_context(|| broken(file))).transpose()?;
        let gateway = RewrapBatch::new(&self.address, ca.as_deref(), (&token, &self.key));
        let gateway = gateway.map_err(|why| match &self.ca {
            Some(_) => anyhow!("{why}"),
            None => anyhow!("{why} (--ca, or the variable VAULT_CACERT)"),
        })?;
        Ok(gateway.bound_to(self.context.clone(), self.associated_data.clone()))
    }

    /// New ciphertexts for a batch. If the gateway or its nodes are not there, it is asked again for a while.
    fn rewrap(&self, gateway: &RewrapBatch, batch: &[Line], bar: &ProgressBar) -> Result<Vec<Rewrapped>> {
        let asked: Vec<&str> = batch.iter().filter_map(Line::ciphertext).collect();
        let mut pauses = PAUSES.iter();
        loop {
            let anew = match asked.is_empty() {
                true => Ok(Vec::new()),
                false => gateway.rewrap(&asked),
            };
            match (anew, pauses.next()) {
                (Ok(anew), _) => return Ok(anew),
                (Err(NotRewrapped::Later(why)), Some(pause)) => {
                    bar.suspend(|| eprintln!("note: {why}. Asking again in {pause} s"));
                    std::thread::sleep(Duration::from_secs(*pause));
                }
                (Err(why), _) => bail!("{why}"),
            }
        }
    }
}
