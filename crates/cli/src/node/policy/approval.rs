//! `node policy approver` and `node policy approval`: who approves, and what.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use polyclave_config::{ApprovalRule, ClientCard, NodeOperation, Quorum, certificate_fingerprint};

use super::refuse_unapproved;
use crate::names::parse_rights;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node policy approver DIR ann.toml ben.toml cy.toml\n  \
    polyclave node policy approver DIR ann.toml ben.toml --group custodians\n\n\
    An approver makes keys with `client init`, like a client, and need not be one. A card of a known approver replaces the certificate: what was \
    signed under the old one counts no more.")]
pub struct ApproverArguments {
    /// The node's directory
    dir: PathBuf,

    /// Their cards
    #[arg(required = true)]
    cards: Vec<PathBuf>,

    /// Put them into this group of approvers, too, which approvals name with an @
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node policy approval DIR payroll --need 2 --of ann,ben,cy --rights delete,wrap --keys 'payroll-*'\n  \
    polyclave node policy approval DIR rules --need 2 --of ann,ben,cy --node policy\n  \
    polyclave node policy approval DIR moves --need 2 --of @custodians --and 1:@auditors --node reshare,refresh\n\n\
    With --node refresh, no refresh is ordered by node.toml alone any more ([refresh] every_days): the node says when one is due.")]
pub struct ApprovalArguments {
    /// The node's directory
    dir: PathBuf,

    /// A name for it. What has this name already is replaced
    name: String,

    /// How many approvers it takes
    #[arg(long, value_name = "M")]
    need: usize,

    /// Which approvers count: names, or groups with an @
    #[arg(long, value_name = "N,..", required = true, value_delimiter = ',')]
    of: Vec<String>,

    /// Requests of clients that need one of these rights, or all
    #[arg(long, value_name = "R,..", requires = "keys")]
    rights: Option<String>,

    /// For keys of these names or patterns
    #[arg(long, value_name = "K,..", value_delimiter = ',', requires = "rights")]
    keys: Vec<String>,

    /// Whom it takes besides: a number, and out of which names and groups. May be given several times. Who is
    /// named in several parts counts in each
    #[arg(long, value_name = "M:N+..", value_parser = parse_quorum)]
    and: Vec<Quorum>,

    /// What the node's operator does: policy, refresh, reshare
    #[arg(long, value_name = "O,..", value_delimiter = ',', value_parser = parse_operation)]
    node: Vec<NodeOperation>,

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
    if let Some(group) = &arguments.group {
        cards.iter().try_for_each(|card| policy.join_approvers(group, &card.name))?;
    }
    dir.save_policy(&policy)?;
    for card in cards {
        say!("{} can approve at {}", card.name, dir.settings().name);
        say!("  known by {}", certificate_fingerprint(&card.certificate));
    }
    if let Some(group) = &arguments.group {
        say!("in the group @{group}");
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_operation(text: &str) -> Result<NodeOperation> {
    let all = NodeOperation::ALL.map(|operation| operation.to_string());
    let found = NodeOperation::ALL.into_iter().find(|operation| operation.to_string() == text);
    found.ok_or_else(|| anyhow!("it is one of {}", all.join(", ")))
}

/// A number and names: `1:@auditors+dora`.
fn parse_quorum(text: &str) -> Result<Quorum> {
    let (need, of) =
        text.split_once(':').context("write a number, a colon and names, such as 1:@auditors+dora")?;
    let need = need.parse().context("before the colon is a number")?;
    Ok(Quorum { need, of: of.split('+').map(str::to_owned).collect() })
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
        node: arguments.node.clone(),
        need: arguments.need,
        of: arguments.of.clone(),
        requester_counts: arguments.requester_counts,
        and: arguments.and.clone(),
    };
    let message = rule.message();
    policy.set_approval(rule)?;
    dir.save_policy(&policy)?;
    say!("{message} at {} (approval {})", dir.settings().name, arguments.name);
    Ok(ExitCode::SUCCESS)
}
