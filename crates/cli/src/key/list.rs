//! `key list` and `key show`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_api::Origin;

use super::made::{date, json, standing, tell};
use crate::client_option::{ClientOption, of_node};
use crate::names::words;
use crate::output::table;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct ListArguments {
    /// Only keys that were derived from others, and of how many ciphers they are
    #[arg(long)]
    derived: bool,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct ShowArguments {
    /// The key's name
    name: String,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Lists keys.
pub fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let client = arguments.client.open()?;
    let mut listing = client.keys()?;
    if arguments.derived {
        listing.keys.retain(|listed| listed.info.origin == Origin::Derived);
    }
    for (party, error) in &listing.missing {
        eprintln!("warning: not listed by {}", of_node(&client, *party, error));
    }
    let names =
        |at: polyclave_protocol::PartySet| at.iter().map(|p| client.node_name(p).to_owned()).collect();
    if arguments.json {
        let keys: Vec<_> = listing
            .keys
            .iter()
            .map(|listed| {
                let mut key = json(&listed.info);
                let nodes: Vec<String> = names(listed.at);
                key["nodes"] = nodes.into();
                key
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&keys)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows: Vec<[String; 10]> = vec![
        ["name", "version", "state", "cipher", "modes", "usage", "origin", "budget", "check value", "nodes"]
            .map(str::to_owned),
    ];
    for listed in &listing.keys {
        let properties = &listed.info.properties;
        let nodes: Vec<String> = names(listed.at);
        let all = nodes.len() == client.cluster().nodes();
        rows.push([
            properties.name.clone(),
            listed.info.version.to_string(),
            standing(&listed.info),
            properties.cipher.clone(),
            words(&properties.modes),
            words(&properties.usage),
            listed.info.origin.to_string(),
            properties.budget_blocks.to_string(),
            hex::encode(&listed.info.check_value),
            if all { "all".into() } else { nodes.join(", ") },
        ]);
    }
    table(&rows);
    if arguments.derived {
        let ciphers: BTreeSet<String> =
            listing.keys.iter().map(|listed| listed.info.properties.cipher.clone()).collect();
        let ciphers: Vec<String> = ciphers.into_iter().collect();
        say!(
            "ciphers of derived keys: {}. Where keys of several come from one base, which nodes allowed before they knew better, the shorter are parts of \
             the longer. The nodes' audit logs name the base of each (from=BASE), also of keys that were deleted",
            words(&ciphers)
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a key and its versions.
pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let client = arguments.client.open()?;
    let info = client.info(&arguments.name)?;
    let versions = client.versions(&arguments.name)?;
    if arguments.json {
        let mut document = json(&info);
        document["versions"] = versions.iter().map(json).collect();
        say!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(ExitCode::SUCCESS);
    }
    tell(&info);
    if versions.len() > 1 {
        say!("\nall versions");
        let head = ["version", "state", "made", "expires", "budget", "check value", "id", "label"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(versions.iter().map(|info| {
            let properties = &info.properties;
            [
                info.version.to_string(),
                standing(info),
                date(info.made),
                properties.expires.map_or("never".into(), date),
                properties.budget_blocks.to_string(),
                hex::encode(&info.check_value),
                hex::encode(info.id),
                properties.label.clone(),
            ]
        }));
        table(&rows);
    }
    Ok(ExitCode::SUCCESS)
}
