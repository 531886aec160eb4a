//! `node seal` and `node unseal`: the node's secret under a passphrase, and in the clear again.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use super::passphrase;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node seal /var/lib/polyclave                # asks for the passphrase; the same to change it\n  \
    polyclave node run /var/lib/polyclave                 # asks for it, too\n\n\
    Whoever copies the disk then has to guess the passphrase before it gives any share of a key. The node's TLS identity \
    (identity.key) stays in the clear. Without the passphrase the node is lost, except for its backups, which do not need it. \
    Where no person starts the node, let the service manager keep the secret or the passphrase: see docs/operate/secret.md.")]
pub struct SealArguments {
    /// The node's directory
    dir: PathBuf,

    /// Read the new passphrase from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,

    /// Read the present passphrase from the first line of this private file, if there is one already
    #[arg(long, value_name = "FILE")]
    old_passphrase_file: Option<PathBuf>,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct UnsealArguments {
    /// The node's directory
    dir: PathBuf,

    /// Read the passphrase from the first line of this private file, and do not ask for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// Seals the secret, or changes its passphrase.
pub fn seal(arguments: &SealArguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if let Some(file) = &arguments.old_passphrase_file {
        dir.ask_passphrase(passphrase::from_file(file));
    }
    let new = passphrase::new(&dir, arguments.passphrase_file.as_deref())?;
    dir.seal_secret(&new)?;
    say!(
        "The secret of the node {} is sealed: starting the node takes the passphrase. It was on this disk in the clear if it was \
         not sealed before: copies of the disk from then still have it.",
        dir.settings().name
    );
    Ok(ExitCode::SUCCESS)
}

/// Puts the secret into the clear again.
pub fn unseal(arguments: &UnsealArguments) -> Result<ExitCode> {
    let mut dir = super::open(&arguments.dir)?;
    if let Some(file) = &arguments.passphrase_file {
        dir.ask_passphrase(passphrase::from_file(file));
    }
    dir.unseal_secret()?;
    say!("The secret of the node {} is in {} in the clear.", dir.settings().name, arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}
