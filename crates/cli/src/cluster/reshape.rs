//! `cluster reshape`: makes the file of a cluster that takes over the keys of another.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{Card, Change, Cluster};
use polyclave_node::reshare;

use super::list;
use crate::fingerprint;
use crate::protocols::adversary;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster reshape cluster.toml --lost beta --add delta.toml --out reshare.toml\n  \
    polyclave cluster reshape cluster.toml --add delta.toml --add epsilon.toml --threshold 2 --out reshare.toml\n  \
    polyclave cluster reshape cluster.toml --remove gamma --out reshare.toml\n  \
    polyclave cluster reshape cluster.toml --protocol shamir-active --add delta.toml --out reshare.toml\n\n\
    The file describes the new cluster, and names the old one with its fingerprint. Give it to all old nodes that are there, to all \
    new nodes and to all clients, and tell them its fingerprint over another way: who could replace it could have all keys moved to \
    machines of his own. Then every operator runs `polyclave node reshare`.")]
pub struct Arguments {
    /// The old cluster's file, as its nodes have it
    cluster: PathBuf,

    /// An old node that is gone, by its name: it takes no part. May be given several times
    #[arg(long, value_name = "NODE")]
    lost: Vec<String>,

    /// An old node that hands its shares over and leaves, by its name. May be given several times
    #[arg(long, value_name = "NODE")]
    remove: Vec<String>,

    /// The card of a new node. May be given several times
    #[arg(long, value_name = "CARD")]
    add: Vec<PathBuf>,

    /// How many nodes together learn nothing; as before if absent, as far as the protocol allows it
    #[arg(long, value_name = "T")]
    threshold: Option<usize>,

    /// The protocol of the new nodes; as before if absent
    #[arg(long, value_name = "P")]
    protocol: Option<String>,

    /// The file to write; it must not exist yet
    #[arg(long, value_name = "FILE", default_value = "reshare.toml")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let out = &arguments.out;
    if out.symlink_metadata().is_ok() {
        bail!("{} is there already; choose another name with --out", out.display());
    }
    let old = Cluster::load(&arguments.cluster)?;
    let change = Change {
        lost: arguments.lost.clone(),
        removed: arguments.remove.clone(),
        added: arguments.add.iter().map(|path| Card::load(path)).collect::<Result<_, _>>()?,
        threshold: arguments.threshold,
        protocol: arguments.protocol.as_ref().map(|protocol| protocol.to_ascii_lowercase()),
    };
    let new = old.reshaped(&change)?;
    let adversary = adversary(new.protocol(), new.nodes(), new.threshold())?;
    reshare::check(&old, &new)?;
    new.save(out)?;
    say!(
        "{} defines a cluster that takes over the keys of the one of {}",
        out.display(),
        fingerprint::names(&old)
    );
    fingerprint::show(&new);
    say!("{}: {adversary}", new.protocol());
    list(&new);
    say!("Next: stop the old nodes. Then each operator, at each old node that is there and each new one:");
    say!(
        "  polyclave node reshare DIR {} --expect FINGERPRINT      (a new node: also --from {})",
        out.display(),
        arguments.cluster.display()
    );
    Ok(ExitCode::SUCCESS)
}
