//! `key list` and `key show`.

use std::process::ExitCode;

use anyhow::Result;

use super::made::{json, tell};
use crate::client::{ClientOption, of_node};
use crate::names::words;
use crate::output::table;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct ListArguments {
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
    let listing = client.keys()?;
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
            listed.info.state.to_string(),
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
    Ok(ExitCode::SUCCESS)
}

/// Shows a key.
pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let info = arguments.client.open()?.info(&arguments.name)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}
