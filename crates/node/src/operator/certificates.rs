//! When certificates end: this node's own, and those of its peers and clients. People have to change them
//! before, so the node warns some time ahead: in its status, in its log, and in its metrics.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polyclave_transport::expiry;
use serde::{Deserialize, Serialize};

use crate::clients::rules::Rules;
use crate::clock::{Dates, date};

const DAY: u64 = 24 * 60 * 60;
/// How often the dates are looked at. Clients can be many, and the dates are far away.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The holder of a certificate, from the point of view of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holder {
    /// The node itself.
    Own,
    /// Another node.
    Node,
    /// A client.
    Client,
}

/// The end of a certificate. For a holder with two certificates, during a change, it is the later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateEnd {
    /// What its holder is.
    pub of: Holder,
    /// The name of its holder.
    pub name: String,
    /// The last moment at which it is valid, in seconds since 1970.
    pub ends: u64,
    /// Whole days until then; negative afterwards.
    pub days: i64,
    /// Whether it has to be changed now, by this node's settings.
    pub soon: bool,
}

impl CertificateEnd {
    /// `warn_days` before the end it is soon.
    pub fn new(of: Holder, name: &str, ends: SystemTime, now: SystemTime, warn_days: u32) -> CertificateEnd {
        let seconds = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let (ends, now) = (seconds(ends), seconds(now));
        let soon = ends < now.saturating_add(u64::from(warn_days) * DAY);
        let days = (ends as i64).saturating_sub(now as i64).div_euclid(DAY as i64);
        CertificateEnd { of, name: name.into(), ends, days, soon }
    }

    /// What people have to know, and what to do.
    pub fn message(&self) -> String {
        let CertificateEnd { of, name, ends, days, .. } = self;
        let (whose, who) = match of {
            Holder::Own => ("this node's own certificate".to_owned(), "change it"),
            Holder::Node => (format!("the certificate of the node {name}"), "its operator changes it"),
            Holder::Client => (format!("the certificate of the client {name}"), "its owner changes it"),
        };
        let kind = if *of == Holder::Client { "client" } else { "node" };
        let date = date(UNIX_EPOCH + Duration::from_secs(*ends));
        let when = match days {
            ..0 => format!("ended on {date}"),
            0 => format!("ends on {date}, in less than a day"),
            1 => format!("ends on {date}, in one day"),
            days => format!("ends on {date}, in {days} days"),
        };
        format!("{whose} {when}: {who} with `polyclave {kind} rotate`")
    }
}

/// The ends of all certificates that a node has to do with, the first ones first.
pub(crate) fn ends(dates: &Dates, rules: &Rules, warn_days: u32) -> Vec<CertificateEnd> {
    let now = SystemTime::now();
    let nodes = dates.ends().map(|(party, name, ends)| {
        let of = if party == dates.me { Holder::Own } else { Holder::Node };
        CertificateEnd::new(of, name, ends, now, warn_days)
    });
    let clients = rules.certificates().into_iter().filter_map(|(name, certificates)| {
        // A certificate that cannot be read admits nobody.
        let last =
            certificates.iter().filter_map(|certificate| expiry(certificate).ok()).map(|(_, to)| to).max()?;
        Some(CertificateEnd::new(Holder::Client, &name, last, now, warn_days))
    });
    let mut ends: Vec<CertificateEnd> = nodes.chain(clients).collect();
    ends.sort_by(|a, b| (a.ends, a.of, &a.name).cmp(&(b.ends, b.of, &b.name)));
    ends
}

/// Warns in the log and keeps the metrics.
#[derive(Default)]
pub(crate) struct Watch {
    looked: Option<Instant>,
    /// What the metrics have.
    shown: BTreeMap<(Holder, String), i64>,
}

impl Watch {
    /// Looks again at once: the rules for clients have changed.
    pub(crate) fn look_again(&mut self) {
        self.looked = None;
    }

    /// Looks if it is time. Each certificate that ends soon gets a line in the log each day.
    pub(crate) fn look(&mut self, dates: &Dates, rules: &Rules, warn_days: u32) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        let mut before = std::mem::take(&mut self.shown);
        for end in ends(dates, rules, warn_days) {
            let key = (end.of, end.name.clone());
            if before.remove(&key) != Some(end.days) && end.soon {
                tracing::warn!("{}", end.message());
            }
            gauge(&key, end.ends as f64);
            self.shown.insert(key, end.days);
        }
        // A metric cannot be taken back. No comparison holds for this value.
        before.keys().for_each(|gone| gauge(gone, f64::NAN));
    }
}

fn gauge((of, name): &(Holder, String), value: f64) {
    let of = match of {
        Holder::Own => "own",
        Holder::Node => "node",
        Holder::Client => "client",
    };
    metrics::gauge!("polyclave_certificate_end_timestamp_seconds", "of" => of, "name" => name.clone())
        .set(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(of: Holder, days: i64, seconds: i64) -> CertificateEnd {
        let now = UNIX_EPOCH + Duration::from_secs(20_000 * DAY);
        let distance = Duration::from_secs((days * DAY as i64 + seconds).unsigned_abs());
        let ends = if days < 0 { now - distance } else { now + distance };
        CertificateEnd::new(of, "x", ends, now, 30)
    }

    #[test]
    fn a_certificate_is_warned_of_before_its_end_and_after_it() {
        for (days, soon) in
            [(31, false), (30, false), (29, true), (1, true), (0, true), (-1, true), (-400, true)]
        {
            let end = end(Holder::Own, days, if days < 0 { 0 } else { 5 });
            assert_eq!((end.days, end.soon), (days, soon));
        }
        assert_eq!(
            end(Holder::Own, 12, 5).message(),
            "this node's own certificate ends on 2024-10-16, in 12 days: change it with `polyclave node rotate`"
        );
        assert!(
            end(Holder::Client, 0, 5)
                .message()
                .contains("the client x ends on 2024-10-04, in less than a day")
        );
        assert!(end(Holder::Node, -3, 0).message().contains("the node x ended on 2024-10-01: its operator"));
    }
}
