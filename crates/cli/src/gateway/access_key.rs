//! `gateway access-key`: an access key for one user of a gateway that signs its requests.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{ACCESS_KEY_RIGHTS, private};
use polyclave_gateway::make_access_key;

use crate::names::parse_rights;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave gateway access-key pos --rights pay --keys 'pin-*' --out pos.secret >> gateway.toml\n  \
    polyclave gateway access-key kms --rights encrypt,decrypt --keys orders --out kms.secret >> gateway.toml\n\n\
    Append the entry to gateway.toml; a gateway that runs takes it at once. The gateway reads the secret from the file: leave it \
    there, or change the path in the entry, which is relative to gateway.toml. Give id and secret to its user alone, as \
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. To revoke the access key, remove the entry. See docs/use/payments-aws.md and docs/use/xks.md.")]
pub struct Arguments {
    /// Its name, which the nodes write into their audit logs
    #[arg(value_name = "NAME")]
    name: String,

    /// What it may do: pay, issue, encrypt, decrypt, list, or all of these
    #[arg(long, value_name = "R,..")]
    rights: String,

    /// The keys that it may use: names, or patterns with * and ?
    #[arg(long, value_name = "K,..", value_delimiter = ',', required = true)]
    keys: Vec<String>,

    /// Write the secret to this file, which only you can read
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let rights = match arguments.rights.trim() {
        "all" => ACCESS_KEY_RIGHTS.to_vec(),
        some => parse_rights(some)?,
    };
    let file = &arguments.out;
    let (secret, entry) = make_access_key(&arguments.name, &rights, &arguments.keys, file)?;
    if file.symlink_metadata().is_ok() {
        bail!("{} is there already; name another file, or remove it", file.display());
    }
    private::write(file, secret.as_bytes())?;
    say!("{}", entry.to_text());
    Ok(ExitCode::SUCCESS)
}
