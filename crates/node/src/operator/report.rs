//! What a node tells a client that may watch it (`observe`). Many may ask every second, so what takes long to
//! find out is kept for a while: certificates, and the numbers of keys.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use polyclave_api::{
    AuditEnd, CertificateDate, Describe, KeyBudget, KeyCount, KeyEnd, KeyInfo, KeysReport,
    MAX_REPORTED_CERTIFICATES, MAX_REPORTED_KEYS, Refusal, Reply, Report, VersionState, operations,
};
use polyclave_store::Store;

use crate::clients::client::Client;
use crate::clock::now;
use crate::core::{Core, PairState, Slow};
use crate::keys::states::state_at;
use crate::operator::certificates::{self, CertificateEnd, Holder};

/// How long what takes long is kept.
const KEEP: Duration = Duration::from_secs(5);

/// The most kinds of keys that are told apart, since sets of modes can be many.
const MAX_KINDS: usize = 64;
const OTHERS: &str = "others";

/// The report, for a client that has the right.
pub(crate) fn report(core: &Core, client: &Client) -> Result<Reply, Refusal> {
    let asked = operations::Report.permissions();
    asked.iter().try_for_each(|asked| core.rules.allow(client, asked))?;
    let status = core.status();
    let slow = recent(core);
    let (requests, latencies) = core.tally.read();
    // A store that cannot be read is why the node is not ready.
    let audit = core.store.audit_head().ok().flatten();
    Ok(Reply::Report(Box::new(Report {
        now: now(),
        starts: core.incarnation.number,
        why_not_ready: core.why_not_ready(),
        why_missing: core.why_missing().into_iter().collect(),
        corrects: core.service.strategy.corrects(),
        quarantine: core.material.quarantined().map(|quarantine| quarantine.reason),
        clock: core.clock_misfit(),
        checks_failed: core.material.guesses().failed,
        audit: audit.map(|(number, hash)| AuditEnd { number, hash }),
        audit_failure: core.logbook.failure(),
        faults: core.seen.counts(),
        requests,
        latencies,
        certificates: slow.certificates,
        certificates_in_all: slow.certificates_in_all,
        keys: slow.keys.map(|keys| KeysReport { age: slow.at.elapsed().as_secs(), ..keys }),
        standby: core.pairs.seen.lock().iter().map(PairState::report).collect(),
        status,
    })))
}

/// The figures that take long to find out, at most [`KEEP`] old.
fn recent(core: &Core) -> Slow {
    // Callers that ask meanwhile wait for the same answer.
    let mut kept = core.kept.lock();
    match kept.as_ref().filter(|slow| slow.at.elapsed() < KEEP) {
        Some(slow) => slow.clone(),
        None => kept.insert(find_out(core)).clone(),
    }
}

fn find_out(core: &Core) -> Slow {
    let ends = certificates::ends(&core.dates, &core.rules, core.warn_days);
    let certificates_in_all = ends.len() as u64;
    let certificates = ends.into_iter().take(MAX_REPORTED_CERTIFICATES).map(date).collect();
    let keys = count_keys(&core.store, now());
    Slow { at: Instant::now(), keys, certificates, certificates_in_all }
}

fn date(end: CertificateEnd) -> CertificateDate {
    let of = match end.of {
        Holder::Own | Holder::Node => "node",
        Holder::Client => "client",
        Holder::Authority => "authority",
    };
    CertificateDate { of: of.into(), name: end.name, ends: end.ends, soon: end.soon }
}

fn count_keys(store: &Store, now: u64) -> Option<KeysReport> {
    let began = Instant::now();
    let infos = store.readable_keys().ok()?;
    let spent = store.spent_of_all().ok()?;
    let mut counts: BTreeMap<(String, VersionState), u64> = BTreeMap::new();
    let (mut least, mut ending) = (Vec::new(), Vec::new());
    let newest = Newest::of(&infos);
    for info in &infos {
        let state = state_at(info, now);
        let kind = kind(info);
        let is_known = counts.contains_key(&(kind.clone(), state)) || counts.len() < MAX_KINDS;
        *counts.entry((if is_known { kind } else { OTHERS.into() }, state)).or_default() += 1;
        if let Some((at, removed)) = end(info).filter(|(_, removed)| *removed || newest.has(info)) {
            ending.push((at, removed, info));
        }
        if state == VersionState::Active && info.component.is_none() && newest.has(info) {
            least.push((spent.get(&info.account).copied().unwrap_or(0), info));
        }
    }
    least.sort_by(|a, b| left(*a).total_cmp(&left(*b)));
    ending.sort_by_key(|(at, ..)| *at);
    let counts = counts.into_iter().map(|((kind, state), keys)| KeyCount { kind, state, keys });
    let least = least.into_iter().map(|(spent, info)| KeyBudget {
        name: info.properties.name.clone(),
        version: info.version,
        budget: info.properties.budget_blocks,
        spent,
    });
    let ending = ending.into_iter().map(|(at, removed, info)| KeyEnd {
        name: info.properties.name.clone(),
        version: info.version,
        at,
        removed,
    });
    Some(KeysReport {
        counts: counts.collect(),
        least: least.take(MAX_REPORTED_KEYS).collect(),
        ending: ending.take(MAX_REPORTED_KEYS).collect(),
        age: 0,
        took_ms: began.elapsed().as_millis() as u64,
    })
}

/// The newest version of each key. Whoever has made a new version has done what an older one needs.
pub(super) struct Newest<'k>(HashMap<&'k str, u32>);

impl<'k> Newest<'k> {
    pub(super) fn of(infos: &'k [KeyInfo]) -> Newest<'k> {
        let mut newest = HashMap::new();
        for info in infos {
            let version: &mut u32 = newest.entry(info.properties.name.as_str()).or_default();
            *version = info.version.max(*version);
        }
        Newest(newest)
    }

    pub(super) fn has(&self, info: &KeyInfo) -> bool {
        self.0.get(info.properties.name.as_str()).is_some_and(|newest| *newest == info.version)
    }
}

/// The part of the budget of a key that is left.
pub(super) fn left((spent, info): (u64, &KeyInfo)) -> f64 {
    let budget = info.properties.budget_blocks;
    budget.saturating_sub(spent) as f64 / budget.max(1) as f64
}

/// When something happens to a key by itself, and whether it is removed then.
pub(super) fn end(info: &KeyInfo) -> Option<(u64, bool)> {
    match (info.ends(), info.properties.expires) {
        (Some(ends), Some(expires)) if expires < ends => Some((expires, false)),
        (Some(ends), _) => Some((ends, true)),
        (None, expires) => expires.map(|at| (at, false)),
    }
}

fn kind(info: &KeyInfo) -> String {
    let modes: Vec<String> = info.properties.modes.iter().map(ToString::to_string).collect();
    let what = match (&info.component, modes.is_empty()) {
        (Some(_), _) => "component".into(),
        (None, true) => "for other keys".into(),
        (None, false) => modes.join(" "),
    };
    format!("{} {what}", info.properties.cipher)
}
