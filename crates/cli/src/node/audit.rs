//! `node audit`: the log of who did what.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use polyclave_node::admin::{Answer, Order, order, renew_audit};
use polyclave_node::audit::verify;
use serde_json::Value;

use crate::say;

/// What can be done with the log.
#[derive(Subcommand)]
pub enum Command {
    /// Check that no line was changed, removed, moved or inserted
    ///
    /// Every line has the hash of the one before, and the store knows the last. Ends with 1 and says in which line it was if the
    /// log was tampered with.
    Verify {
        /// The node's directory
        dir: PathBuf,
    },
    /// Set a damaged log aside and begin a new one
    ///
    /// A node does not start over a log that was tampered with or is lost. When you have seen what there is to see, this lets it
    /// start again; the old log stays beside the new one. The node must not be running.
    Renew {
        /// The node's directory
        dir: PathBuf,
    },
    /// Print the log as a table
    Show {
        /// The node's directory
        dir: PathBuf,

        /// Print the lines as they are: JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Verify { dir } => check(dir),
        Command::Renew { dir } => renew(dir),
        Command::Show { dir, json } => show(dir, *json),
    }
}

fn check(dir: &Path) -> Result<ExitCode> {
    let dir = super::open(dir)?;
    let noted =
        match order(&dir, &Order::AuditHead).context("cannot learn from the store where the log ends")? {
            Some(Answer::AuditHead { head }) => head,
            _ => bail!("the node answered something else; is it of another version?"),
        };
    let found = verify(&dir.audit_path(), noted)?;
    let span = match (&found.first, &found.last) {
        (Some(first), Some(last)) => format!(", from {first} to {last}"),
        _ => String::new(),
    };
    say!("{} lines{span}: all are as they were written, none is missing", found.lines);
    say!("the last one is {}", hex::encode(found.head.1));
    Ok(ExitCode::SUCCESS)
}

fn renew(dir: &Path) -> Result<ExitCode> {
    let dir = super::open(dir)?;
    let name = &dir.settings().name;
    match renew_audit(&dir)? {
        Some(old) => say!("{name} begins a new audit log; the old one is {}", old.display()),
        None => say!("{name} begins a new audit log; there was none"),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(dir: &Path, json: bool) -> Result<ExitCode> {
    let path = super::open(dir)?.audit_path();
    let broken = || format!("cannot read {}", path.display());
    let log = BufReader::new(File::open(&path).with_context(broken)?);
    if !json {
        row(["time", "client", "operation", "key", "outcome", "blocks"].map(str::to_owned));
    }
    for line in log.lines() {
        let line = line.with_context(broken)?;
        match serde_json::from_str::<Value>(&line) {
            Ok(_) if json => say!("{line}"),
            Ok(line) => {
                let text = |field: &str| line[field].as_str().unwrap_or("?").escape_default().to_string();
                let blocks = line["blocks"].to_string();
                row([text("time"), text("client"), text("operation"), text("key"), text("outcome"), blocks]);
            }
            Err(_) => eprintln!("warning: a line that is none; run `polyclave node audit verify`"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row([time, client, operation, key, outcome, blocks]: [String; 6]) {
    say!("{time:20}  {client:16}  {operation:12}  {key:20}  {outcome:14}  {blocks:>10}");
}
