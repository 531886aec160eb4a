//! `key copy`: a key under a second name, for the same or less.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use polyclave_api::{Lifetime, NewKey};

use super::made::{json, tell};
use crate::client_option::ClientOption;
use crate::names::{parse_modes, parse_usage};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key copy invoices invoices-archive --usage decrypt\n  \
    polyclave key copy for-this-hour kept\n\n\
    The copy is the same key under another name and id: what one encrypts the other decrypts. What is not given is as for the key, except \
    that the copy of a session key is stored unless --session is given, and a copy is not wrappable unless --wrappable is given. A copy is \
    for nothing that the key is not for. Both spend one budget. Deleting one leaves the other. The client needs the right generate for \
    the new name, and for the name of the key all rights that the copy is for. All nodes take part.")]
pub struct Arguments {
    /// The key's name
    name: String,

    /// The name of the copy
    new: String,

    /// The version that is copied [default: the current one]
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// Some of the modes that the key is for
    #[arg(long, value_name = "M,..")]
    modes: Option<String>,

    /// Some of what the key is for
    #[arg(long, value_name = "U,..")]
    usage: Option<String>,

    /// Let the copy leave the nodes, wrapped under another key, as the key may
    #[arg(long)]
    wrappable: bool,

    /// What people call it: at most 128 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,

    /// Make the copy a session key, which lives for so many seconds
    #[arg(long, value_name = "SECONDS")]
    session: Option<u32>,

    /// The most blocks that the key and its copies may have computed when the copy computes its last one
    #[arg(long, value_name = "BLOCKS")]
    budget: Option<u64>,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { name, new, key_version, modes, usage, client, .. } = arguments;
    let client = client.open()?;
    let of = match key_version {
        Some(version) => client.version(name, *version)?,
        None => client.versions(name)?.into_iter().next().ok_or_else(|| anyhow!("no node shows '{name}'"))?,
    };
    let modes = modes.as_deref().map(parse_modes).transpose()?;
    let usage = usage.as_deref().map(parse_usage).transpose()?;
    let properties = &of.properties;
    let copy = NewKey {
        name: new.clone(),
        modes: modes.unwrap_or_else(|| properties.modes.clone()),
        usage: usage.unwrap_or_else(|| properties.usage.clone()),
        wrappable: arguments.wrappable,
        label: arguments.label.clone(),
        lifetime: arguments.session.map_or(Lifetime::Stored, |seconds| Lifetime::Session { seconds }),
        budget_blocks: arguments.budget.unwrap_or(properties.budget_blocks),
        ..properties.clone()
    };
    let info = client.copy(name, of.id, copy)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}
