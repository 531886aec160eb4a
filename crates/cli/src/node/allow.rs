//! `node allow` and `node revoke`: what clients may do at a node. A running node takes the change within a second.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ClientPolicy, ClientSuccession, certificate_fingerprint};

use crate::names::{parse_rights, words};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node allow DIR alice.toml --rights encrypt,decrypt,list --keys 'invoices,report-*'\n  \
    polyclave node allow DIR admin.toml --rights all --keys '*'\n  \
    polyclave node allow DIR alice.toml                  after `polyclave client rotate`: she keeps her rights\n\n\
    A client can do what enough nodes allow: every node's operator decides for that node. Who may both encrypt and decrypt can \
    use the key as a key; who may generate, import or delete can take it away from others. Who may wrap can have wrappable keys leave the nodes under any \
    key for wrapping among these names, also under one that somebody else has: give it to few. A client keeps its certificate: another one under its name is \
    refused without --replace, except the next one of `polyclave client rotate`, for which the current one vouches.")]
pub struct AllowArguments {
    /// The node's directory
    dir: PathBuf,

    /// The client's card
    card: PathBuf,

    /// generate, import, list, delete, encrypt, decrypt, mac, wrap, unwrap, derive, or all. They replace all rights that the client had before
    #[arg(long, value_name = "R,..", requires = "keys")]
    rights: Option<String>,

    /// Names of keys, or prefixes of names followed by '*'
    #[arg(long, value_name = "K,..", requires = "rights", value_delimiter = ',')]
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
    let succession = ClientSuccession::load(&arguments.card)?;
    let card = succession.card();
    let mut policy = dir.policy()?;
    let node = &dir.settings().name;
    let told = match &arguments.rights {
        None => keep_rights(&succession, arguments.replace, &mut policy, node)?,
        Some(rights) => {
            let rights = parse_rights(rights)?;
            let keys: Vec<String> = arguments.keys.iter().map(|key| key.trim().to_owned()).collect();
            match arguments.replace {
                true => policy.replace(&card, &rights, &keys)?,
                false => {
                    take_certificates(&succession, &mut policy)?;
                    policy.allow(&card, &rights, &keys)?;
                }
            }
            let (rights, keys) = (words(&rights), keys.join(", "));
            format!("{} may {rights} at {node} with the keys {keys}, and nothing else", card.name)
        }
    };
    take_certificates(&succession, &mut policy)?;
    dir.save_policy(&policy)?;
    say!("{told}");
    for certificate in policy.client_named(&card.name).into_iter().flat_map(|known| known.certificates()) {
        say!("  known by {}", certificate_fingerprint(certificate));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a card whose certificate changes. The client may do what it could do before. Returns what to tell.
fn keep_rights(
    succession: &ClientSuccession,
    replace: bool,
    policy: &mut ClientPolicy,
    node: &str,
) -> Result<String> {
    let card = succession.card();
    let known = policy.client_named(&card.name).cloned();
    match known.filter(|_| replace) {
        Some(known) => policy.replace(&card, &known.rights, &known.keys)?,
        None => policy.succeed(succession)?,
    }
    Ok(format!("{} keeps its rights at {node}", card.name))
}

/// Takes the certificates of a card of a client that is known, and has changed or changes its certificate.
fn take_certificates(succession: &ClientSuccession, policy: &mut ClientPolicy) -> Result<()> {
    let card = succession.card();
    let known = policy.client_named(&card.name).is_some_and(|known| known.is_known_by(&card.certificate));
    if known { Ok(policy.succeed(succession)?) } else { Ok(()) }
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
