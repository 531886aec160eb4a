//! `key describe`: the label of a version.

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use crate::client_option::ClientOption;
use crate::options::hexadecimal;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key describe invoices --label 'Invoices, since 2026'\n  \
    polyclave key describe invoices --key-version 1 --label 'Invoices, until 2026'\n\n\
    The change is refused if somebody else has changed the description meanwhile. What is not given stays as it is. The client needs the \
    right configure. All nodes take part; if the command fails in the middle, repeat it.")]
pub struct Arguments {
    /// The key's name
    name: String,

    /// The version [default: the current one]
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// What people call it: at most 128 bytes
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// What programs keep beside it, in hexadecimal: at most 4096 bytes
    #[arg(long, value_name = "HEX", required_unless_present = "label")]
    attributes: Option<String>,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { name, key_version, label, attributes, client } = arguments;
    let attributes = attributes.as_deref().map(|text| hexadecimal("--attributes", text)).transpose()?;
    let client = client.open()?;
    let versions = client.versions(name)?;
    let newest =
        versions.first().map(|info| info.version).ok_or_else(|| anyhow!("no node shows '{name}'"))?;
    let version = key_version.unwrap_or(newest);
    client.version(name, version)?;
    // Nodes of which one was killed during a change can be at different revisions: the latest counts.
    let of_version = versions.iter().filter(|info| info.version == version);
    let latest = of_version.max_by_key(|info| info.revision).ok_or_else(|| anyhow!("no node shows it"))?;
    let label = label.as_ref().unwrap_or(&latest.properties.label);
    let attributes = attributes.as_ref().unwrap_or(&latest.properties.attributes);
    client.describe((name, latest.id), latest.revision, label, attributes)?;
    say!("version {version} of {name} is described anew");
    Ok(ExitCode::SUCCESS)
}
