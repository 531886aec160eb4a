//! `node init`: makes a node's own keys, and the card that its peers need.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{NodeDir, NodeSettings};
use polyclave_transport::Identity;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example, on the machine that the node stays on:\n  \
    polyclave node init /var/lib/polyclave --name alpha --address alpha.example:7000 --listen 0.0.0.0:7000 \\\n    \
    --client-listen 0.0.0.0:7001\n\n\
    Afterwards give card.toml to whoever defines the cluster, over a way on which nobody can replace it:\n  \
    polyclave cluster define --threshold 1 --out cluster.toml alpha.toml beta.toml gamma.toml")]
pub struct Arguments {
    /// The directory to make; it may be there if it is empty and this user's own
    dir: PathBuf,

    /// The node's name: letters, digits, '-', '_' or '.'
    #[arg(long, value_name = "N")]
    name: String,

    /// The address at which the other nodes reach this node
    #[arg(long, value_name = "HOST:PORT")]
    address: String,

    /// The address at which clients reach this node [default: the next port]
    #[arg(long, value_name = "HOST:PORT")]
    client_address: Option<String>,

    /// The address on which it listens for the other nodes [default: --address]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// The address on which it listens for clients [default: --client-address]
    #[arg(long, value_name = "HOST:PORT")]
    client_listen: Option<String>,

    /// The address on which it serves /healthz, /readyz and /metrics, or `none` [default: 127.0.0.1 and the
    /// port after the next]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,

    /// Days for which its certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (host, port) = split(&arguments.address)?;
    let later = |by: u16, flag: &str| match port.checked_add(by) {
        Some(port) => Ok(port),
        None => bail!("no port comes {by} after {port}; give {flag}"),
    };
    let client_address = match &arguments.client_address {
        Some(address) => address.clone(),
        None => format!("{host}:{}", later(1, "--client-address")?),
    };
    let mut settings = NodeSettings::new(&arguments.name, &arguments.address, &client_address);
    if let Some(listen) = &arguments.listen {
        settings.listen = listen.clone();
    }
    if let Some(listen) = &arguments.client_listen {
        settings.client_listen = listen.clone();
    }
    settings.http_listen = match arguments.http.as_deref() {
        Some("none") => None,
        Some(address) => Some(address.into()),
        None => Some(format!("127.0.0.1:{}", later(2, "--http")?)),
    };
    let identity = Identity::generate_named(&arguments.name, arguments.days)?;
    let card =
        NodeDir::init(&arguments.dir, &settings, &identity.certificate(), &identity.reveal_private_key())?;
    let path = super::card_path(&arguments.dir);
    card.save(&path)?;
    let dir = arguments.dir.display();
    say!("{}", card.to_text());
    eprintln!(
        "The node {name} is made; its private keys are in {dir} and nowhere else.\n\
         Above is its card, also in {}: it is public, but has to reach the others unchanged.\n\
         Next: whoever defines the cluster collects the cards of all nodes:\n  \
         polyclave cluster define --threshold 1 --out cluster.toml CARD CARD CARD\n\
         Then, here:\n  \
         polyclave node join {dir} cluster.toml",
        path.display(),
        name = arguments.name,
    );
    Ok(ExitCode::SUCCESS)
}

/// Host and port of an address.
pub(super) fn split(address: &str) -> Result<(&str, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match parts.filter(|(host, port)| !host.is_empty() && *port > 0) {
        Some(parts) => Ok(parts),
        None => bail!("{address:?} is not an address; write host:port or [ipv6]:port"),
    }
}
