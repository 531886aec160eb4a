//! `cluster duties`: which workers only serve, and which only make material.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{Cluster, Roles};

use super::list;
use crate::fingerprint;
use crate::say;

/// Which workers do not do both.
#[derive(clap::Args)]
pub struct Options {
    /// Workers with these numbers only serve requests, with material that others make: 0,2
    #[arg(long, value_name = "K,..", value_delimiter = ',')]
    serve_only: Vec<u16>,

    /// Workers with these numbers only make material for others: 1,3
    #[arg(long, value_name = "K,..", value_delimiter = ',')]
    make_only: Vec<u16>,
}

impl Options {
    /// What they say.
    pub fn roles(&self) -> Roles {
        Roles { serve_only: self.serve_only.clone(), make_only: self.make_only.clone() }
    }
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster duties cluster.toml --serve-only 0 --make-only 1,2\n  \
    polyclave cluster duties cluster.toml          (all workers serve and make material)\n\n\
    Under protocols that use material, making it takes much longer than using it. Workers that only make it hand it to those that only serve, \
    through the server of the node's store. Workers that are not named do both.\n\n\
    The numbers count for all nodes. Give the file to all workers (node join) and clients (client join), and start the workers whose duty has \
    changed anew. Its fingerprint is another one now: compare it anew.")]
pub struct Arguments {
    /// The cluster's file, which is changed
    cluster: PathBuf,

    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut cluster = Cluster::load(&arguments.cluster)?;
    cluster.set_roles(arguments.options.roles())?;
    cluster.save(&arguments.cluster)?;
    say!("{} is changed", arguments.cluster.display());
    fingerprint::show(&cluster);
    list(&cluster);
    say!(
        "Next: give it to every worker (polyclave node join, then restart it) and client (polyclave client join)"
    );
    Ok(ExitCode::SUCCESS)
}
