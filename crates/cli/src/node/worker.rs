//! `node worker`: adds a worker to a node.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::Place;

use super::init::split;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave node worker /var/lib/polyclave /tmp/worker-1 --address alpha-2.example:7000\n\n\
    The workers of a node are machines that serve under its name, with one store at a PostgreSQL server. The workers of one number at all \
    nodes serve together, so add one at each node. This adds the address to node.toml of the node's first worker and to its card, and makes the \
    directory of the new one: with the node's private key and secret, to be moved to its machine.\n\n\
    Then put the new cards of all nodes into the cluster's file (`polyclave cluster update`), and give it to all workers (`polyclave node join`) \
    and clients. Workers that run already go on meanwhile.")]
pub struct Arguments {
    /// The directory of the node's first worker
    dir: PathBuf,

    /// The directory to make
    new: PathBuf,

    /// The address at which the workers of the same number reach it
    #[arg(long, value_name = "HOST:PORT")]
    address: String,

    /// The address at which clients reach it [default: the next port]
    #[arg(long, value_name = "HOST:PORT")]
    client_address: Option<String>,

    /// The address on which it serves /healthz, /readyz and /metrics, or `none` [default: 127.0.0.1 and the port after the next]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if arguments.new.symlink_metadata().is_ok() {
        bail!("{} is there already; name a directory to make", arguments.new.display());
    }
    let (host, port) = split(&arguments.address)?;
    let later = |by: u16, flag: &str| match port.checked_add(by) {
        Some(port) => Ok(port),
        None => bail!("no port comes {by} after {port}; give {flag}"),
    };
    let client_address = match &arguments.client_address {
        Some(address) => address.clone(),
        None => format!("{host}:{}", later(1, "--client-address")?),
    };
    let http = match arguments.http.as_deref() {
        Some("none") => None,
        Some(address) => Some(address.into()),
        None => Some(format!("127.0.0.1:{}", later(2, "--http")?)),
    };
    let number = dir.add_worker(Place { address: arguments.address.clone(), client_address })?;
    dir.init_worker(&arguments.new, number, http)?;
    let path = super::card_path(&arguments.dir);
    dir.card().save(&path)?;
    let (name, new) = (&dir.settings().name, arguments.new.display());
    say!(
        "{new} is the directory of worker {number} of {name}. It has the node's private key and secret: move it to its machine."
    );
    say!("The new card of {name} is {}.", path.display());
    say!(
        "Once every node has a worker {number}: polyclave cluster update, then polyclave node join at all workers."
    );
    Ok(ExitCode::SUCCESS)
}
