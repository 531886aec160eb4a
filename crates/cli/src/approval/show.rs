//! `approval show`: says what is approved, from the bytes that are signed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_api::{Approval, Statement};
use polyclave_config::{Moment, load_approval};

use crate::say;
use crate::statement::{signers, tell, what};

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Everything is read from the bytes that are signed; the file has no other text. The purpose is what whoever made the \
    request says, and no node reads it."
)]
pub struct Arguments {
    /// The file of the request
    file: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (approval, statement) = load_approval(&arguments.file)?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&json(&approval, &statement))?);
    } else {
        tell(&approval, &statement);
    }
    Ok(ExitCode::SUCCESS)
}

fn json(approval: &Approval, statement: &Statement) -> serde_json::Value {
    let signers = signers(approval).into_iter();
    let signers = signers
        .map(|(certificate, verifies)| serde_json::json!({"certificate": certificate, "verifies": verifies}));
    let keys = statement
        .keys
        .iter()
        .map(|key| serde_json::json!({"name": key.name, "version": key.version, "id": hex::encode(key.id)}));
    serde_json::json!({
        "what": what(statement),
        "keys": keys.collect::<Vec<_>>(),
        "cluster": hex::encode(statement.cluster),
        "until": Moment::from_seconds(statement.not_after).to_string(),
        "purpose": statement.purpose,
        "digest": hex::encode(approval.digest()),
        "signatures": signers.collect::<Vec<_>>(),
    })
}
