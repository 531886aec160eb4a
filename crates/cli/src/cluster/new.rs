//! `cluster new`: makes a whole cluster on one host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_node::local::{PORTS, Shared, create, create_on, create_shared};
use polyclave_protocol::catalog;

use super::{duties, standby};
use crate::protocols::{self, Properties, parties, properties, threshold};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Arguments {
    /// The directory to make
    dir: PathBuf,

    #[arg(long, value_name = "N", help = protocols::parties_help(3))]
    parties: Option<usize>,

    #[arg(long, value_name = "T", help = protocols::threshold_help("default: 1"))]
    threshold: Option<usize>,

    #[arg(long, value_name = "P", help = protocols::option_help())]
    protocol: Option<String>,

    /// The nodes take the ports from this one on, three each, instead of any that are free between 10000 and
    /// 24000
    #[arg(long, value_name = "PORT")]
    first_port: Option<u16>,

    /// How many workers each node has, which share its store at a server
    #[arg(long, value_name = "W", default_value_t = 1, requires = "store", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,

    /// The stores are in schemas of this database of a PostgreSQL server: postgresql://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// The private file with the password for it
    #[arg(long, value_name = "FILE", requires = "store")]
    store_password: Option<PathBuf>,

    #[command(flatten)]
    duties: duties::Options,

    #[command(flatten)]
    standby: standby::Options,
}

fn after_help() -> String {
    let examples = catalog::serving().map(|protocol| {
        let (name, parties) = (protocol.name, parties(protocol.name, 3));
        format!("  polyclave cluster new try-{name} --protocol {name} --parties {parties}")
    });
    format!(
        "Example:\n  \
         polyclave cluster new try --parties 3 --threshold 1\n  \
         polyclave cluster run try\n  \
         polyclave key generate k --client try/client          (in another terminal)\n\
         {}\n\n\
         {}\n\n\
         One command makes all secrets here, and whoever can read this host can read them all. For nodes that do not trust each \
         other see `polyclave node init`.",
        examples.skip(1).collect::<Vec<_>>().join("\n"),
        protocols::advice()
    )
}

/// The ports of all workers of all nodes.
fn ports_from(first: u16, nodes: usize) -> Result<Vec<u16>> {
    let count = PORTS * nodes;
    let ports: Vec<u16> = (first..=u16::MAX).take(count).collect();
    if first == 0 || ports.len() < count {
        bail!(
            "{nodes} nodes take {count} ports, and there are not so many from {first} on; name one from 1 to {}",
            65_536 - count
        );
    }
    Ok(ports)
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let chosen = protocols::chosen(arguments.protocol.as_deref(), arguments.parties, 3);
    let (protocol, parties) = (&chosen.protocol, chosen.nodes);
    let threshold = threshold(protocol, parties, arguments.threshold, 1)?;
    let Properties { adversary, keeps_stock, .. } = properties(protocol, parties, threshold)?;
    let workers = usize::from(arguments.workers);
    let roles = arguments.duties.roles();
    roles.check(workers)?;
    let shared = arguments.store.as_deref().map(|store| Shared {
        workers,
        store,
        password: arguments.store_password.as_deref(),
        roles: Some(&roles),
    });
    let local = match (arguments.first_port, shared) {
        (Some(first), shared) => {
            let ports = ports_from(first, parties * workers)?;
            create_on(&arguments.dir, (protocol, threshold), &ports, shared)?
        }
        (None, Some(shared)) => create_shared(&arguments.dir, (protocol, parties, threshold), shared)?,
        (None, None) => create(&arguments.dir, protocol, parties, threshold)?,
    };
    local.change_cluster(|cluster| arguments.standby.apply(cluster))?;
    let dir = arguments.dir.display();
    match workers {
        1 => say!("{dir} has {parties} nodes and a client that may do everything."),
        _ => say!(
            "{dir} has {parties} nodes with {workers} workers each, and a client that may do everything."
        ),
    }
    chosen.tell();
    say!("{protocol}: {adversary}");
    say!("");
    say!(
        "This is to try things out. All secrets of all nodes were made here, by this one command, which could have read"
    );
    say!(
        "them; and whoever can read this host's disk can. It separates no trust: for that run `polyclave node init` on"
    );
    say!("every node's own machine.");
    say!("");
    say!("Next, in one terminal:\n  polyclave cluster run {dir}");
    say!("or every node in its own:");
    for node in local.nodes.iter().chain(&local.workers) {
        say!("  polyclave node run {}", node.display());
    }
    let client = local.client.display();
    say!("Then, in another:\n  export POLYCLAVE_CLIENT={client}\n  polyclave key generate first");
    say!("  polyclave encrypt --key first FILE FILE.sealed");
    if keeps_stock {
        say!(
            "The nodes first make material for their stock; see how far they are with: polyclave client status"
        );
    }
    Ok(ExitCode::SUCCESS)
}
