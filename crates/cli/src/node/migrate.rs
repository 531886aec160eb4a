//! `node migrate`: moves the store of a node to a PostgreSQL server, or back into a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_store::migrate;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node migrate /var/lib/polyclave --to postgresql://polyclave@db.example/alpha\n  \
    polyclave node migrate /var/lib/polyclave --to file\n\n\
    The node must not be running. Each node needs a database of its own, or a schema of its own \
    (..?options=-csearch_path%3Dalpha). Put the password into DIR/store.password, mode 0600. A server on another machine is reached by TLS, \
    and DIR/store-ca.pem has the certificate of the authority that signed its certificate.\n\n\
    All records are moved in one transaction and compared; then node.toml names the new place, and the old one is emptied. \
    After an interruption run the command again.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Where to: postgresql://USER@HOST/DATABASE, or `file`
    #[arg(long, value_name = "URL|file")]
    to: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    let to = (arguments.to != "file").then(|| arguments.to.clone());
    match migrate(&mut dir, to)? {
        Some(moved) => say!("{} records were moved from {} to {}", moved.records, moved.from, moved.to),
        None => say!("the store is there already"),
    }
    Ok(ExitCode::SUCCESS)
}
