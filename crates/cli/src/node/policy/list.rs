//! `node policy list`: who may do what.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_config::{ClientPolicy, Entry, Rule, patterns_overlap};
use serde::Serialize;

use super::Source;
use crate::names::words;
use crate::output::table;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node policy list DIR\n  \
    polyclave node policy list DIR --key payroll        (who may do what with this key)\n  \
    polyclave node policy list DIR --key 'pay*'         (with some key of such a name)\n  \
    polyclave node policy list DIR --client alice\n\n\
    A row is what one rule allows one client, or denies it. What any rule denies is denied, whatever else allows it.")]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    /// Only rules for a key of this name, or for some key that fits this pattern
    #[arg(long, value_name = "PATTERN")]
    key: Option<String>,

    /// Only what is for this client
    #[arg(long, value_name = "N")]
    client: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What one rule says about one client.
#[derive(Serialize)]
struct Row {
    client: String,
    effect: &'static str,
    rights: String,
    keys: String,
    modes: String,
    when: String,
    limits: String,
    rule: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let policy = arguments.source.load()?;
    if let Some(client) = &arguments.client {
        let is_known =
            policy.client_named(client).is_some() || policy.authority_client_named(client).is_some();
        ensure!(is_known, "there is no client '{client}' in these rules");
    }
    let about = |keys: &[String]| arguments.key.as_ref().is_none_or(|key| patterns_overlap(keys, key));
    let rows = rows(&policy, arguments.client.as_deref(), about);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        say!("nobody may do this: no rule is about it");
        return Ok(ExitCode::SUCCESS);
    }
    let head = ["client", "effect", "rights", "keys", "modes", "when", "limits", "rule"].map(str::to_owned);
    let lines = rows.into_iter().map(|row| {
        [row.client, row.effect.into(), row.rights, row.keys, row.modes, row.when, row.limits, row.rule]
    });
    table(&[head].into_iter().chain(lines).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

fn rows(policy: &ClientPolicy, only: Option<&str>, about: impl Fn(&[String]) -> bool) -> Vec<Row> {
    let listed = policy
        .clients()
        .iter()
        .map(|c| (c.name.clone(), Entry { name: &c.name, rights: &c.rights, keys: &c.keys }));
    let vouched = policy.authorities().iter().flat_map(|authority| &authority.clients).map(|c| {
        (format!("{} ({})", c.name, c.identity), Entry { name: &c.name, rights: &c.rights, keys: &c.keys })
    });
    let mut rows = Vec::new();
    for (shown, client) in listed.chain(vouched).filter(|(_, c)| only.is_none_or(|name| name == c.name)) {
        if !client.rights.is_empty() && about(client.keys) {
            rows.push(Row {
                client: shown.clone(),
                effect: "allow",
                rights: words(client.rights),
                keys: client.keys.join(", "),
                modes: "all".into(),
                when: "always".into(),
                limits: String::new(),
                rule: "(its entry)".into(),
            });
        }
        for rule in policy.rules_for(client.name).filter(|rule| about(&rule.keys)) {
            rows.push(Row {
                client: shown.clone(),
                effect: if rule.deny { "deny" } else { "allow" },
                rights: words(&rule.rights),
                keys: rule.keys.join(", "),
                modes: if rule.modes.is_empty() { "all".into() } else { words(&rule.modes) },
                when: when(rule),
                limits: limits(rule),
                rule: rule.name.clone(),
            });
        }
    }
    rows
}

fn when(rule: &Rule) -> String {
    let parts = [
        rule.not_before.map(|at| format!("from {at}")),
        rule.not_after.map(|at| format!("to {at}")),
        (!rule.days.is_empty()).then(|| words(&rule.days)),
        rule.hours.map(|hours| hours.to_string()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "always".into() } else { parts.join(", ") }
}

fn limits(rule: &Rule) -> String {
    let set = rule.limits().into_iter().filter_map(|(name, most)| {
        let (what, per) = name.split_once("_per_")?;
        Some(format!("{} {what}/{per}", most?))
    });
    set.collect::<Vec<_>>().join(", ")
}
