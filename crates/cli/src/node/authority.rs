//! `node authority`: authorities that vouch for clients, and what these may do. A running node takes the change
//! within a second.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use clap::Subcommand;
use polyclave_api::Right;
use polyclave_config::{Authority, AuthorityClient, Moment, certificate_fingerprint};
use polyclave_transport::expiry;

use super::policy::refuse_unapproved;
use crate::names::{parse_rights, words};
use crate::say;

/// The subcommands for authorities.
#[derive(Subcommand)]
pub enum Command {
    /// Add an authority, or give it another file or limit
    Add(AddArguments),
    /// Say what clients of an authority may do at this node
    Allow(AllowArguments),
    /// Remove an authority; its clients may do nothing more
    Remove(RemoveArguments),
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave node authority add DIR corp /etc/polyclave/corp.pem --max-hours 2\n\n\
    Who has the authority's key can be every client that `node authority allow` names. Nodes decide each for itself: add it at all of them, \
    each operator with a file that came from the authority, and not from another operator.")]
pub struct AddArguments {
    /// The node's directory
    dir: PathBuf,

    /// A name for the authority, at this node
    authority: String,

    /// The PEM file with its certificates, which the node reads again when it changes
    file: PathBuf,

    /// The most hours that a certificate of a client may be valid in all [default: 24]
    #[arg(long, value_name = "H")]
    max_hours: Option<u32>,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node authority allow DIR corp --name web --identity spiffe://corp.example/web --rights encrypt,decrypt --keys 'web-*'\n  \
    polyclave node authority allow DIR corp --name prod --identity 'spiffe://corp.example/ns/prod/*' --rights encrypt --keys 'log-*'\n  \
    polyclave node authority allow DIR corp --name ci --identity 'dns:*.ci.corp.example' --rights list --keys '*'\n\n\
    These are all rights of the entry from now on. Rules and groups in DIR/clients.toml can name the entry as they name listed clients; \
    `node revoke DIR NAME` removes it.")]
pub struct AllowArguments {
    /// The node's directory
    dir: PathBuf,

    /// The authority
    authority: String,

    /// A name for these clients, for rules and groups of this node
    #[arg(long, value_name = "N")]
    name: String,

    /// A SPIFFE ID, or with /* at the end all below a path; or dns: and a DNS name, with *. for any label
    #[arg(long, value_name = "I")]
    identity: String,

    #[arg(long, value_name = "R,..", help = rights_help())]
    rights: String,

    /// Names of keys, or patterns: '*' stands for any characters, '?' for one
    #[arg(long, value_name = "K,..", value_delimiter = ',')]
    keys: Vec<String>,
}

fn rights_help() -> String {
    format!("{}, or all", words(&Right::ALL))
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave node authority remove DIR corp")]
pub struct RemoveArguments {
    /// The node's directory
    dir: PathBuf,

    /// The authority
    authority: String,
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Add(arguments) => add(arguments),
        Command::Allow(arguments) => allow(arguments),
        Command::Remove(arguments) => remove(arguments),
    }
}

fn add(arguments: &AddArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let file = std::path::absolute(&arguments.file)?;
    let authority = Authority::new(&arguments.authority, &file.display().to_string(), arguments.max_hours);
    let anchors = authority.load(dir.path())?;
    let (name, hours) = (authority.name.clone(), authority.max_hours);
    policy.set_authority(authority)?;
    dir.save_policy(&policy)?;
    let node = &dir.settings().name;
    say!(
        "{name} vouches for clients at {node}, with certificates of at most {hours} hours, and with these keys:"
    );
    for certificate in anchors.certificates() {
        let (_, ends) = expiry(certificate)?;
        let ends = Moment::from_seconds(ends.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs());
        say!("  {}, until {ends}", certificate_fingerprint(certificate));
    }
    if policy.authorities().iter().all(|known| known.name != name || known.clients.is_empty()) {
        say!(
            "Nobody may do anything by it yet: polyclave node authority allow {} {name} ..",
            arguments.dir.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn allow(arguments: &AllowArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let rights = parse_rights(&arguments.rights)?;
    let keys: Vec<String> = arguments.keys.iter().map(|key| key.trim().to_owned()).collect();
    let (name, identity) = (arguments.name.clone(), arguments.identity.clone());
    let (rights_told, keys_told) = (words(&rights), keys.join(", "));
    policy.set_authority_client(&arguments.authority, AuthorityClient { name, identity, rights, keys })?;
    dir.save_policy(&policy)?;
    say!(
        "{} (for which {} vouches) may {rights_told} at {} with the keys {keys_told}",
        arguments.identity,
        arguments.authority,
        dir.settings().name
    );
    Ok(ExitCode::SUCCESS)
}

fn remove(arguments: &RemoveArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    policy.remove_authority(&arguments.authority)?;
    dir.save_policy(&policy)?;
    let node = &dir.settings().name;
    say!("{} vouches for nobody at {node} any more; remove it at the other nodes, too", arguments.authority);
    Ok(ExitCode::SUCCESS)
}
