//! `node policy`: tries, lists and replaces the rules for clients.

mod approval;
mod check;
mod list;
mod set;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Subcommand;
use polyclave_config::{ClientPolicy, NodeOperation};

/// The subcommands for rules.
#[derive(Subcommand)]
pub enum Command {
    /// Say whether the rules allow something, and by which of them; nothing is done
    Check(check::Arguments),
    /// List who may do what
    List(list::Arguments),
    /// Let somebody approve operations
    Approver(approval::ApproverArguments),
    /// Let operations need the approval of several people
    Approval(approval::ApprovalArguments),
    /// Replace all rules with those of a file, if they are in order
    Set(set::Arguments),
}

/// Whose rules.
#[derive(clap::Args)]
struct Source {
    /// The node's directory
    #[arg(required_unless_present = "file")]
    dir: Option<PathBuf>,

    /// A file with rules that is not in use yet, in the place of the node's
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Source {
    fn load(&self) -> Result<ClientPolicy> {
        match (&self.file, &self.dir) {
            (Some(file), _) => Ok(ClientPolicy::load(file)?),
            (None, dir) => {
                ensure!(dir.is_some(), "give the node's directory, or a file with --file");
                Ok(super::open(dir.as_deref().unwrap_or(".".as_ref()))?.policy()?)
            }
        }
    }
}

/// Refuses to change rules that want approval for that.
pub fn refuse_unapproved(policy: &ClientPolicy) -> Result<()> {
    if let Some(rule) = policy.approvals_for_node(NodeOperation::Policy).first() {
        bail!(
            "a change of these rules needs approval: {} (approval {}); nothing was changed. Write the new rules to a file, and then: polyclave \
             approval request policy FILE --node DIR --out OUT; polyclave approval sign OUT; polyclave node policy set DIR FILE --approval OUT",
            rule.message(),
            rule.name
        );
    }
    Ok(())
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => check::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Approver(arguments) => approval::approver(arguments),
        Command::Approval(arguments) => approval::approval(arguments),
        Command::Set(arguments) => set::run(arguments),
    }
}
