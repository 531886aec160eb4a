//! `cluster new`: everything on one host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_node::local::create;

use crate::protocols::{Properties, parties, properties, threshold};
use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster new try --parties 3 --threshold 1\n  \
    polyclave cluster run try\n  \
    polyclave key generate k --client try/client          (in another terminal)\n  \
    polyclave cluster new safer --protocol spdz-lt --parties 2\n  \
    polyclave cluster new pair --protocol tinytable-linear64 --parties 2\n  \
    polyclave cluster new robust --protocol shamir-active --parties 4\n\n\
    shamir: 3 to 9 nodes, any 2T + 1 of them serve, fast; a node that runs altered code can get at keys. spdz-lt: 2 nodes or more, \
    all of them serve, and any cheating ends in a refusal; the nodes make material ahead, so that a request is limited by \
    what is in stock ([stock] in node.toml). tinytable-linear64: the same promise between exactly 2 nodes, whose material is made faster, \
    and whose requests take longer. shamir-active: 4 nodes or more, of which fewer than a third may cheat, or be gone, and answers \
are right and come all the same; material is made ahead, by all nodes, and is limited by [stock] as well.\n\n\
    One command makes all secrets here, and whoever can read this host can read them all. For nodes that do not trust each \
    other see `polyclave node init`.")]
pub struct Arguments {
    /// The directory to make
    dir: PathBuf,

    /// Number of nodes [default: 3, for shamir-active 4, for spdz-lt and tinytable-linear64 2]
    #[arg(long, value_name = "N")]
    parties: Option<usize>,

    /// Nodes that together learn nothing [default: 1, for shamir-active as many as can be; for spdz-lt and tinytable-linear64 always all but one]
    #[arg(long, value_name = "T")]
    threshold: Option<usize>,

    /// The protocol between the nodes: shamir, shamir-active, spdz-lt or tinytable-linear64
    #[arg(long, value_name = "P", default_value = "shamir")]
    protocol: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let protocol = arguments.protocol.to_ascii_lowercase();
    let parties = arguments.parties.unwrap_or_else(|| parties(&protocol, 3));
    let threshold = threshold(&protocol, parties, arguments.threshold, 1)?;
    let Properties { adversary, keeps_stock, .. } = properties(&protocol, parties, threshold)?;
    let local = create(&arguments.dir, &protocol, parties, threshold)?;
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
    if keeps_stock {
        say!(
            "The nodes first make material for their stock; see how far they are with: polyclave client status"
        );
    }
    Ok(ExitCode::SUCCESS)
}
