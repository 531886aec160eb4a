//! `node rotate`: a new certificate for a node, such that its peers know it at every moment. With `--secrets` it is `node refresh`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_config::Card;
use polyclave_transport::Identity;

use super::refresh::{Order, order_at};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "The node's identity:\n\
    1. polyclave node rotate DIR              makes the next certificate; card.toml has both\n\
    2. polyclave cluster update cluster.toml card.toml, and that file to all nodes (node join, then restart them one after \
    the other) and clients (client join)\n\
    3. polyclave node rotate DIR --finish     from its next start the node uses the next certificate alone\n\
    4. once more as 2, with the new card.toml: now nobody accepts the old certificate any more\n\n\
    The common secrets of all nodes, and fresh shares of all keys: polyclave node refresh DIR. The same as an option, which scripts may still \
    use: polyclave node rotate DIR --secrets")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Use the next certificate from now on
    #[arg(long)]
    finish: bool,

    /// The same as `node refresh`
    #[arg(long, conflicts_with_all = ["finish", "days"])]
    secrets: bool,

    #[command(flatten)]
    order: Order,

    /// Days for which the next certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let order = &arguments.order;
    if arguments.secrets {
        return order_at(&arguments.dir, order);
    }
    ensure!(!order.despite_failed_checks, "--despite-failed-checks is for `node refresh`");
    ensure!(order.approval.is_none(), "--approval is for `node refresh`");
    let mut dir = super::open(&arguments.dir)?;
    let path = super::card_path(&arguments.dir);
    let is_changing = dir.next_identity().is_some();
    // Killed after the change and before the card was written, which is of no use to anybody then.
    let is_left = is_changing != arguments.finish && !Card::load(&path).is_ok_and(|card| card == dir.card());
    let card = match arguments.finish {
        _ if is_left => {
            say!("This was interrupted before the card was written, and is completed now.");
            dir.card()
        }
        true => dir.finish_rotation()?,
        false => {
            let next = Identity::generate_named(&dir.settings().name, arguments.days)?;
            dir.begin_rotation(&next.certificate(), &next.reveal_private_key())?
        }
    };
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
