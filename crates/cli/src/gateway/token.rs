//! `gateway token`: a token for one user of a gateway.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{TOKEN_RIGHTS, private};
use polyclave_gateway::make_token;

use crate::names::parse_rights;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave gateway token billing --rights encrypt,decrypt --keys 'billing-*'\n  \
    polyclave gateway token billing --rights encrypt,decrypt --keys 'billing-*' --out billing.token >> gateway.toml\n\n\
    Append the entry to gateway.toml; a gateway that runs takes it at once. Give the token to its user alone: programs send it as \
    X-Vault-Token, and most read it from VAULT_TOKEN. Whoever has it can do what the entry says. To revoke it, remove the entry.")]
pub struct Arguments {
    /// Its name, which the nodes write into their audit logs
    #[arg(value_name = "NAME")]
    name: String,

    /// What it may do: generate, list, delete, encrypt, decrypt, random, configure, rewrap, tokenize,
    /// observe, or all of these
    #[arg(long, value_name = "R,..")]
    rights: String,

    /// The keys that it may use: names, or patterns with * and ?
    #[arg(long, value_name = "K,..", value_delimiter = ',')]
    keys: Vec<String>,

    /// Write the token to this file, which only you can read, and print the entry alone
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let rights = match arguments.rights.trim() {
        "all" => TOKEN_RIGHTS.to_vec(),
        some => parse_rights(some)?,
    };
    let (token, entry) = make_token(&arguments.name, &rights, &arguments.keys)?;
    match &arguments.out {
        Some(file) => {
            if file.symlink_metadata().is_ok() {
                bail!("{} is there already; name another file, or remove it", file.display());
            }
            private::write(file, token.as_bytes())?;
        }
        None => {
            say!("The token, which is shown this once. Give it to {} alone:\n\n{}\n", arguments.name, *token);
            say!("The entry for gateway.toml:\n");
        }
    }
    say!("{}", entry.to_text());
    Ok(ExitCode::SUCCESS)
}
