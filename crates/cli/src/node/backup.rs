//! `node backup` and `node restore`.

use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use anyhow::{Context, Result};
use polyclave_node::admin::{Instruction, order};
use polyclave_store::{Secret, restore as restore_node};

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave node backup /var/lib/polyclave /mnt/backups/alpha-2026-03-01 --key ~/polyclave-backup.key\n\n\
    With its key a backup is worth what the node is worth: keep the key apart from the backups, and the backups of several \
    nodes apart from each other, or one break-in has them all.")]
pub struct BackupArguments {
    /// The node's directory
    dir: PathBuf,

    /// The backup file to write; it must not exist yet
    file: PathBuf,

    /// The file with the backup's key; created if it does not exist
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "The other nodes refuse a node that comes back from an old copy until their operators readmit it \
    (`polyclave node readmit`). Never run the restored node beside the one from before."
)]
pub struct RestoreArguments {
    /// The backup
    file: PathBuf,

    /// The node's directory; it must not exist yet, or be empty
    dir: PathBuf,

    /// The file with the backup's key
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
}

/// Writes a backup.
pub fn backup(arguments: &BackupArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let key = &arguments.key;
    if key.exists() {
        Secret::load_file(key).with_context(|| format!("{} is not the key of a backup", key.display()))?;
    } else {
        Secret::generate_file(key)?;
        eprintln!(
            "Made {}: keep it apart from the backup, which cannot be restored without it.",
            key.display()
        );
    }
    let full = |path: &Path| absolute(path).with_context(|| format!("where is {}?", path.display()));
    let done = order(&dir, &Instruction::Backup { file: full(&arguments.file)?, key_file: full(key)? });
    done.context("there is no backup")?;
    say!("{} is a backup of {}", arguments.file.display(), dir.settings().name);
    Ok(ExitCode::SUCCESS)
}

/// Restores a backup.
pub fn restore(arguments: &RestoreArguments) -> Result<ExitCode> {
    let key = Secret::load_file(&arguments.key)?;
    restore_node(&arguments.file, &key, &arguments.dir).context("nothing was restored")?;
    let dir = super::open(&arguments.dir)?;
    dir.card().save(&super::card_path(&arguments.dir))?;
    let name = &dir.settings().name;
    say!(
        "{} is {name} as of the backup. The former node must never run again. Its secret is in the clear: `polyclave node seal` \
         puts it under a passphrase.\n\
         Next, at every other node:\n  \
         polyclave node readmit ITS-DIR {name}\n\
         Then here:\n  \
         polyclave node run {}",
        arguments.dir.display(),
        arguments.dir.display()
    );
    Ok(ExitCode::SUCCESS)
}
