//! `node status`: how a running node is.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_node::admin::{Answer, Order, Status, order};

use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
#[command(
    after_help = "Ends with 0 if the node runs and can serve, else with 1. For monitoring see also /readyz and /metrics."
)]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let Some(answer) = order(&dir, &Order::Status)? else {
        let name = &dir.settings().name;
        match arguments.json {
            true => say!("{}", serde_json::json!({ "name": name, "running": false })),
            false => {
                say!("{name} is not running; start it with `polyclave node run {}`", arguments.dir.display())
            }
        }
        return Ok(ExitCode::FAILURE);
    };
    let Answer::Status(status) = answer else {
        bail!("the node answered something else; is it of another version?")
    };
    if arguments.json {
        let mut document = serde_json::to_value(&status)?;
        document["running"] = true.into();
        say!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        tell(&status);
    }
    Ok(if status.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(status: &Status) {
    let Status { name, party, nodes, version, protocol, .. } = status;
    say!("{name} is running: node {party} of {nodes}, version {version}, start {}", status.starts);
    say!("protocol   {protocol}: {}", status.adversary);
    say!("connected  {}", status.connected.join(", "));
    if !status.missing.is_empty() {
        say!("missing    {}; see this node's log and theirs", status.missing.join(", "));
    }
    say!("keys       {}", status.keys);
    match (status.ready, status.set_up) {
        (true, _) => say!("ready      yes"),
        (_, false) => say!("ready      no: all nodes have to be running at once, this first time"),
        (_, true) => say!("ready      no: {} nodes are needed, this one included", status.needed),
    }
}
