//! `cluster new`: everything on one host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_node::local::create;

use crate::protocols::adversary;
use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster new try --parties 3 --threshold 1\n  \
    polyclave cluster run try\n  \
    polyclave key generate k --client try/client          (in another terminal)\n\n\
    One command makes all secrets here, and whoever can read this host can read them all. For nodes that do not trust each \
    other see `polyclave node init`.")]
pub struct Arguments {
    /// The directory to make
    dir: PathBuf,

    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 3)]
    parties: usize,

    /// Nodes that together learn nothing
    #[arg(long, value_name = "T", default_value_t = 1)]
    threshold: usize,

    /// The protocol between the nodes
    #[arg(long, value_name = "P", default_value = "shamir")]
    protocol: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (protocol, parties) = (arguments.protocol.to_ascii_lowercase(), arguments.parties);
    let adversary = adversary(&protocol, parties, arguments.threshold)?;
    let local = create(&arguments.dir, &protocol, parties, arguments.threshold)?;
    let dir = arguments.dir.display();
    say!("{dir} has {parties} nodes and a client that may do everything.");
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
    for node in &local.nodes {
        say!("  polyclave node run {}", node.display());
    }
    let client = local.client.display();
    say!("Then, in another:\n  export POLYCLAVE_CLIENT={client}\n  polyclave key generate first");
    say!("  polyclave encrypt --key first FILE FILE.sealed");
    Ok(ExitCode::SUCCESS)
}
