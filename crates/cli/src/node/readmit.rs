//! `node readmit`: accepts another node again that was restored from a backup.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_node::admin::{Instruction, order};

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "A node that was restored from a backup, or put back to an old copy of its disk, has forgotten what was spent of \
    budgets and which keys were made and deleted since. So its peers refuse it until their operators, each at his own node, readmit it. Do this only when you know \
    that it was restored, and that the node from before will never run again."
)]
pub struct Arguments {
    /// The directory of the node that accepts the other one
    dir: PathBuf,

    /// The name of the node to accept
    node: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    order(&dir, &Instruction::Readmit { node: arguments.node.clone() })?;
    say!("{} lets {} in again; do the same at the other nodes", dir.settings().name, arguments.node);
    Ok(ExitCode::SUCCESS)
}
