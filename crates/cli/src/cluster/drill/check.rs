//! `cluster drill check`: proves every key of a drill's cluster.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use serde_json::json;

use super::loss::{self, Since};
use super::proof::{prove, succeeded, tell};
use crate::client_option::ClientOption;
use crate::{say, stop};

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave key list --json --client ~/.polyclave > real-keys.json          (at the real cluster)\n  \
    polyclave cluster drill check --client drill-client --compare real-keys.json\n\n\
    Ends with 0 if every key that computes anything is proved, else with 1.")]
pub struct Arguments {
    #[command(flatten)]
    client: ClientOption,

    /// What `key list --json` printed of the real cluster: says what a restore would lose and bring back
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stopping = stop::on_signals()?;
    let real = arguments.compare.as_deref().map(loss::read).transpose()?;
    let client = arguments.client.open()?;
    let proved = prove(&client, || stopping.load(Relaxed))?;
    let since = real.map(|real| Since::between(&proved, &real));
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json!({ "keys": proved, "since": since }))?),
        false => {
            tell(&proved);
            loss::tell(since.as_ref());
        }
    }
    Ok(if succeeded(&proved) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
