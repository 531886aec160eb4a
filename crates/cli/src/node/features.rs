//! `node features`: abilities that not every node of a cluster has, and switching them on.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::NodeDir;
use polyclave_node::admin::{Answer, FeatureState, Instruction, order};

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "A new release can bring features that older programs do not know. A node uses one only once its operator has switched it \
    on, and only with nodes where it is on too. It can be switched on when all nodes run a release that knows it. There is no way to switch it off: an older program \
    refuses the node's directory from then on, and the way back is a backup from before. Until then going back to the program of the release before works."
)]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// Switch a feature on at this node, for ever; the node runs
    #[arg(long, value_name = "NAME")]
    switch_on: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let features = ask(&dir, arguments.switch_on.clone())?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&features)?),
        false => tell(&features),
    }
    Ok(ExitCode::SUCCESS)
}

/// The features of a node, once one is switched on if that is wanted.
pub(crate) fn ask(dir: &NodeDir, switch_on: Option<String>) -> Result<Vec<FeatureState>> {
    match order(dir, &Instruction::Features { switch_on })? {
        Some(Answer::Features { features }) => Ok(features),
        _ => bail!("the node answered something else; is it of another version?"),
    }
}

/// Prints features.
pub(crate) fn tell(features: &[FeatureState]) {
    if features.is_empty() {
        say!("this release has no features to switch on");
    }
    features.iter().for_each(tell_one);
}

fn tell_one(feature: &FeatureState) {
    let FeatureState { name, about, release, on, unknown_at, off_at } = feature;
    let state = match (on, off_at.is_empty(), unknown_at.is_empty()) {
        (true, true, _) => "on".into(),
        (true, false, _) => format!("on here, and not yet at {}: not used with them", off_at.join(", ")),
        (false, _, true) => "off; it can be switched on".into(),
        (false, _, false) => {
            format!(
                "off; before it can be switched on, {} must be connected and run {release}",
                unknown_at.join(", ")
            )
        }
    };
    say!("{name}  {state}");
    say!("    {about} (since {release})");
}
