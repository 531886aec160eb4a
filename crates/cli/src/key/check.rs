//! `key check`: the check values of a key, computed anew.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use polyclave_api::Reason;
use polyclave_client::Error;
use serde_json::json;

use super::kcv::Kind;
use super::made::standing;
use crate::client_option::ClientOption;
use crate::output::table;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key check invoices\n  \
    polyclave key check zone-pins --kcv-by zeros\n\n\
    The nodes compute the check value of each version from their shares. By CMAC it has to be the one that they recorded when the key was made, \
    which `key show` prints: if it differs, the shares of some node are not those of the key. The encryption of zeros is not shown of keys that \
    compute codes (gcm and cmac among them) or derive, nor of copies, because secrets follow from it. Versions that compute nothing any more are \
    left out. The client needs the right list.")]
pub struct Arguments {
    /// The key's name
    name: String,

    /// How the check value is computed: cmac (of zeros: 5 bytes for AES, 3 for ciphers with smaller blocks),
    /// or zeros (their encryption, 3 bytes: the legacy form)
    #[arg(long, value_name = "WAY", default_value = "cmac")]
    kcv_by: Kind,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { name, kcv_by, client, json } = arguments;
    let client = client.open()?;
    let mut versions = client.versions(name)?;
    versions.dedup_by_key(|info| info.id);
    let (mut checked, mut refused) = (Vec::new(), None);
    for info in &versions {
        match client.check(info, (*kcv_by).into()) {
            Ok(value) => checked.push((info, hex::encode(value))),
            Err(Error::Refused { node, refusal }) if refusal.reason == Reason::NotForThis => {
                eprintln!("warning: version {} is not checked: {refusal}", info.version);
                refused = Some(Error::Refused { node, refusal });
            }
            Err(e) => return Err(e.into()),
        }
    }
    if checked.is_empty() {
        return Err(refused.map_or_else(|| anyhow!("no node shows '{name}'"), anyhow::Error::from));
    }
    if *json {
        let documents: Vec<_> = checked
            .iter()
            .map(|(info, value)| {
                json!({ "key": name, "version": info.version, "id": hex::encode(info.id), "check_value": value })
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&documents)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![["version", "state", "check value", "id"].map(str::to_owned)];
    rows.extend(
        checked
            .into_iter()
            .map(|(info, value)| [info.version.to_string(), standing(info), value, hex::encode(info.id)]),
    );
    table(&rows);
    Ok(ExitCode::SUCCESS)
}
