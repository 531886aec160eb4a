//! `node allow` and `node revoke`: what clients may do at a node. A running node takes the change within a
//! second.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use polyclave_api::Right;
use polyclave_config::{
    AuthorityClient, ClientCard, ClientPolicy, ClientSuccession, Day, Hours, Moment, Rule,
    certificate_fingerprint,
};

use polyclave_transport::identity_of;

use super::policy::refuse_unapproved;
use crate::names::{parse_days, parse_modes, parse_rights, words};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node allow DIR alice.toml --rights encrypt,decrypt,list --keys 'invoices,report-*'\n  \
    polyclave node allow DIR admin.toml --rights all --keys '*'\n  \
    polyclave node allow DIR alice.toml --add --rights encrypt --keys 'payroll-*' --modes gcm --not-after 2026-12-31T18:00:00Z\n  \
    polyclave node allow DIR bob.toml --group office\n  \
    polyclave node allow DIR alice.toml                  after `polyclave client rotate`: she keeps what she may do\n\n\
    Without --add, --rights and --keys are all that the client's entry has from now on. With --add they become a rule of its own (--rule names \
    it), beside what there is. The rules of a group are for all its clients (in the file: groups = [\"office\"]). Everything is in \
    DIR/clients.toml; `node policy` tries and lists it.\n\n\
    A client can do what enough nodes allow: every node's operator decides for that node. Who may both encrypt and decrypt can \
    use the key as a key; who may generate, import or delete can take it away from others. Who may wrap can have wrappable keys leave the nodes under any \
    key for wrapping among these names, also under one that somebody else has: give it to few. A client keeps its certificate: another one under its name is \
    refused without --replace, except the next one of `polyclave client rotate`, for which the current one vouches.")]
pub struct AllowArguments {
    /// The node's directory
    dir: PathBuf,

    /// The client's card
    card: PathBuf,

    #[arg(long, value_name = "R,..", requires = "keys", help = rights_help())]
    rights: Option<String>,

    /// Names of keys, or patterns: '*' stands for any characters, '?' for one
    #[arg(long, value_name = "K,..", requires = "rights", value_delimiter = ',')]
    keys: Vec<String>,

    /// Let this card replace another certificate with the client's name
    #[arg(long)]
    replace: bool,

    /// Put the client into this group, which is made if there is none
    #[arg(long, value_name = "G", conflicts_with_all = ["rights", "keys", "add"])]
    group: Option<String>,

    /// Add a rule, and leave what the client may do already
    #[arg(long)]
    add: bool,

    #[command(flatten)]
    conditions: Conditions,
}

fn rights_help() -> String {
    format!(
        "{}, or all. They replace all rights that the client's entry had before, except with --add",
        words(&Right::ALL)
    )
}

/// The conditions of a rule that is added.
#[derive(clap::Args)]
#[group(id = "conditions", multiple = true, requires = "add")]
struct Conditions {
    /// The name of the rule. A rule of this name is replaced
    #[arg(long, value_name = "N")]
    rule: Option<String>,

    /// Forbid it instead, whatever else allows it
    #[arg(long)]
    deny: bool,

    /// Only in these modes
    #[arg(long, value_name = "M,..")]
    modes: Option<String>,

    /// Only files in envelopes that these clients wrote: names, or patterns with * and ?
    #[arg(long, value_name = "N,..")]
    owners: Option<String>,

    /// From this moment on, such as 2026-12-31T18:00:00Z
    #[arg(long, value_name = "T")]
    not_before: Option<Moment>,

    /// Up to this moment
    #[arg(long, value_name = "T")]
    not_after: Option<Moment>,

    /// Only on these days of the week, in UTC: mon,tue,..
    #[arg(long, value_name = "D,..")]
    days: Option<String>,

    /// Only at these hours, in UTC: 08:00-18:00
    #[arg(long, value_name = "H")]
    hours: Option<Hours>,

    /// At most so many requests in an hour of the clock, at this node
    #[arg(long, value_name = "N")]
    requests_per_hour: Option<NonZeroU64>,

    /// At most so many requests in a day
    #[arg(long, value_name = "N")]
    requests_per_day: Option<NonZeroU64>,

    /// At most so many blocks in an hour of the clock
    #[arg(long, value_name = "N")]
    blocks_per_hour: Option<NonZeroU64>,

    /// At most so many blocks in a day
    #[arg(long, value_name = "N")]
    blocks_per_day: Option<NonZeroU64>,
}

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave node revoke DIR alice\n\n\
    Nodes decide each for itself: revoke the client at all of them.")]
pub struct RevokeArguments {
    /// The node's directory
    dir: PathBuf,

    /// The client's name
    client: String,
}

/// Allows.
pub fn allow(arguments: &AllowArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let succession = ClientSuccession::load(&arguments.card)?;
    let card = succession.card();
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let node = &dir.settings().name;
    let keeps = arguments.rights.is_none() && arguments.group.is_none();
    take_certificates(&succession, keeps && !arguments.replace, &mut policy)?;
    let message = match (&arguments.group, &arguments.rights) {
        (Some(group), _) => {
            policy.know(&card, arguments.replace)?;
            policy.join_group(group, &card.name)?;
            format!("{} is in the group {group} at {node}", card.name)
        }
        (None, Some(rights)) => allow_keys(arguments, rights, &card, &mut policy, node)?,
        (None, None) if arguments.add => bail!("a rule needs rights and keys; give --rights and --keys"),
        (None, None) => {
            if arguments.replace {
                let name = &card.name;
                let known = policy.client_named(name).is_some();
                ensure!(
                    known,
                    "there is no client {name} here yet; say with --rights and --keys what it may do"
                );
                policy.know(&card, true)?;
            }
            format!("{} keeps its rights at {node}", card.name)
        }
    };
    take_certificates(&succession, false, &mut policy)?;
    dir.save_policy(&policy)?;
    say!("{message}");
    for certificate in policy.client_named(&card.name).into_iter().flat_map(|known| known.certificates()) {
        say!("  known by {}", certificate_fingerprint(certificate));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the certificates of a card: of a client that is known, and has changed or changes its certificate.
/// Of another client nothing is taken here, or it `must` be one that is known.
fn take_certificates(succession: &ClientSuccession, must: bool, policy: &mut ClientPolicy) -> Result<()> {
    let card = succession.card();
    let known = policy.client_named(&card.name).is_some_and(|known| known.is_known_by(&card.certificate));
    if known || must {
        policy.succeed(succession)?;
    }
    Ok(())
}

/// Puts what the client may do with keys into the rules. Returns what to tell.
fn allow_keys(
    arguments: &AllowArguments,
    rights: &str,
    card: &ClientCard,
    policy: &mut ClientPolicy,
    node: &str,
) -> Result<String> {
    let rights = parse_rights(rights)?;
    let keys: Vec<String> = arguments.keys.iter().map(|key| key.trim().to_owned()).collect();
    let (rights_told, keys_told) = (words(&rights), keys.join(", "));
    if !arguments.add {
        match arguments.replace {
            true => policy.replace(card, &rights, &keys)?,
            false => policy.allow(card, &rights, &keys)?,
        }
        let others = policy.rules_for(&card.name).count();
        let else_told = match others {
            0 => "and nothing else".to_owned(),
            others => format!("besides what {others} rules say (`node policy list`)"),
        };
        return Ok(format!(
            "{} may {rights_told} at {node} with the keys {keys_told}, {else_told}",
            card.name
        ));
    }
    let conditions = &arguments.conditions;
    policy.know(card, arguments.replace)?;
    let name = conditions.rule.clone().unwrap_or_else(|| free_name(policy, &card.name));
    let rule = conditions.rule_for(name.clone(), card, rights, keys)?;
    let may = if rule.deny { "may no longer" } else { "may" };
    policy.set_rule(rule)?;
    Ok(format!("{} {may} {rights_told} at {node} with the keys {keys_told}, by the rule {name}", card.name))
}

/// A name for a rule of a client that no other rule has.
fn free_name(policy: &ClientPolicy, client: &str) -> String {
    let taken = |name: &String| policy.rules().iter().any(|rule| rule.name == *name);
    let short: String = client.chars().take(56).collect();
    (1u32..).map(|n| format!("{short}-{n}")).find(|name| !taken(name)).unwrap_or_default()
}

impl Conditions {
    fn rule_for(
        &self,
        name: String,
        card: &ClientCard,
        rights: Vec<Right>,
        keys: Vec<String>,
    ) -> Result<Rule> {
        let days: Vec<Day> = self.days.as_deref().map(parse_days).transpose()?.unwrap_or_default();
        let modes = self.modes.as_deref().map(parse_modes).transpose()?.unwrap_or_default();
        let owners = self
            .owners
            .as_deref()
            .map_or(Vec::new(), |text| text.split(',').map(|name| name.trim().to_owned()).collect());
        ensure!(!keys.is_empty(), "give --keys");
        Ok(Rule {
            name,
            deny: self.deny,
            clients: vec![card.name.clone()],
            groups: Vec::new(),
            rights,
            keys,
            modes,
            owners,
            not_before: self.not_before,
            not_after: self.not_after,
            days,
            hours: self.hours,
            requests_per_hour: self.requests_per_hour,
            requests_per_day: self.requests_per_day,
            blocks_per_hour: self.blocks_per_hour,
            blocks_per_day: self.blocks_per_day,
        })
    }
}

/// Revokes.
pub fn revoke(arguments: &RevokeArguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let mut policy = dir.policy()?;
    refuse_unapproved(&policy)?;
    let (client, node) = (&arguments.client, &dir.settings().name);
    let listed = policy.client_named(client).map(|listed| identity_of(&listed.certificate));
    if let Some(entry) = policy.authority_client_named(client)
        && let Some(other) = other_that_fits(&policy, client, &entry.identity)
    {
        bail!(
            "{client} stays at {node}: its identity is one of {}, too, so it would go on with the rights of that entry, without the rules \
             that deny something to {client}. Deny it everything by a rule with deny = true for {client} in clients.toml, or revoke {} first",
            other.name,
            other.name
        );
    }
    policy.revoke(client)?;
    dir.save_policy(&policy)?;
    say!("{client} has no rights at {node} any more; revoke it at the other nodes, too");
    if let Some(Ok(identity)) = listed
        && let Some(other) = other_that_fits(&policy, client, &identity)
    {
        say!(
            "its certificate names {identity}, though: if an authority has signed it, it goes on as one of {}",
            other.name
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Another entry of an authority that an identity fits, or all that a pattern stands for.
fn other_that_fits<'p>(policy: &'p ClientPolicy, name: &str, identity: &str) -> Option<&'p AuthorityClient> {
    let entries = policy.authorities().iter().flat_map(|authority| &authority.clients);
    entries.into_iter().find(|entry| entry.name != name && entry.fits(identity))
}
