//! `node allow` and `node revoke`: what clients may do at a node. A running node takes the change within a second.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ClientCard, certificate_fingerprint};

use crate::names::{parse_rights, words};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node allow DIR alice.toml --rights encrypt,decrypt,list --keys 'invoices,report-*'\n  \
    polyclave node allow DIR admin.toml --rights all --keys '*'\n\n\
    A client can do what enough nodes allow: every node's operator decides for that node. Who may both encrypt and decrypt can \
    use the key as a key; who may generate, import or delete can take it away from others. Who may wrap can have wrappable keys leave the nodes under any \
    key for wrapping among these names, also under one that somebody else has: give it to few. A client keeps its certificate: another one under its name is \
    refused without --replace.")]
pub struct AllowArguments {
    /// The node's directory
    dir: PathBuf,

    /// The client's card
    card: PathBuf,

    /// generate, import, list, delete, encrypt, decrypt, mac, wrap, unwrap, derive, configure, or all. They replace all rights that the client had before
    #[arg(long, value_name = "R,..", required = true)]
    rights: String,

    /// Names of keys, or prefixes of names followed by '*'
    #[arg(long, value_name = "K,..", required = true, value_delimiter = ',')]
    keys: Vec<String>,

    /// Let this card replace another certificate with the client's name
    #[arg(long)]
    replace: bool,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave node revoke DIR alice\n\n\
    Nodes decide each for itself: revoke the client at all of them.")]
pub struct RevokeArguments {
    /// The node's directory
    dir: PathBuf,

    /// The client's name
    client: String,
}

/// Allows.
pub fn allow(arguments: &AllowArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let card = ClientCard::load(&arguments.card)?;
    let rights = parse_rights(&arguments.rights)?;
    let keys: Vec<String> = arguments.keys.iter().map(|key| key.trim().to_owned()).collect();
    let mut policy = dir.policy()?;
    match arguments.replace {
        true => policy.replace(&card, &rights, &keys)?,
        false => policy.allow(&card, &rights, &keys)?,
    }
    dir.save_policy(&policy)?;
    let node = &dir.settings().name;
    say!(
        "{} may {} at {node} with the keys {}, and nothing else",
        card.name,
        words(&rights),
        keys.join(", ")
    );
    say!("  known by {}", certificate_fingerprint(&card.certificate));
    Ok(ExitCode::SUCCESS)
}

/// Revokes.
pub fn revoke(arguments: &RevokeArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    policy.revoke(&arguments.client)?;
    dir.save_policy(&policy)?;
    let node = &dir.settings().name;
    say!("{} has no rights at {node} any more; revoke it at the other nodes, too", arguments.client);
    Ok(ExitCode::SUCCESS)
}
