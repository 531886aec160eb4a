//! What is wrong, in words, and what to do about it. The worst comes first.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::snapshot::{Cluster, Shown, is_not_allowed};

/// The most that are told.
const MOST: usize = 12;
/// The part of a budget or a stock below which it is low.
const LOW: f64 = 0.1;
/// A key that expires within so many seconds is told.
const SOON: u64 = 7 * 24 * 3600;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Bad,
    Warn,
}

struct Alarms(Vec<(Level, String, String)>);

impl Alarms {
    fn bad(&mut self, what: impl Into<String>, to_do: impl Into<String>) {
        self.0.push((Level::Bad, what.into(), to_do.into()));
    }

    fn warn(&mut self, what: impl Into<String>, to_do: impl Into<String>) {
        self.0.push((Level::Warn, what.into(), to_do.into()));
    }
}

/// All alarms.
pub(super) fn alarms(cluster: &Cluster, nodes: &[Shown<'_>], now: u64) -> Value {
    let mut alarms = Alarms(Vec::new());
    if nodes.iter().any(|node| node.seen.told.is_some() || node.seen.gone.is_some()) {
        of_the_cluster(&mut alarms, cluster, nodes);
    }
    for node in nodes {
        of_reach(&mut alarms, node);
        of_state(&mut alarms, node);
        of_audit(&mut alarms, node);
        of_stock(&mut alarms, node);
    }
    of_certificates(&mut alarms, nodes);
    of_keys(&mut alarms, nodes, now);
    let Alarms(mut all) = alarms;
    all.sort_by_key(|(level, ..)| *level);
    let beyond = all.len().saturating_sub(MOST);
    let rows: Vec<Value> = all
        .into_iter()
        .take(MOST)
        .map(|(level, what, to_do)| json!({ "level": level, "what": what, "to_do": to_do }))
        .collect();
    json!({ "rows": rows, "beyond": beyond })
}

fn of_the_cluster(alarms: &mut Alarms, cluster: &Cluster, nodes: &[Shown<'_>]) {
    let Cluster { needed, nodes: all, cliques, .. } = cluster;
    let answering =
        |worker: u16| nodes.iter().filter(|node| node.worker == worker && node.what().is_some()).count();
    let serving: BTreeSet<u16> =
        nodes.iter().filter(|node| node.duty.serves()).map(|node| node.worker).collect();
    let there = serving.iter().map(|worker| answering(*worker)).max().unwrap_or_default();
    if there < *needed {
        alarms.bad(
            format!("Requests cannot be served: {there} of {all} nodes answer, and {needed} are needed."),
            "Start the nodes that are gone.",
        );
    } else if *cliques > 1 {
        for worker in serving.into_iter().filter(|worker| answering(*worker) < *needed) {
            alarms.bad(
                format!(
                    "Workers {worker} serve nothing: {} of {all} answer, and {needed} are needed. Others serve.",
                    answering(worker)
                ),
                "Start those that are gone.",
            );
        }
    }
    let off = |node: &&Shown<'_>| {
        node.report().is_some_and(|report| report.corrects && report.status.connected.len() < *all)
    };
    if there >= *needed && nodes.iter().find(off).is_some() {
        alarms.warn(
            "Correction is off: wrong shares are detected and not corrected, and no material is made.",
            "Bring the missing node back; correction is on again when all nodes see each other.",
        );
    }
    let versions: BTreeSet<&str> =
        nodes.iter().filter_map(|node| Some(node.what()?.status().version.as_str())).collect();
    if versions.len() > 1 {
        let told = versions.into_iter().collect::<Vec<_>>().join(" and ");
        alarms.warn(format!("The nodes run versions {told}."), "Upgrade them to the same version.");
    }
}

fn of_reach(alarms: &mut Alarms, node: &Shown<'_>) {
    let name = &node.name;
    match node.gone() {
        Some((_, why)) if is_not_allowed(why) => alarms.bad(
            format!("{name} does not admit this client."),
            "Its operator runs `polyclave node allow` there with the client's card.",
        ),
        Some((seconds, why)) => alarms.bad(
            format!("{name} is not reached since {}: {}.", time(seconds), why.to_string().trim_end_matches('.')),
            format!("Start it (`polyclave node run` on its machine), or look at its log and the network to {name}."),
        ),
        None => {
            if let Some(asked) = node.seen.asked.map(|at| at.elapsed().as_secs()).filter(|s| *s >= 3) {
                alarms.warn(
                    format!("{name} has not answered for {asked} s."),
                    "It may be busy, stopped or cut off; its log says more.",
                );
            }
        }
    }
}

fn of_state(alarms: &mut Alarms, node: &Shown<'_>) {
    let (Some(what), name) = (node.what(), &node.name) else { return };
    let status = what.status();
    if status.quarantined {
        let why = node.report().and_then(|report| report.quarantine.as_deref()).unwrap_or("a check failed");
        alarms.bad(
            format!("{name} is under quarantine, and computes nothing: {why}."),
            "Find out which machine was altered. When all are sound, order `polyclave node refresh` at every node.",
        );
    } else if let Some(why) = node.report().and_then(|report| report.why_not_ready.as_deref()) {
        alarms
            .bad(format!("{name} cannot serve: {why}."), "`polyclave node status` on its machine says more.");
    } else if !status.set_up || !status.prepared {
        alarms.warn(
            format!("{name} prepares itself together with the others."),
            "Wait; all nodes have to run at once.",
        );
    }
    if status.damaged > 0 {
        alarms.bad(
            format!("{name} cannot read its shares of {} keys.", status.damaged),
            "Its operator restores a backup.",
        );
    }
    if status.lacking > 0 {
        alarms.warn(
            format!("{name} lacks {} keys that other nodes have.", status.lacking),
            "`polyclave key list` says which; its operator restores a backup that has them.",
        );
    }
    let Some(report) = node.report() else { return };
    for (peer, why) in &report.why_missing {
        alarms.warn(
            format!("{name} does not see {peer}: {why}."),
            "Look at the network between the two, and at both logs.",
        );
    }
    if let Some(clock) = &report.clock {
        alarms.bad(
            format!("The clock of {name} does not fit: {clock}."),
            "Set the clock, or change the certificate.",
        );
    }
    if report.checks_failed > 0 {
        alarms.bad(
            format!("{name} saw {} failed checks under the MAC key in use.", report.checks_failed),
            "Some node deviated or is broken: compare the audit logs, then `polyclave node refresh`.",
        );
    }
    for fault in report.faults.iter().filter(|fault| fault.outvoted > 0) {
        alarms.bad(
            format!(
                "{name} says that {} sent wrong shares in {} requests, and was outvoted.",
                fault.node, fault.outvoted
            ),
            format!("Take {} off the network and look at its machine: it cheats, or is broken.", fault.node),
        );
    }
}

fn of_audit(alarms: &mut Alarms, node: &Shown<'_>) {
    let name = &node.name;
    if let Some(why) = node.seen.history.contradiction() {
        alarms.bad(
            format!("The audit log of {name} does not go on from where it was: {why}."),
            "Unless its operator began a new log or restored a backup, lines were taken away: `polyclave node audit`.",
        );
    }
    if let Some(why) = node.report().and_then(|report| report.audit_failure.as_deref()) {
        alarms.bad(
            format!("The audit log of {name} cannot be written: {why}."),
            "Make room on its disk, or mend it.",
        );
    }
}

fn of_stock(alarms: &mut Alarms, node: &Shown<'_>) {
    for level in node.what().map(|what| what.status().stock.as_slice()).unwrap_or_default() {
        if level.level > 0 && (level.blocks as f64) < LOW * level.level as f64 {
            alarms.warn(
                format!(
                    "{} has {} of {} blocks of {} in stock.",
                    node.name, level.blocks, level.level, level.kind
                ),
                "Requests wait while the nodes make more; raise the level if that is often so.",
            );
        }
    }
}

fn of_certificates(alarms: &mut Alarms, nodes: &[Shown<'_>]) {
    let reports = nodes.iter().filter_map(Shown::report);
    let soon: BTreeSet<_> = reports
        .flat_map(|report| report.certificates.iter().filter(|date| date.soon).map(move |d| (d, report.now)))
        .map(|(date, now)| (date.ends.saturating_sub(now) / 86_400, date.of.as_str(), date.name.as_str()))
        .collect();
    for (days, of, name) in soon {
        let what = format!("The certificate of the {of} {name} ends in {days} days.");
        let to_do = format!("Change it with `polyclave {of} rotate`.");
        if days < 2 { alarms.bad(what, to_do) } else { alarms.warn(what, to_do) }
    }
}

fn of_keys(alarms: &mut Alarms, nodes: &[Shown<'_>], now: u64) {
    let reports = || nodes.iter().filter_map(|node| node.report()?.keys.as_ref());
    let low: BTreeSet<_> = reports()
        .flat_map(|keys| &keys.least)
        .filter(|key| (key.budget.saturating_sub(key.spent) as f64) < LOW * key.budget as f64)
        .map(|key| (key.name.as_str(), key.version))
        .collect();
    for (name, version) in low {
        alarms.warn(
            format!("The key {name} (version {version}) has less than a tenth of its budget left."),
            format!("Make a new version: `polyclave key rotate {name}`."),
        );
    }
    let expiring: BTreeSet<_> = reports()
        .flat_map(|keys| &keys.ending)
        .filter(|key| !key.removed && key.at > now && key.at - now < SOON)
        .map(|key| (key.at - now, key.name.as_str()))
        .collect();
    for (left, name) in expiring {
        alarms.warn(
            format!("The key {name} expires in {}, and only decrypts then.", time(left)),
            format!("Make a new version: `polyclave key rotate {name}`."),
        );
    }
}

fn time(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
