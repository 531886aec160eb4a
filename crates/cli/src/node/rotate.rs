//! `node rotate`: a new certificate for a node, such that its peers know it at every moment; or fresh common secrets of all nodes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_node::admin::{Instruction, order};
use polyclave_transport::Identity;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "The node's identity:\n\
    1. polyclave node rotate DIR              makes the next certificate; card.toml has both\n\
    2. polyclave cluster update cluster.toml card.toml, and that file to all nodes (node join, then restart them one after \
    the other) and clients (client join)\n\
    3. polyclave node rotate DIR --finish     from its next start the node uses the next certificate alone\n\
    4. once more as 2, with the new card.toml: now nobody accepts the old certificate any more\n\n\
    The common secrets of all nodes, under protocols that are active with abort (see `polyclave --help`):\n\
    polyclave node rotate DIR --secrets       at every node, by its own operator\n\
    When all have ordered it and all nodes run, they make fresh MAC keys and carry every stored key over to them; keys stay the \
    same, and clients notice a short pause. It ends a quarantine: a node is put under quarantine when a check fails, since then \
    some machine was altered or broken. Find out which and set it right first; only then order this.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Use the next certificate from now on
    #[arg(long)]
    finish: bool,

    /// Make fresh common secrets with all nodes, once the operators of all of them have ordered it
    #[arg(long, conflicts_with_all = ["finish", "days"])]
    secrets: bool,

    /// With --secrets: rotate even though more checks have failed under the MAC keys in use than a node accepts (the node says so when the
    /// rotation is ordered). A cheater may then know enough of these keys to change stored keys while they are carried over. Take that risk
    /// only if the alternative is to lose the keys, and only after the machine that made checks fail was removed
    #[arg(long, requires = "secrets")]
    despite_failed_checks: bool,

    /// Days for which the next certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if arguments.secrets {
        let despite = arguments.despite_failed_checks;
        order(&dir, if despite { &Instruction::RotateDespiteFailures } else { &Instruction::Rotate })?;
        say!(
            "{} wants fresh common secrets. The nodes make them when the operators of all nodes have ordered it and all nodes run.\n\
             See the progress: polyclave node status {}",
            dir.settings().name,
            arguments.dir.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let card = if arguments.finish {
        dir.finish_rotation()?
    } else {
        let next = Identity::generate_named(&dir.settings().name, arguments.days)?;
        dir.begin_rotation(&next.certificate(), &next.reveal_private_key())?
    };
    let path = super::card_path(&arguments.dir);
    card.save(&path)?;
    let (dir, path) = (arguments.dir.display(), path.display());
    match arguments.finish {
        false => say!(
            "The card {path} has the certificate in use and the next one.\n\
             Next: polyclave cluster update cluster.toml {path}\n\
             Give that file to all nodes and clients (node join, client join) and restart all nodes, one after the other.\n\
             When all have it: polyclave node rotate {dir} --finish"
        ),
        true => say!(
            "Restart this node: it then uses the new certificate alone, which is in {path}.\n\
             So that others refuse the old one, once more: polyclave cluster update cluster.toml {path}, then give that file to all."
        ),
    }
    Ok(ExitCode::SUCCESS)
}
