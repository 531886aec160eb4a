//! What is wrong, in words, and what to do about it. The worst comes first.
//!
//! One cause is one alarm. Its consequences are told under it: a node that does not answer is one alarm, for
//! any number of nodes that miss it.

mod kind;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::snapshot::{Cluster, Shown, is_not_allowed};
use kind::Kind;

/// The most alarms that are told, and the most consequences under one.
const MAX: usize = 12;
const MAX_UNDER: usize = 8;
/// The part of a budget or a stock below which it is low.
const LOW: f64 = 0.1;
/// A key that expires within this many seconds is told.
const SOON: u64 = 7 * 24 * 3600;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Bad,
    Warn,
}

struct Alarm {
    kind: Kind,
    level: Level,
    what: String,
    to_do: String,
    /// Its consequences: the names of the nodes concerned, and the message.
    under: Vec<(Vec<String>, String)>,
}

#[derive(Default)]
struct Alarms {
    all: Vec<Alarm>,
    /// Where the alarm is from which others follow, by worker and by whom it is about: a node that does not
    /// answer, or two that do not see each other.
    causes: BTreeMap<(u16, BTreeSet<String>), usize>,
}

impl Alarms {
    fn push(&mut self, kind: Kind, level: Level, what: impl Into<String>, to_do: impl Into<String>) {
        self.all.push(Alarm { kind, level, what: what.into(), to_do: to_do.into(), under: Vec::new() });
    }

    fn bad(&mut self, kind: Kind, what: impl Into<String>, to_do: impl Into<String>) {
        self.push(kind, Level::Bad, what, to_do);
    }

    fn warn(&mut self, kind: Kind, what: impl Into<String>, to_do: impl Into<String>) {
        self.push(kind, Level::Warn, what, to_do);
    }

    /// Notes that others may follow from the last alarm.
    fn is_cause(&mut self, worker: u16, of: &[&str]) {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        self.causes.insert((worker, of), self.all.len() - 1);
    }

    fn cause(&self, worker: u16, of: &[&str]) -> Option<usize> {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        self.causes.get(&(worker, of)).copied()
    }

    /// The first node that does not answer: of some workers, or of all.
    fn absent(&self, worker: Option<u16>) -> Option<usize> {
        let fits =
            |(of, names): &(u16, BTreeSet<String>)| names.len() == 1 && worker.is_none_or(|w| w == *of);
        self.causes.iter().filter(|(of, _)| fits(of)).map(|(_, at)| *at).min()
    }

    /// Tells a consequence under its cause. The same consequence for several nodes is told once.
    fn follows(&mut self, cause: usize, level: Level, of: &[&str], what: String) {
        let alarm = &mut self.all[cause];
        alarm.level = alarm.level.min(level);
        let of = of.iter().map(|name| (*name).to_owned());
        match alarm.under.iter_mut().find(|(names, message)| *message == what && !names.is_empty()) {
            Some((names, _)) => names.extend(of),
            None => alarm.under.push((of.collect(), what)),
        }
    }
}

impl Alarm {
    fn message(self) -> Value {
        let beyond = self.under.len().saturating_sub(MAX_UNDER);
        let mut under: Vec<String> = self
            .under
            .into_iter()
            .take(MAX_UNDER)
            .map(|(of, what)| if of.is_empty() { what } else { format!("{} {what}", listed(&of)) })
            .collect();
        if beyond > 0 {
            under.push(format!("And {beyond} more."));
        }
        let alert = self.kind.alert();
        json!({ "level": self.level, "what": self.what, "to_do": self.to_do, "under": under, "alert": alert })
    }
}

/// Names as people list them.
fn listed(names: &[String]) -> String {
    match names {
        [names @ .., before, last] => {
            let names: String = names.iter().map(|name| format!("{name}, ")).collect();
            format!("{names}{before} and {last}")
        }
        names => names.concat(),
    }
}

/// All alarms.
pub(super) fn alarms(cluster: &Cluster, nodes: &[Shown<'_>], now: u64) -> Value {
    let mut alarms = Alarms::default();
    // Causes first.
    nodes.iter().for_each(|node| of_reach(&mut alarms, node));
    if nodes.iter().any(|node| node.seen.said.is_some() || node.seen.gone.is_some()) {
        of_the_cluster(&mut alarms, cluster, nodes);
    }
    nodes.iter().for_each(|node| of_links(&mut alarms, node));
    for node in nodes {
        of_state(&mut alarms, node);
        of_audit(&mut alarms, node);
        of_stock(&mut alarms, node);
    }
    of_certificates(&mut alarms, nodes);
    of_keys(&mut alarms, nodes, now);
    let Alarms { mut all, .. } = alarms;
    all.sort_by_key(|alarm| alarm.level);
    let beyond = all.len().saturating_sub(MAX);
    let rows: Vec<Value> = all.into_iter().take(MAX).map(Alarm::message).collect();
    json!({ "rows": rows, "beyond": beyond })
}

fn of_the_cluster(alarms: &mut Alarms, cluster: &Cluster, nodes: &[Shown<'_>]) {
    let Cluster { needed, nodes: all, worker_groups, .. } = cluster;
    let answering =
        |worker: u16| nodes.iter().filter(|node| node.worker == worker && node.what().is_some()).count();
    let serving: BTreeSet<u16> =
        nodes.iter().filter(|node| node.role.serves()).map(|node| node.worker).collect();
    let there = serving.iter().map(|worker| answering(*worker)).max().unwrap_or_default();
    if there < *needed {
        let what =
            format!("Requests cannot be served: {there} of {all} nodes answer, and {needed} are needed.");
        match alarms.absent(None) {
            Some(cause) => alarms.follows(cause, Level::Bad, &[], what),
            None => alarms.bad(Kind::TooFewNodes, what, "Start the nodes that are gone."),
        }
    } else if *worker_groups > 1 {
        for worker in serving.into_iter().filter(|worker| answering(*worker) < *needed) {
            let what = format!(
                "Workers {worker} serve nothing: {} of {all} answer, and {needed} are needed. Others serve.",
                answering(worker)
            );
            match alarms.absent(Some(worker)) {
                Some(cause) => alarms.follows(cause, Level::Bad, &[], what),
                None => alarms.bad(Kind::TooFewNodes, what, "Start those that are gone."),
            }
        }
    }
    let off = |node: &&Shown<'_>| {
        node.report().is_some_and(|report| report.corrects && report.status.connected.len() < *all)
    };
    if there >= *needed && nodes.iter().find(off).is_some() {
        let what = "Correction is off: wrong shares are detected and not corrected, and no material is made.";
        match alarms.absent(None) {
            Some(cause) => alarms.follows(cause, Level::Warn, &[], what.into()),
            None => alarms.warn(
                Kind::CorrectionOff,
                what,
                "Bring the missing node back; correction is on again when all nodes see each other.",
            ),
        }
    }
    let versions: BTreeSet<String> =
        nodes.iter().filter_map(|node| Some(node.what()?.status().version.clone())).collect();
    if versions.len() > 1 {
        let message = listed(&versions.into_iter().collect::<Vec<_>>());
        alarms.warn(
            Kind::ReleasesDiffer,
            format!("The nodes run versions {message}."),
            "Upgrade them to the same version.",
        );
    }
}

fn of_reach(alarms: &mut Alarms, node: &Shown<'_>) {
    let name = &node.name;
    match node.gone() {
        Some((_, why)) if is_not_allowed(why) => {
            alarms.bad(
                Kind::NotAdmitted,
                format!("{name} does not admit this client."),
                "Its operator runs `polyclave node allow` there with the client's card.",
            );
        }
        Some((seconds, why)) => {
            alarms.bad(
                Kind::NodeDown,
                format!("{name} is not reached since {}: {}.", time(seconds), why.to_string().trim_end_matches('.')),
                format!("Start it (`polyclave node run` on its machine), or look at its log and the network to {name}."),
            );
            alarms.is_cause(node.worker, &[node.node]);
        }
        None => {
            if let Some(asked) = node.seen.asked.map(|at| at.elapsed().as_secs()).filter(|s| *s >= 3) {
                alarms.warn(
                    Kind::NodeDown,
                    format!("{name} has not answered for {asked} s."),
                    "It may be busy, stopped or cut off; its log says more.",
                );
                alarms.is_cause(node.worker, &[node.node]);
            }
        }
    }
}

/// Alarms for the nodes that it does not see.
fn of_links(alarms: &mut Alarms, node: &Shown<'_>) {
    let (name, worker) = (&node.name, node.worker);
    let Some(report) = node.report() else { return };
    for (peer, why) in &report.why_missing {
        if let Some(cause) = alarms.cause(worker, &[peer]) {
            alarms.follows(cause, Level::Warn, &[name], format!("cannot reach it: {why}."));
        } else if let Some(cause) = alarms.cause(worker, &[node.node, peer]) {
            alarms.follows(cause, Level::Warn, &[name], format!("does not see {peer} either: {why}."));
        } else {
            alarms.warn(
                Kind::PeerUnreached,
                format!("{name} does not see {peer}: {why}."),
                "Look at the network between the two, and at both logs.",
            );
            alarms.is_cause(worker, &[node.node, peer]);
        }
    }
}

/// Why it cannot serve, if another alarm says that: a node that its own words name, or without which it does
/// not get ready.
fn cause_of_idleness(alarms: &Alarms, node: &Shown<'_>, why: &str) -> Option<usize> {
    let is_named = |names: &BTreeSet<String>| match names.len() {
        1 => names.iter().all(|name| why.contains(name.as_str())),
        _ => {
            names.contains(node.node)
                && names.iter().any(|name| name != node.node && why.contains(name.as_str()))
        }
    };
    let of_worker_group = alarms.causes.iter().filter(|((worker, _), _)| *worker == node.worker);
    let named = of_worker_group.filter(|((_, names), _)| is_named(names)).map(|(_, at)| *at).min();
    let status = node.what()?.status();
    let is_new = !status.set_up || !status.prepared;
    named.or_else(|| alarms.absent(Some(node.worker)).filter(|_| is_new))
}

/// The node with which this one goes on without the third, as a standby pair.
fn goes_on_with<'n>(node: &'n Shown<'_>) -> Option<&'n str> {
    let pair = node.report()?.standby.iter().find(|pair| pair.serves)?;
    Some(&pair.partner)
}

fn of_state(alarms: &mut Alarms, node: &Shown<'_>) {
    let (Some(what), name) = (node.what(), &node.name) else { return };
    let status = what.status();
    if status.quarantined {
        let why = node.report().and_then(|report| report.quarantine.as_deref()).unwrap_or("a check failed");
        alarms.bad(
            Kind::Quarantine,
            format!("{name} is under quarantine, and computes nothing: {why}."),
            "Find out which machine was altered. When all are sound, order `polyclave node refresh` at every node.",
        );
    } else if let Some(partner) = goes_on_with(node) {
        let what = format!("goes on with {partner}: keys are used, and none is made, changed or deleted.");
        match alarms.absent(Some(node.worker)) {
            Some(cause) => alarms.follows(cause, Level::Warn, &[name], what),
            None => alarms.warn(
                Kind::StandbyServes,
                format!("{name} {what}"),
                "Bring the third node back, or let these two see it; all three serve again then.",
            ),
        }
    } else if let Some(why) = node.report().and_then(|report| report.why_not_ready.as_deref()) {
        match cause_of_idleness(alarms, node, why) {
            Some(cause) => alarms.follows(cause, Level::Bad, &[name], format!("cannot serve: {why}.")),
            None => alarms.bad(
                Kind::NodeNotReady,
                format!("{name} cannot serve: {why}."),
                "`polyclave node status` on its machine says more.",
            ),
        }
    } else if !status.set_up || !status.prepared {
        match alarms.absent(Some(node.worker)) {
            Some(cause) => alarms.follows(cause, Level::Warn, &[name], "cannot get ready without it.".into()),
            None => alarms.warn(
                Kind::NodeNotReady,
                format!("{name} prepares itself together with the others."),
                "Wait; all nodes have to run at once.",
            ),
        }
    }
    if status.damaged > 0 {
        alarms.bad(
            Kind::KeysDamaged,
            format!("{name} cannot read its shares of {} keys.", status.damaged),
            "Its operator restores a backup.",
        );
    }
    if status.lacking > 0 {
        alarms.warn(
            Kind::KeysLacking,
            format!("{name} lacks {} keys that other nodes have.", status.lacking),
            "`polyclave key list` says which; its operator restores a backup that has them.",
        );
    }
    let Some(report) = node.report() else { return };
    if let Some(clock) = &report.clock {
        alarms.bad(
            Kind::ClockDoesNotFit,
            format!("The clock of {name} does not fit: {clock}."),
            "Set the clock, or change the certificate.",
        );
    }
    if report.checks_failed > 0 {
        alarms.bad(
            Kind::ChecksFailed,
            format!("{name} saw {} failed checks under the MAC key in use.", report.checks_failed),
            "Some node deviated or is broken: compare the audit logs, then `polyclave node refresh`.",
        );
    }
    for fault in report.faults.iter().filter(|fault| fault.outvoted > 0) {
        alarms.bad(
            Kind::NodeOutvoted,
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
            Kind::AuditLogShorter,
            format!("The audit log of {name} does not go on from where it was: {why}."),
            "Unless its operator began a new log or restored a backup, lines were taken away: `polyclave node audit`.",
        );
    }
    if let Some(why) = node.report().and_then(|report| report.audit_failure.as_deref()) {
        alarms.bad(
            Kind::AuditUnwritable,
            format!("The audit log of {name} cannot be written: {why}."),
            "Make room on its disk, or mend it.",
        );
    }
}

fn of_stock(alarms: &mut Alarms, node: &Shown<'_>) {
    for level in node.what().map(|what| what.status().stock.as_slice()).unwrap_or_default() {
        if level.level > 0 && (level.blocks as f64) < LOW * level.level as f64 {
            let (name, blocks, of, kind) = (&node.name, level.blocks, level.level, &level.kind);
            match alarms.absent(Some(node.worker)) {
                // All nodes make it together.
                Some(cause) => {
                    alarms.follows(cause, Level::Warn, &[name], format!("cannot fill the stock of {kind}."))
                }
                None => alarms.warn(
                    Kind::StockLow,
                    format!("{name} has {blocks} of {of} blocks of {kind} in stock."),
                    "Requests wait while the nodes make more; raise the level if that is often so.",
                ),
            }
        }
    }
}

fn of_certificates(alarms: &mut Alarms, nodes: &[Shown<'_>]) {
    let reports = nodes.iter().filter_map(Shown::report);
    let soon: BTreeSet<_> = reports
        .flat_map(|report| report.certificates.iter().filter(|date| date.soon).map(move |d| (d, report.now)))
        .map(|(date, now)| (date.ends.saturating_sub(now) / 86_400, date.of.as_str(), date.name.as_str()))
        .collect();
    soon.into_iter().for_each(|(days, of, name)| of_certificate(alarms, days, of, name));
}

fn of_certificate(alarms: &mut Alarms, days: u64, of: &str, name: &str) {
    let what = format!("The certificate of the {of} {name} ends in {days} days.");
    // Some authorities have certificates for a day, so few days are nothing special.
    if of == "authority" {
        let to_do = "Put its next one into its file at the nodes, beside this one.";
        return alarms.warn(Kind::AuthorityEnds, what, to_do);
    }
    let to_do = format!("Change it with `polyclave {of} rotate`.");
    match days < 2 {
        true => alarms.bad(Kind::CertificateEndsSoon, what, to_do),
        false => alarms.warn(Kind::CertificateEnds, what, to_do),
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
            Kind::KeyBudgetLow,
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
            Kind::KeysExpire,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(alarms: Alarms) -> Value {
        alarms.all.into_iter().map(Alarm::message).collect()
    }

    #[test]
    fn what_is_so_of_several_nodes_is_told_once_under_its_cause() {
        let mut alarms = Alarms::default();
        alarms.warn(Kind::NodeDown, "node-4 is gone.", "Start it.");
        alarms.is_cause(0, &["node-4"]);
        let cause = alarms.cause(0, &["node-4"]).expect("noted");
        assert_eq!(
            (alarms.absent(None), alarms.absent(Some(0)), alarms.absent(Some(1))),
            (Some(0), Some(0), None)
        );
        alarms.follows(cause, Level::Bad, &[], "Nothing is served.".into());
        for name in ["node-1", "node-2", "node-3"] {
            alarms.follows(cause, Level::Warn, &[name], "cannot reach it: refused.".into());
        }
        let expected = json!([{
            "level": "bad",
            "what": "node-4 is gone.",
            "to_do": "Start it.",
            "under": ["Nothing is served.", "node-1, node-2 and node-3 cannot reach it: refused."],
            "alert": "PolyclaveNodeDown",
        }]);
        assert_eq!(message_of(alarms), expected);
    }

    #[test]
    fn two_nodes_that_do_not_see_each_other_are_one_cause_in_either_order() {
        let mut alarms = Alarms::default();
        alarms.warn(Kind::NodeDown, "a does not see b.", "Look.");
        alarms.is_cause(2, &["a", "b"]);
        assert_eq!(alarms.cause(2, &["b", "a"]), Some(0));
        assert_eq!((alarms.cause(0, &["a", "b"]), alarms.absent(None)), (None, None), "both answer");
    }

    #[test]
    fn a_certificate_that_ends_is_told_with_what_changes_it() {
        let mut alarms = Alarms::default();
        for (days, of) in [(9, "node"), (1, "client"), (0, "authority")] {
            of_certificate(&mut alarms, days, of, "x");
        }
        let told: Vec<_> = alarms.all.iter().map(|alarm| (alarm.kind, alarm.level)).collect();
        let kinds = [Kind::CertificateEnds, Kind::CertificateEndsSoon, Kind::AuthorityEnds];
        assert_eq!(told, [(kinds[0], Level::Warn), (kinds[1], Level::Bad), (kinds[2], Level::Warn)]);
        let to_do: Vec<&str> = alarms.all.iter().map(|alarm| alarm.to_do.as_str()).collect();
        assert!(to_do[0].contains("node rotate") && to_do[1].contains("client rotate"), "{to_do:?}");
        assert!(to_do[2].contains("into its file") && !to_do[2].contains("rotate"), "{to_do:?}");
    }

    #[test]
    fn more_than_fits_is_counted() {
        let mut alarms = Alarms::default();
        alarms.bad(Kind::NodeDown, "all is lost.", "Run.");
        (0..10).for_each(|at| alarms.follows(0, Level::Warn, &["node-1"], format!("lacks {at}.")));
        let message = message_of(alarms);
        let under = message[0]["under"].as_array().expect("a list");
        assert_eq!((under.len(), &under[8]), (9, &json!("And 2 more.")));
    }
}
