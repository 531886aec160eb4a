//! `node reshare`: one node's part in moving all keys to another set of nodes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use polyclave_config::{Cluster, load_approval};
use polyclave_node::reshare::{self, Done};

use super::passphrase;
use crate::fingerprint;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node reshare /var/lib/polyclave reshare.toml --expect 'acorn zigzag ..'\n  \
    polyclave node reshare /var/lib/polyclave reshare.toml --from cluster.toml --expect 'acorn zigzag ..'     (a new node)\n\n\
    All keys move from the nodes of one cluster to those of another: to replace a lost node, to add and remove nodes, to change the \
    threshold or the protocol. `polyclave cluster reshape` makes the file. The node must not be running. Each operator runs this at their node, old nodes \
    and new ones, at the same time; it waits for the others. Keys, names, ids and files that were sealed stay what they are.\n\n\
    Nothing changes before all nodes have verified and stored the new shares. If it is interrupted at any node, run the same command \
    again at all nodes: it goes on, or begins anew. Until it is done, the nodes that take part serve nothing.\n\n\
    Afterwards: run the new nodes; give clients the file (client join --expect); allow clients at new nodes (node allow); make new \
    backups and destroy the old ones. A node that leaves has destroyed its shares. Destroy the disk of a lost node if it is found.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// The file that `cluster reshape` has made
    cluster: Option<PathBuf>,

    /// The fingerprint that the file must have, as its makers told you: 64 hexadecimal digits or 16 words
    #[arg(long, value_name = "FINGERPRINT", required_unless_present = "abandon")]
    expect: Option<String>,

    /// The old cluster's file, at a new node
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// The approval of this reshare, if the node's rules want one (`polyclave approval request reshare`)
    #[arg(long, value_name = "FILE")]
    approval: Option<PathBuf>,

    /// Seconds to wait for the other nodes
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,

    /// Read the passphrase of a sealed secret from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,

    /// Give up a reshare that this node has prepared, so that it can run as before. Only if it is certain
    /// that no node is done with it: otherwise two sets of nodes could use the keys
    #[arg(long, conflicts_with_all = ["cluster", "expect", "from"])]
    abandon: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if let Some(file) = &arguments.passphrase_file {
        dir.ask_passphrase(passphrase::from_file(file));
    }
    let (name, path) = (dir.settings().name.clone(), arguments.dir.display());
    if arguments.abandon {
        reshare::abandon(&dir)?;
        say!("{name} has given the reshare up, and can run as before");
        return Ok(ExitCode::SUCCESS);
    }
    let (Some(file), Some(expected)) = (&arguments.cluster, &arguments.expect) else {
        bail!("give the file that `cluster reshape` has made");
    };
    let new = Cluster::load(file)?;
    new.fingerprint().check(expected).with_context(|| format!("{} is refused", file.display()))?;
    let from = arguments.from.as_ref().map(|path| Cluster::load(path)).transpose()?;
    fingerprint::show(&new);
    let wait = Duration::from_secs(arguments.wait);
    let approval = arguments.approval.as_ref().map(|file| load_approval(file)).transpose()?;
    let approval = approval.as_ref().map(|(approval, _)| approval);
    let Done { left, keys, all } =
        reshare::reshare(&dir, &new, from.as_ref(), approval, wait, &mut |message| say!("{name} {message}"))?;
    match left {
        true => say!("{name} has left the cluster: it has handed its keys over, and destroyed its shares"),
        false => say!("{name} is a node of the new cluster, with {keys} keys"),
    }
    if !all {
        say!(
            "Not all other nodes have said that they are done. If one was interrupted, run the same command again, there and here: that \
             completes it"
        );
    }
    if !left {
        say!("Next:\n  polyclave node run {path}\nMake a new backup: older ones cannot be used any more.");
    }
    Ok(ExitCode::SUCCESS)
}
