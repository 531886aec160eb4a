//! `node policy set`: replaces all rules with those of a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::load_approval;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave node policy check --file new.toml --client alice --right encrypt --mode gcm --key payroll\n  \
    polyclave node policy set DIR new.toml\n\n\
    A file that is not in order is refused, and the rules stay as they are. The running node takes the new ones within a second, and its \
    audit log says what changed. Whoever edits DIR/clients.toml in place does the same, but learns only from the node's log whether the file \
    is in order; until it is, the node keeps the rules that it has.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// The file with the new rules
    file: PathBuf,

    /// The approval of these rules, if those in force want one
    #[arg(long, value_name = "FILE")]
    approval: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::super::open(&arguments.dir)?;
    let approval = arguments.approval.as_ref().map(|file| load_approval(file)).transpose()?;
    let approval = approval.as_ref().map(|(approval, _)| approval);
    if approval.is_none() {
        super::refuse_unapproved(&dir.policy()?)?;
    }
    let policy = dir.replace_policy(&arguments.file, approval)?;
    let (clients, groups, rules) = (policy.clients().len(), policy.groups().len(), policy.rules().len());
    let node = &dir.settings().name;
    let if_approved = if approval.is_some() { ", if they are approved: its log says why if not" } else { "" };
    say!(
        "{node} has new rules for clients: {clients} clients, {groups} groups, {rules} rules; a running node takes them within a second{if_approved}"
    );
    Ok(ExitCode::SUCCESS)
}
