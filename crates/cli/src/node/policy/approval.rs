//! `node policy approver` and `node policy approval`: who approves, and what.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ApprovalRule, ClientCard, NodeOperation, certificate_fingerprint};

use super::refuse_unapproved;
use crate::names::parse_rights;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave node policy approver DIR ann.toml ben.toml cy.toml\n\n\
    An approver makes keys with `client init`, like a client, and need not be one. A card of a known approver replaces the certificate: what was \
    signed under the old one counts no more.")]
pub struct ApproverArguments {
    /// The node's directory
    dir: PathBuf,

    /// Their cards
    #[arg(required = true)]
    cards: Vec<PathBuf>,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node policy approval DIR payroll --need 2 --of ann,ben,cy --rights delete,wrap --keys 'payroll-*'\n  \
    polyclave node policy approval DIR rules --need 2 --of ann,ben,cy --node policy")]
pub struct ApprovalArguments {
    /// The node's directory
    dir: PathBuf,

    /// A name for it. What has this name already is replaced
    name: String,

    /// How many approvers it takes
    #[arg(long, value_name = "M")]
    need: usize,

    /// Which approvers count
    #[arg(long, value_name = "N,..", required = true, value_delimiter = ',')]
    of: Vec<String>,

    /// Requests of clients that need one of these rights, or all
    #[arg(long, value_name = "R,..", requires = "keys")]
    rights: Option<String>,

    /// For keys of these names or patterns
    #[arg(long, value_name = "K,..", value_delimiter = ',', requires = "rights")]
    keys: Vec<String>,

    /// What the node's operator does: policy
    #[arg(long, value_name = "O,..", value_delimiter = ',', value_parser = ["policy"])]
    node: Vec<String>,

    /// Let the client that asks count, if it is one of the approvers
    #[arg(long)]
    requester_counts: bool,
}

/// Adds approvers.
pub fn approver(arguments: &ApproverArguments) -> Result<ExitCode> {
    let dir = super::super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let cards = arguments.cards.iter().map(|card| ClientCard::load(card)).collect::<Result<Vec<_>, _>>()?;
    cards.iter().try_for_each(|card| policy.set_approver(card))?;
    dir.save_policy(&policy)?;
    for card in cards {
        say!("{} can approve at {}", card.name, dir.settings().name);
        say!("  known by {}", certificate_fingerprint(&card.certificate));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets what needs approval.
pub fn approval(arguments: &ApprovalArguments) -> Result<ExitCode> {
    let dir = super::super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let rule = ApprovalRule {
        name: arguments.name.clone(),
        rights: arguments.rights.as_deref().map(parse_rights).transpose()?.unwrap_or_default(),
        keys: arguments.keys.clone(),
        // The only one that the option takes.
        node: arguments.node.iter().map(|_| NodeOperation::Policy).collect(),
        need: arguments.need,
        of: arguments.of.clone(),
        requester_counts: arguments.requester_counts,
    };
    let told = rule.told();
    policy.set_approval(rule)?;
    dir.save_policy(&policy)?;
    say!("{told} at {} (approval {})", dir.settings().name, arguments.name);
    Ok(ExitCode::SUCCESS)
}
