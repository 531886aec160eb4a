//! `node policy check`: whether the rules allow something, and by which of them.

use polyclave_api::Permission;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{Asker, ClientPolicy, Judgement, Moment};

use super::Source;
use crate::names::{parse_mode, parse_right};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node policy check DIR --client alice --right encrypt --mode gcm --key payroll\n  \
    polyclave node policy check --file new.toml --client alice --right delete --key payroll --at 2027-01-01T12:00:00Z\n\n\
    The exit status is 0 if it is allowed, and 2 if not. How much of a rule's limits is used up is known to the running node only.")]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    /// The client's name; of a client of an authority, its identity
    #[arg(long, value_name = "N")]
    client: String,

    /// What it wants to do: encrypt, delete and so on
    #[arg(long, value_name = "R")]
    right: String,

    /// In which mode, for encrypt, decrypt and mac
    #[arg(long, value_name = "M")]
    mode: Option<String>,

    /// With which key
    #[arg(long, value_name = "K", default_value = "")]
    key: String,

    /// Written by which client, for a file in an envelope
    #[arg(long, value_name = "N")]
    owner: Option<String>,

    /// At which moment; now, if not given
    #[arg(long, value_name = "T")]
    at: Option<Moment>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let policy = arguments.source.load()?;
    let mode = arguments.mode.as_deref().map(parse_mode).transpose()?;
    let owner = arguments.owner.clone();
    let asked = Permission { mode, owner, ..Permission::of(parse_right(&arguments.right)?, &arguments.key) };
    let at = arguments.at.unwrap_or_else(Moment::now);
    let name = &arguments.client;
    let judgement = policy.judge(asker(&policy, name)?, &asked, at);
    let allowed = judgement.is_allowed();
    let needs = policy.approvals_for(std::slice::from_ref(&asked));
    let needs: Vec<String> = needs
        .iter()
        .filter(|_| allowed)
        .map(|rule| format!("{} (approval {})", rule.message(), rule.name))
        .collect();
    if arguments.json {
        let (rules, lacks) = match &judgement {
            Judgement::Allowed(grants) => (grants.iter().map(|grant| grant.message()).collect(), Vec::new()),
            Judgement::Denied(rule) => (vec![format!("the rule {}", rule.name)], Vec::new()),
            Judgement::NotAllowed(Some((nearest, lacks))) => (vec![nearest.message()], lacks.clone()),
            Judgement::NotAllowed(None) | Judgement::Unknown => (Vec::new(), Vec::new()),
        };
        let denied = matches!(judgement, Judgement::Denied(_));
        let document = serde_json::json!({
            "allowed": allowed, "denied": denied, "rules": rules, "lacks": lacks, "needs_approval": needs, "at": at.to_string(),
        });
        say!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        let not = if allowed { "may" } else { "may not" };
        say!("{name} {not} {asked}, at {at}");
        match &judgement {
            Judgement::Allowed(grants) => grants.iter().for_each(|grant| {
                let limited = matches!(grant, polyclave_config::Grant::Rule(rule) if rule.is_limited());
                say!("  allowed by {}{}", grant.message(), if limited { ", within its limits" } else { "" });
            }),
            Judgement::Denied(rule) => say!("  denied by the rule {}", rule.name),
            Judgement::NotAllowed(Some((nearest, lacks))) => {
                say!("  {} comes nearest: {}", nearest.message(), lacks.join("; "));
            }
            Judgement::NotAllowed(None) | Judgement::Unknown => say!("  no rule is for {name}"),
        }
    }
    if !arguments.json {
        needs.iter().for_each(|needed| say!("  needs approval: {needed}"));
    }
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// A client by its name, or by the identity that an authority vouches for.
fn asker<'p>(policy: &'p ClientPolicy, name: &'p str) -> Result<Asker<'p>> {
    if let Some(client) = policy.client_named(name) {
        return Ok(Asker::Listed(&client.certificate));
    }
    if let Some(of) = policy.authority_of(name) {
        return Ok(Asker::Signed { authority: &of.name, identity: name });
    }
    if let Some(clients) = policy.authority_client_named(name) {
        bail!("'{name}' are clients of an authority; give the identity of one, such as {}", clients.identity)
    }
    bail!("there is no client '{name}' in these rules; it may do nothing")
}
