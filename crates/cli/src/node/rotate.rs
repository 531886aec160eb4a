//! `node rotate`: a new certificate for a node, such that its peers know it at every moment. With `--secrets`
//! it is `node refresh`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use polyclave_config::{Card, NodeDir};
use polyclave_node::admin::{Answer, Instruction, Status, order as ask};
use polyclave_transport::{CertificateDer, Identity};

use super::refresh::{Order, order_at};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "The node's identity:\n\
    1. polyclave node rotate DIR              makes the next certificate; card.toml has both\n\
    2. polyclave cluster update cluster.toml card.toml, and that file to all nodes (node join, then restart them one after \
    the other) and clients (client join)\n\
    3. polyclave node rotate DIR --finish     asks all other nodes, through this one, whether they have the file; from its next start the \
    node uses the next certificate alone\n\
    4. once more as 2, with the new card.toml: now nobody accepts the old certificate any more\n\n\
    The common secrets of all nodes, and fresh shares of all keys: polyclave node refresh DIR. The same as an option, which scripts may still \
    use: polyclave node rotate DIR --secrets")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Use the next certificate from now on
    #[arg(long)]
    finish: bool,

    /// Finish even though some nodes do not have the file with the next certificate, or cannot be asked
    #[arg(long, requires = "finish")]
    anyway: bool,

    /// The same as `node refresh`
    #[arg(long, conflicts_with_all = ["finish", "days"])]
    secrets: bool,

    #[command(flatten)]
    order: Order,

    /// Days for which the next certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// How long to wait for peers that have just been restarted.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(500);

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
        true => {
            if !arguments.anyway {
                refuse_early(&dir)?;
            }
            dir.finish_rotation()?
        }
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

/// Refuses to finish while a node does not know the next certificate: it would refuse this node.
fn refuse_early(dir: &NodeDir) -> Result<()> {
    let Some(next) = dir.next_identity() else { return Ok(()) };
    let name = &dir.settings().name;
    let cluster = dir.cluster()?;
    let own = cluster.as_ref().and_then(|cluster| cluster.card_named(name));
    let path = dir.path().display();
    let how = format!(
        "give all nodes the file of `polyclave cluster update cluster.toml {path}/card.toml` (`node join`, and restart them one after the other); \
         or finish with --anyway, and nodes refuse this one until they have it"
    );
    if !own.is_some_and(|card| card.certificates.contains(&next.certificate)) {
        bail!(
            "not finished, and nothing was changed: the cluster file of this node does not have its next certificate; {how}"
        );
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let Some(Answer::Status(status)) = ask(dir, &Instruction::Status)? else {
            bail!(
                "not finished, and nothing was changed: this node is not running, so the others cannot be asked; start it; or finish with \
                 --anyway if all nodes have the file with its next certificate"
            );
        };
        let unknowing = unknowing(&status, &next.certificate);
        let is_waited_for = !status.missing.is_empty() && Instant::now() < until;
        match unknowing.is_empty() {
            true => return Ok(()),
            false if is_waited_for => std::thread::sleep(BETWEEN),
            false => bail!("not finished, and nothing was changed: {}. So {how}", unknowing.join("; ")),
        }
    }
}

/// The nodes that do not know the next certificate, or are not connected.
fn unknowing(status: &Status, next: &CertificateDer<'_>) -> Vec<String> {
    let message = |name: &str| format!("{name} runs with a cluster file without the next certificate");
    let old = status.unknowing(next).into_iter().map(message);
    let missing = status.missing.iter().map(|name| format!("{name} is not connected and cannot be asked"));
    old.chain(missing).collect()
}
