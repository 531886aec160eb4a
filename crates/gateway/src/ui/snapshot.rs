//! What the page shows, as JSON: what the nodes said last, and what is wrong. Its size does not grow with the
//! number of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use polyclave_api::{Reason, Report};
use polyclave_client::{Client, Error};
use polyclave_config::Role;
use polyclave_protocol::PartySet;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use serde_json::{Value, json};

use super::alarms::alarms;
use super::collector::{Said, Seen, What, places};
use super::history::{quantile, sum};
use crate::counts::RequestCounts;

/// What is older says nothing of now: nobody looked meanwhile, or the node has been silent for longer than a
/// question may take.
const OLD: Duration = Duration::from_secs(15);

/// What does not change.
pub(super) struct Cluster {
    id: String,
    protocol: String,
    promise: String,
    pub(super) needed: usize,
    pub(super) nodes: usize,
    pub(super) worker_groups: usize,
    threshold: usize,
    client: String,
}

impl Cluster {
    pub(super) fn of(client: &Client) -> crate::Result<Cluster> {
        let cluster = client.cluster();
        let (nodes, threshold) = (cluster.nodes(), cluster.threshold());
        let config: AnyServiceConfig =
            catalog::service(cluster.protocol(), nodes, threshold).map_err(Error::from)?;
        Ok(Cluster {
            id: hex::encode(cluster.id()),
            protocol: cluster.protocol().into(),
            promise: config.promise(),
            needed: config.quorum(),
            nodes,
            worker_groups: cluster.worker_groups(),
            threshold,
            client: client.name().into(),
        })
    }
}

/// A worker of a node, as it is shown.
pub(super) struct Shown<'s> {
    /// The node's name, and for all but the first worker its number.
    pub(super) name: String,
    /// The node's name alone.
    pub(super) node: &'s str,
    pub(super) worker: u16,
    pub(super) role: Role,
    pub(super) seen: MutexGuard<'s, Seen>,
}

impl Shown<'_> {
    /// What it says now; `None` if it does not answer.
    pub(super) fn what(&self) -> Option<&What> {
        self.said().map(|said| &said.what)
    }

    fn said(&self) -> Option<&Said> {
        self.seen.said.as_ref().filter(|said| self.seen.gone.is_none() && said.at.elapsed() < OLD)
    }

    pub(super) fn report(&self) -> Option<&Report> {
        self.what().and_then(What::report)
    }

    /// For how many seconds it has not answered, and why.
    pub(super) fn gone(&self) -> Option<(u64, &Error)> {
        self.seen.gone.as_ref().map(|(since, why)| (since.elapsed().as_secs(), why))
    }
}

/// The text of a snapshot.
pub(super) fn snapshot(
    cluster: &Cluster,
    client: &Client,
    seen: &[Mutex<Seen>],
    own: Option<&RequestCounts>,
) -> String {
    let places = places(cluster.worker_groups, cluster.nodes);
    let nodes: Vec<Shown<'_>> = places
        .zip(seen)
        .map(|((worker, party), seen)| {
            let node = client.node_name(party);
            let name = if worker == 0 { node.into() } else { format!("{node} worker {worker}") };
            Shown { name, node, worker, role: client.cluster().roles().of(worker), seen: seen.lock() }
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let cards = client.cluster().cards();
    let address = |worker: u16, node: &str| {
        let card = cards.iter().find(|card| card.name == node);
        card.and_then(|card| card.places().nth(worker.into()))
            .map_or_else(String::new, |at| at.client_address)
    };
    let rows: Vec<Value> =
        nodes.iter().map(|node| row(node, &address(node.worker, node.node), client)).collect();
    let (keys, keys_of) = keys(&nodes);
    json!({
        "now": now,
        "version": env!("CARGO_PKG_VERSION"),
        "cluster": {
            "id": cluster.id, "protocol": cluster.protocol, "promise": cluster.promise, "needed": cluster.needed, "nodes": cluster.nodes,
            "threshold": cluster.threshold, "client": cluster.client, "correction": correction(&nodes),
        },
        "alarms": alarms(cluster, &nodes, now),
        "nodes": rows,
        "keys": keys,
        "keys_of": keys_of,
        "certificates": certificates(&nodes),
        "stock": stock(&nodes),
        "requests": requests(&nodes),
        "refusals": refusals(&nodes),
        "faults": faults(&nodes),
        "gateway": own.map(gateway),
    })
    .to_string()
}

fn row(node: &Shown<'_>, address: &str, client: &Client) -> Value {
    let names = |set: PartySet| set.iter().map(|party| client.node_name(party)).collect::<Vec<_>>();
    let seen = &node.seen;
    let mut row = json!({
        "name": node.name,
        "node": node.node,
        "worker": node.worker,
        "duty": node.role.message(),
        "address": address,
        "asked_ms": seen.asked.map(|asked| asked.elapsed().as_millis() as u64),
        "gone": node.gone().map(|(seconds, why)| json!({ "seconds": seconds, "why": why.to_string() })),
    });
    let Some(said) = node.said() else { return row };
    let status = said.what.status();
    row["answer_ms"] = (said.took.as_micros() as f64 / 1000.0).into();
    row["version"] = status.version.clone().into();
    row["sees"] = json!(names(status.connected));
    row["keys"] = status.keys.into();
    row["set_up"] = status.set_up.into();
    row["prepared"] = status.prepared.into();
    row["quarantined"] = status.quarantined.into();
    match &said.what {
        What::Status(_, why) => row["not_told"] = why.clone().into(),
        What::Report(report) => {
            row["ready"] = report.why_not_ready.is_none().into();
            row["starts"] = report.starts.into();
            row["why_missing"] = json!(report.why_missing.iter().cloned().collect::<BTreeMap<_, _>>());
            row["rate"] = json!(seen.history.rate());
            row["p50"] = json!(quantile(&seen.history.latencies(), 0.5));
            row["p99"] = json!(quantile(&seen.history.latencies(), 0.99));
            row["audit"] = json!({
                "number": report.audit.map(|end| end.number),
                "hash": report.audit.map(|end| hex::encode(&end.hash[..4])),
                "contradiction": seen.history.contradiction(),
                "failure": report.audit_failure,
            });
            row["checks_failed"] = report.checks_failed.into();
        }
    }
    row
}

/// Whether wrong shares are corrected now: `none` if the protocol does not.
fn correction(nodes: &[Shown<'_>]) -> Option<&'static str> {
    let reports: Vec<&Report> = nodes.iter().filter_map(Shown::report).collect();
    if reports.is_empty() {
        return None;
    }
    let corrects = reports.iter().any(|report| report.corrects);
    let sees_all = |report: &&Report| report.status.connected.len() == nodes_of_a_clique(nodes);
    let whole = reports.len() == nodes.len() && reports.iter().all(sees_all);
    Some(match (corrects, whole) {
        (false, _) => "none",
        (true, true) => "on",
        (true, false) => "off",
    })
}

/// How many nodes there are, each with the same number of workers.
fn nodes_of_a_clique(nodes: &[Shown<'_>]) -> usize {
    nodes.iter().filter(|node| node.worker == 0).count()
}

/// The numbers of the node that has most keys, and its name: each node has its own, and one that lacks some
/// says less.
fn keys(nodes: &[Shown<'_>]) -> (Value, Option<String>) {
    let reports = nodes.iter().filter_map(|node| Some((node.report()?, &node.name)));
    let reports = reports.filter(|(report, _)| report.keys.is_some());
    let Some((report, name)) = reports.max_by_key(|(report, _)| report.status.keys) else {
        return (Value::Null, None);
    };
    // A key pays at each node that serves a request, so nodes differ. What is least counts.
    let mut value = json!(report.keys);
    let spent_most = |name: &str, version: u64| {
        let lists = nodes.iter().filter_map(|node| Some(&node.report()?.keys.as_ref()?.least));
        let same = lists.flatten().filter(|key| key.name == name && u64::from(key.version) == version);
        same.map(|key| key.spent).max()
    };
    if let Some(least) = value["least"].as_array_mut() {
        for key in least {
            let of = (key["name"].as_str().unwrap_or_default(), key["version"].as_u64().unwrap_or_default());
            key["spent"] = json!(spent_most(of.0, of.1));
        }
    }
    (value, Some(name.clone()))
}

/// Certificates, as the nodes have them: the same holder once for each end.
fn certificates(nodes: &[Shown<'_>]) -> Value {
    let mut all = BTreeMap::new();
    let mut beyond = 0;
    for report in nodes.iter().filter_map(Shown::report) {
        beyond = beyond.max(report.certificates_in_all.saturating_sub(report.certificates.len() as u64));
        for date in &report.certificates {
            let soon = all.entry((date.ends, date.of.as_str(), date.name.as_str())).or_insert(false);
            *soon |= date.soon;
        }
    }
    let rows: Vec<Value> = all
        .into_iter()
        .map(|((ends, of, name), soon)| json!({ "ends": ends, "of": of, "name": name, "soon": soon }))
        .collect();
    json!({ "rows": rows, "beyond": beyond })
}

/// Material by kind, and how much each node has of it. Workers that only make it keep none.
fn stock(nodes: &[Shown<'_>]) -> Value {
    let mut kinds: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.role.serves()) {
        for level in node.what().map(|what| what.status().stock.as_slice()).unwrap_or_default() {
            let row = json!({ "node": node.name, "blocks": level.blocks, "level": level.level });
            kinds.entry((&level.kind, &level.ciphers)).or_default().push(row);
        }
    }
    let kinds = kinds
        .into_iter()
        .map(|((kind, ciphers), nodes)| json!({ "kind": kind, "ciphers": ciphers, "nodes": nodes }));
    Value::Array(kinds.collect())
}

/// Requests by operation: of each worker group most that one of its workers has answered, and the highest
/// rate, since each request is served by several nodes; summed over worker groups, since each request is
/// served by one of these.
fn requests(nodes: &[Shown<'_>]) -> Value {
    let mut of_cliques: BTreeMap<(String, u16), (u64, f64)> = BTreeMap::new();
    let mut latencies: Vec<u64> = Vec::new();
    for node in nodes {
        let Some(report) = node.report() else { continue };
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for r in &report.requests {
            let count = own.entry(&r.operation).or_default();
            *count = count.saturating_add(r.requests);
        }
        let rates = node.seen.history.rates();
        for (operation, count) in own {
            let total = of_cliques.entry((operation.into(), node.worker)).or_default();
            total.0 = total.0.max(count);
            total.1 = total.1.max(rates.get(operation).copied().unwrap_or_default());
        }
        let more = node.seen.history.latencies();
        latencies.resize(latencies.len().max(more.len()), 0);
        latencies.iter_mut().zip(more).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    let mut totals: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for ((operation, _), (count, rate)) in of_cliques {
        let total = totals.entry(operation).or_default();
        *total = (total.0.saturating_add(count), total.1 + rate);
    }
    let mut rates: BTreeMap<u16, f64> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.report().is_some()) {
        if let Some(rate) = node.seen.history.rate() {
            let most = rates.entry(node.worker).or_default();
            *most = most.max(rate);
        }
    }
    let rate = (!rates.is_empty()).then(|| rates.values().sum::<f64>());
    let rows: Vec<Value> = totals
        .into_iter()
        .map(|(operation, (total, rate))| json!({ "operation": operation, "total": total, "rate": rate }))
        .collect();
    json!({
        "rate": rate, "p50": quantile(&latencies, 0.5), "p99": quantile(&latencies, 0.99), "rows": rows,
    })
}

/// Refusals by reason, and how many by which node.
fn refusals(nodes: &[Shown<'_>]) -> Value {
    let reports = || nodes.iter().filter_map(|node| Some((node, node.report()?)));
    let refused = |report: &Report| {
        report.requests.iter().map(|r| r.outcome.clone()).filter(|o| o != "done").collect::<Vec<_>>()
    };
    let reasons: BTreeSet<String> = reports().flat_map(|(_, report)| refused(report)).collect();
    let rows = reasons.into_iter().map(|reason| {
        let by: BTreeMap<&str, u64> = reports()
            .map(|(node, report)| {
                let same = report.requests.iter().filter(|r| r.outcome == reason);
                (&node.name[..], sum(same.map(|r| &r.requests)))
            })
            .collect();
        let lately = reports().map(|(node, _)| node.seen.history.lately(&reason)).max();
        json!({ "reason": reason, "words": in_words(&reason), "by": by, "lately": lately })
    });
    Value::Array(rows.collect())
}

/// A reason of a refusal, as nodes count it, for people.
fn in_words(code: &str) -> &str {
    let known = Reason::ALL.into_iter().find(|reason| reason.code() == code);
    known.map_or(code, |reason| reason.in_words())
}

/// The faults of nodes, and the nodes that saw them.
fn faults(nodes: &[Shown<'_>]) -> Value {
    let reports = nodes.iter().filter_map(|node| Some((&node.name, node.report()?)));
    let rows = reports.flat_map(|(by, report)| {
        report.faults.iter().map(move |fault| {
            json!({ "by": by, "node": fault.node, "outvoted": fault.outvoted, "silent": fault.silent })
        })
    });
    Value::Array(rows.collect())
}

fn gateway(own: &RequestCounts) -> Value {
    let rows: Vec<Value> = own
        .requests
        .iter()
        .map(|((api, operation, outcome), total)| {
            json!({ "api": api, "operation": operation, "outcome": outcome, "total": total })
        })
        .collect();
    json!({ "with_nodes": own.with_nodes, "waiting": own.waiting, "rows": rows })
}

/// Whether a node was reached, and does not let the client watch or do anything.
pub(super) fn is_not_allowed(error: &Error) -> bool {
    match error {
        Error::NotAdmitted { .. } => true,
        Error::Refused { refusal, .. } => refusal.reason == Reason::Denied,
        _ => false,
    }
}
