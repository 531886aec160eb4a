//! `node worker`: adds a worker to a node.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use polyclave_config::{NodeDir, Place};

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

    /// The directory to make; it may be there if it is empty and this user's own
    new: PathBuf,

    /// The address at which the workers of the same number reach it
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "number")]
    address: Option<String>,

    /// Only make the directory of a worker that node.toml has already: its number, from 1 on
    #[arg(long, value_name = "K", conflicts_with_all = ["address", "client_address"], value_parser = clap::value_parser!(u16).range(1..=63))]
    number: Option<u16>,

    /// The address at which clients reach it [default: the next port]
    #[arg(long, value_name = "HOST:PORT")]
    client_address: Option<String>,

    /// The address on which it serves /healthz, /readyz and /metrics, or `none` [default: 127.0.0.1 and the
    /// port after the next]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if arguments.new.symlink_metadata().is_ok() {
        bail!("{} is there already; name a directory to make", arguments.new.display());
    }
    let number = match (arguments.number, &arguments.address) {
        (Some(number), _) => number,
        (None, Some(address)) => add(&mut dir, address, arguments.client_address.as_deref())?,
        (None, None) => {
            bail!("give the address of the new worker (--address), or the number of one that is there")
        }
    };
    let (_, port) = match dir.settings().workers.get(usize::from(number) - 1) {
        Some(place) => split(&place.address)?,
        None => bail!("node.toml has no worker {number}: add one with --address"),
    };
    let http = match arguments.http.as_deref() {
        Some("none") => None,
        Some(address) => Some(address.into()),
        None => Some(format!("127.0.0.1:{}", later(port, 2, "--http")?)),
    };
    dir.init_worker(&arguments.new, number, http)?;
    if arguments.number.is_some() {
        say!("{} is the directory of worker {number} of {}", arguments.new.display(), dir.settings().name);
        return Ok(ExitCode::SUCCESS);
    }
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

/// Adds a worker to node.toml. Returns its number.
fn add(dir: &mut NodeDir, address: &str, client_address: Option<&str>) -> Result<u16> {
    let (host, port) = split(address)?;
    let client_address = match client_address {
        Some(address) => address.into(),
        None => format!("{host}:{}", later(port, 1, "--client-address")?),
    };
    Ok(dir.add_worker(Place { address: address.into(), client_address })?)
}

fn later(port: u16, by: u16, flag: &str) -> Result<u16> {
    port.checked_add(by).with_context(|| format!("no port comes {by} after {port}; give {flag}"))
}
