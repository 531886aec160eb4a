//! `node status`: the status of a running node.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{Moment, Role};
use polyclave_node::admin::{Answer, Instruction, Latency, PeerProgram, Status, order};
use polyclave_node::{AuthorityState, PairState};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{say, stock};

/// Options and arguments of the command.
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
    let Some(answer) = order(&dir, &Instruction::Status)? else {
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
    if status.worker > 0 || status.duty != Role::Both.message() {
        say!("worker     {}; the workers of this number {}", status.worker, status.duty);
    }
    say!("connected  {}", status.connected.join(", "));
    let others = status.programs.iter().filter(|(_, program)| program.version != *version);
    for (name, PeerProgram { version, wire }) in others {
        say!(
            "program    {name} runs version {version}; version {wire} of the wire between nodes is in use with it"
        );
    }
    if !status.features.is_empty() {
        say!("features   {}", status.features.join(", "));
    }
    if !status.missing.is_empty() {
        say!("missing    {}; see this node's log and theirs", status.missing.join(", "));
        for (name, why) in &status.why_missing {
            match why.contains(name.as_str()) {
                true => say!("           {why}"),
                false => say!("           {name}: {why}"),
            }
        }
    }
    for end in status.certificates.iter().filter(|end| end.soon) {
        say!("CERTIFICATE {}", end.message());
    }
    for authority in &status.authorities {
        say!("authority  {}", of_authority(authority));
    }
    say!("keys       {}", status.keys);
    if !status.damaged.is_empty() {
        say!(
            "DAMAGED    {}: this node's shares of them cannot be read; others serve where enough have them. Restore a backup",
            status.damaged.join(", ")
        );
    }
    if status.lacking > 0 {
        say!(
            "LACKING    {} keys that other nodes have: `key list` says which; restore a backup that has them",
            status.lacking
        );
    }
    let held = stock::describe(&status.stock);
    if !held.is_empty() {
        say!("material   {held}");
    }
    for pair in &status.standby {
        say!("standby    {}", standby(pair));
    }
    if let Some(latency) = &status.latency {
        say!("latency    {}", few_blocks(latency));
    }
    if status.corrects && !status.missing.is_empty() {
        say!(
            "correction off: while a node is missing, wrong shares are detected and not corrected, and no material is made"
        );
    }
    if !status.outvoted.is_empty() {
        say!(
            "OUTVOTED   {}: sent this node wrong shares since it started; the answers were right nevertheless",
            status.outvoted.join(", ")
        );
    }
    if !status.silent.is_empty() {
        say!(
            "silent     {}: in the middle of some request since this node started",
            status.silent.join(", ")
        );
    }
    if let Some(why) = &status.audit_failure {
        let then = if status.audit_refuses { "REFUSED" } else { "served without a line" };
        say!("AUDIT LOG  {why}; requests are {then} until it can be written");
    }
    if status.checks_failed > 0 || status.checks_unanswered > 0 {
        say!(
            "checks     {} failed under the MAC key in use, and {} were left without an answer by a peer",
            status.checks_failed,
            status.checks_unanswered
        );
    }
    if let Some(quarantine) = &status.quarantine {
        say!("QUARANTINE {} ({})", quarantine.reason, since(quarantine.since));
        say!(
            "           This node computes nothing any more. Find out which machine was altered; when all are sound, order"
        );
        say!("           fresh shares at every node: polyclave node refresh DIR");
    }
    if let Some(refreshed) = status.refreshed {
        say!("shares     {}", since(refreshed));
    }
    if !status.rotating.is_empty() {
        say!(
            "refresh    ordered at {} of {nodes} nodes: {}",
            status.rotating.len(),
            status.rotating.join(", ")
        );
    }
    if status.refreshing {
        say!("refresh    under way: {} of {} keys", status.refreshed_keys, status.refreshed_of);
    }
    if let Some(trouble) = &status.refresh_trouble {
        say!("refresh    not done: {trouble}");
    }
    if let Some(clock) = status.clock.as_ref().filter(|clock| Some(*clock) != status.why_not_ready.as_ref()) {
        say!("CLOCK      {clock}");
    }
    match &status.why_not_ready {
        None => say!("ready      yes"),
        Some(why) => say!("ready      no: {why}"),
    }
}

/// A stored time, formatted for people.
fn since(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    let text = time.and_then(|time| time.format(&Rfc3339).ok());
    text.map_or_else(String::new, |text| format!("since {text}"))
}

/// How few blocks are computed, in a line.
fn few_blocks(latency: &Latency) -> String {
    let Latency { round_trip_ms, from_ms, blocks, at_once } = latency;
    match round_trip_ms {
        None => format!("the first node measures it; {blocks} blocks went through garbled circuits"),
        Some(ms) if ms >= from_ms => format!(
            "{ms} ms there and back: few blocks at a time go through garbled circuits ({blocks} so far; {at_once} requests began in one round)"
        ),
        Some(ms) => format!(
            "{ms} ms there and back: all blocks are computed in rounds, below {from_ms} ms ({blocks} went through garbled circuits)"
        ),
    }
}

/// What an authority has in force, in a line.
fn of_authority(authority: &AuthorityState) -> String {
    let AuthorityState { name, certificates, ends, problem } = authority;
    let until = Moment::from_seconds(*ends);
    let stands = match certificates {
        0 => format!("{name} vouches for nobody"),
        count => format!("{name} vouches for clients, with {count} certificates until {until}"),
    };
    match problem {
        None => stands,
        Some(why) => format!("{stands}; ITS FILE IS NOT TAKEN as it is now: {why}"),
    }
}

/// How a standby pair stands, in a line.
fn standby(pair: &PairState) -> String {
    let PairState { partner, keys, lacking, blocks, .. } = pair;
    let stands = match (&pair.why_not_ready, pair.serves) {
        (None, true) => "serves".to_owned(),
        (None, false) => "is ready".to_owned(),
        (Some(why), _) => format!("is not ready: {why}"),
    };
    let lacks = if *lacking > 0 { format!(", lacks {lacking}") } else { String::new() };
    format!("with {partner} {stands} ({keys} keys{lacks}; {blocks} blocks computed)")
}
