//! `node address`: gives a node another address.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use super::init::split;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example, for a node that moves to another machine name or port:\n  \
    polyclave node address /var/lib/polyclave --address alpha.example:7010 --listen 0.0.0.0:7010 --client-listen 0.0.0.0:7011\n\n\
    What you do not give stays as it is, with one exception: an address that was the default to another one stays its default. So the \
    address for clients stays the next port, if it was.\n\n\
    Afterwards:\n\
    1. polyclave cluster update cluster.toml card.toml, and that file to all nodes (node join) and clients (client join)\n\
    2. restart this node, then the others one after the other. Until then the others, and clients with the file from before, do not find \
    this node")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// The address at which the other nodes reach this node
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,

    /// The address at which clients reach this node
    #[arg(long, value_name = "HOST:PORT")]
    client_address: Option<String>,

    /// The address on which it listens for the other nodes
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// The address on which it listens for clients
    #[arg(long, value_name = "HOST:PORT")]
    client_listen: Option<String>,

    /// The address on which it serves /healthz, /readyz and /metrics, or `none`
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let given = [
        &arguments.address,
        &arguments.client_address,
        &arguments.listen,
        &arguments.client_listen,
        &arguments.http,
    ];
    ensure!(given.iter().any(|address| address.is_some()), "say what changes, for instance with --address");
    let mut dir = super::open(&arguments.dir)?;
    let old = dir.settings().clone();
    let mut new = old.clone();
    if let Some(address) = &arguments.address {
        new.address.clone_from(address);
    }
    new.client_address = match &arguments.client_address {
        Some(address) => address.clone(),
        None if next_port(&old.address).as_ref() == Some(&old.client_address) => {
            next_port(&new.address).unwrap_or(old.client_address)
        }
        None => old.client_address,
    };
    let listen = |given: &Option<String>, was: &str, default_was: &str, default: &str| match given {
        Some(address) => address.clone(),
        None if was == default_was => default.to_owned(),
        None => was.to_owned(),
    };
    new.listen = listen(&arguments.listen, &old.listen, &old.address, &new.address);
    new.client_listen = listen(
        &arguments.client_listen,
        &old.client_listen,
        &dir.settings().client_address,
        &new.client_address,
    );
    match arguments.http.as_deref() {
        Some("none") => new.http_listen = None,
        Some(address) => new.http_listen = Some(address.into()),
        None => {}
    }
    dir.set_settings(new)?;
    let path = super::card_path(&arguments.dir);
    dir.card().save(&path)?;
    let new = dir.settings();
    say!("{} is at {}, for clients at {}", new.name, new.address, new.client_address);
    say!("  it listens on {} and {}", new.listen, new.client_listen);
    say!(
        "  and serves health and metrics {}",
        new.http_listen.as_ref().map_or("nowhere".into(), |http| format!("on {http}"))
    );
    say!(
        "Next: polyclave cluster update cluster.toml {}\n\
         Give that file to all nodes (node join) and clients (client join), then restart this node, and the others one after the other.",
        path.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The address with the next port, as `node init` gives it to clients.
fn next_port(address: &str) -> Option<String> {
    let (host, port) = split(address).ok()?;
    Some(format!("{host}:{}", port.checked_add(1)?))
}
