//! `node refresh`: an operator's order to give all stored keys fresh shares.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{NodeDir, approval_to_text, load_approval};
use polyclave_node::admin::{Instruction, order};

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "When the operators of all nodes have ordered it and all nodes run, the nodes make fresh common secrets and give every \
    stored key fresh shares. Keys stay the same. Shares from before, also in backups and on stolen disks, are of no use together with the \
    new ones. Make new backups afterwards: older ones cannot be used any more.\n\n\
    Under shamir and shamir-active keys are used all the while; only making and deleting keys has to wait. Under spdz-lt, spdz-tower and \
    tinytable-linear64 clients notice a pause. There it also ends a quarantine: a node is put under quarantine when a check fails, since \
    then some machine was altered or broken. Find out which and set it right first; only then order this.\n\n\
    A machine that was broken into has to be rebuilt, with a new certificate (node rotate), before this is ordered.\n\n\
    To have it ordered regularly, write `every_days = 30` under [refresh] in the node.toml of every node. For all nodes of one host: \
    polyclave cluster refresh DIR. The older spelling is node rotate DIR --secrets."
)]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    #[command(flatten)]
    order: Order,
}

/// What an operator may accept, and give with the order.
#[derive(clap::Args)]
pub struct Order {
    /// Refresh even though more checks have failed under the MAC keys in use than a node accepts (the node
    /// says so when the refresh is ordered). A cheater may then know enough of these keys to change stored
    /// keys while they are carried over. Take that risk only if the alternative is to lose the keys, and only
    /// after the machine that made checks fail was removed
    #[arg(long)]
    pub despite_failed_checks: bool,

    /// The approval of this refresh, if the node's rules want one (`polyclave approval request refresh`)
    #[arg(long, value_name = "FILE")]
    pub approval: Option<PathBuf>,
}

impl Order {
    /// The order, as the node takes it.
    pub fn instruction(&self) -> Result<Instruction> {
        let approval = self.approval.as_ref().map(|file| load_approval(file)).transpose()?;
        let approval = approval.map(|(approval, _)| approval_to_text(&approval));
        Ok(Instruction::Rotate { approval, despite_failures: self.despite_failed_checks })
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    order_at(&arguments.dir, &arguments.order)
}

/// Orders a refresh at one node, and says what happens next.
pub(super) fn order_at(path: &Path, what: &Order) -> Result<ExitCode> {
    let dir: NodeDir = super::open(path)?;
    order(&dir, &what.instruction()?)?;
    say!(
        "{} wants all keys to have fresh shares. The nodes make them when the operators of all nodes have ordered it and all nodes run.\n\
         See the progress: polyclave node status {}\n\
         Afterwards make a new backup of every node: older ones cannot be used any more.",
        dir.settings().name,
        path.display()
    );
    Ok(ExitCode::SUCCESS)
}
