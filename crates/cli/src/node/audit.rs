//! `node audit`: the log that records who did what.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use polyclave_node::admin::{Answer, Instruction, order, renew_audit};
use polyclave_node::audit::{Gap, Verified, open_files, verify};
use serde_json::Value;

use crate::say;

/// Exit status of `verify` if nothing was tampered with and some events have no line.
const INCOMPLETE: u8 = 3;

/// What can be done with the log.
#[derive(Subcommand)]
pub enum Command {
    /// Check that no line was changed, removed, moved or inserted
    ///
    /// Every line contains the hash of the line before, over all files of the log, and the store knows the
    /// last line. If the log was tampered with, the command names the line and exits with status 1. If
    /// nothing was tampered with, but some events have no line because none could be written, it exits with
    /// status 3.
    Verify {
        /// The node's directory
        dir: PathBuf,
    },
    /// Set a damaged log aside and begin a new one
    ///
    /// A node does not start with a log that was tampered with or is lost. After you have examined it, this
    /// command lets the node start again. The old log stays beside the new one. The node must not be running.
    Renew {
        /// The node's directory
        dir: PathBuf,
    },
    /// Print the log as a table
    Show {
        /// The node's directory
        dir: PathBuf,

        /// Print the lines as they are stored: JSON
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
    let (noted, lasting) = match order(&dir, &Instruction::AuditHead)
        .context("cannot learn from the store where the log ends")?
    {
        Some(Answer::AuditHead { head, gap }) => (head, gap),
        _ => bail!("the node answered something else; is it of another version?"),
    };
    let found = verify(&dir.audit_path(), noted)?;
    let span = match (&found.first, &found.last) {
        (Some(first), Some(last)) => format!(", from {first} to {last}"),
        _ => String::new(),
    };
    let (lines, files) = (found.lines, found.files);
    let complete = found.gaps.is_empty() && lasting.is_none();
    let missing = if complete { "none is missing" } else { "but some could not be written" };
    say!("{lines} lines in {files} file(s){span}: all are as they were written, {missing}");
    say!("the last one is {}", hex::encode(found.head.1));
    tell_more(&found, lasting.as_ref());
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

fn tell_more(found: &Verified, lasting: Option<&Gap>) {
    let ended = found.gaps.iter().map(|(gap, until)| (gap, format!("to {until}")));
    for (gap, until) in ended.chain(lasting.map(|gap| (gap, "until now".to_owned()))) {
        say!(
            "from {} {until} nothing could be written: {} events have no line; {} requests were served nevertheless",
            gap.since,
            gap.events,
            gap.served
        );
    }
    if found.discarded > 0 {
        say!(
            "lines 1 to {} are not here: the node keeps no more files (keep_files), or was restored from a backup",
            found.discarded
        );
    }
    if found.unended > 0 {
        say!(
            "{} requests have begun and have no line about their end: they still run, the node was killed, or no line could be written",
            found.unended
        );
    }
    if found.kills > 0 {
        say!(
            "{} times the node was not stopped in order: if its machine lost power, lines of the last second before may be missing",
            found.kills
        );
    }
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
    if !json {
        row(["time", "client", "operation", "key", "outcome", "blocks", "more"].map(str::to_owned));
    }
    for (_, file) in open_files(&path).with_context(broken)? {
        for line in BufReader::new(file).lines() {
            tell_line(&line.with_context(broken)?, json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_line(line: &str, json: bool) {
    match serde_json::from_str::<Value>(line) {
        Ok(_) if json => say!("{line}"),
        Ok(line) => {
            let text = |field: &str| line[field].as_str().unwrap_or("?").escape_default().to_string();
            let fields = ["time", "client", "operation", "key", "outcome", "blocks", "detail"];
            row(fields.map(|field| if field == "blocks" { line[field].to_string() } else { text(field) }));
        }
        Err(_) => eprintln!("warning: a line is malformed; run `polyclave node audit verify`"),
    }
}

fn row([time, client, operation, key, outcome, blocks, more]: [String; 7]) {
    let row = format!("{time:20}  {client:16}  {operation:12}  {key:20}  {outcome:14}  {blocks:>10}  {more}");
    say!("{}", row.trim_end());
}
