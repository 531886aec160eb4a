//! When certificates end: this node's own, and those of its peers, of its clients, and of authorities that
//! vouch for clients. People have to change them before, so the node warns some time ahead: in its status, in
//! its log, and in its metrics.
//!
//! Some authorities have certificates for a day, and make the next one in time by themselves (SPIRE does when
//! half of it is over). So an authority is warned of only when a quarter of the time of its last certificate
//! is left.

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
    /// An authority that vouches for clients.
    Authority,
}

/// The part of the time of an authority's certificate before whose end it is warned of: one in so many.
const PART_OF_AUTHORITY: u64 = 4;

/// The end of a certificate. For a holder with several certificates, during a change, it is the last one.
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
        CertificateEnd::within(u64::from(warn_days) * DAY, of, name, ends, now)
    }

    /// The same of an authority, whose last certificate is valid from when until when.
    fn of_authority(
        name: &str,
        (from, to): (SystemTime, SystemTime),
        now: SystemTime,
        warn_days: u32,
    ) -> CertificateEnd {
        let part = to.duration_since(from).unwrap_or_default().as_secs() / PART_OF_AUTHORITY;
        let before = part.min(u64::from(warn_days) * DAY);
        CertificateEnd::within(before, Holder::Authority, name, to, now)
    }

    /// So many seconds before the end it is soon.
    fn within(before: u64, of: Holder, name: &str, ends: SystemTime, now: SystemTime) -> CertificateEnd {
        let seconds = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let (ends, now) = (seconds(ends), seconds(now));
        let soon = ends < now.saturating_add(before);
        let days = (ends as i64).saturating_sub(now as i64).div_euclid(DAY as i64);
        CertificateEnd { of, name: name.into(), ends, days, soon }
    }

    /// What people have to know, and what to do.
    pub fn message(&self) -> String {
        let CertificateEnd { of, name, ends, days, .. } = self;
        let (whose, to_do) = match of {
            Holder::Own => {
                ("this node's own certificate".to_owned(), "change it with `polyclave node rotate`")
            }
            Holder::Node => (
                format!("the certificate of the node {name}"),
                "its operator changes it with `polyclave node rotate`",
            ),
            Holder::Client => (
                format!("the certificate of the client {name}"),
                "its owner changes it with `polyclave client rotate`",
            ),
            Holder::Authority => (
                format!("the certificate of the authority {name}"),
                "put its next one into its file, beside this one; without a valid one its clients are refused",
            ),
        };
        let date = date(UNIX_EPOCH + Duration::from_secs(*ends));
        let when = match days {
            ..0 => format!("ended on {date}"),
            0 => format!("ends on {date}, in less than a day"),
            1 => format!("ends on {date}, in one day"),
            days => format!("ends on {date}, in {days} days"),
        };
        format!("{whose} {when}: {to_do}")
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
    let authorities = rules.validities_of_authorities();
    let authorities =
        authorities.iter().map(|(name, valid)| CertificateEnd::of_authority(name, *valid, now, warn_days));
    let mut ends: Vec<CertificateEnd> = nodes.chain(clients).chain(authorities).collect();
    ends.sort_by(|a, b| (a.ends, a.of, &a.name).cmp(&(b.ends, b.of, &b.name)));
    ends
}

/// Warns in the log and keeps the metrics.
#[derive(Default)]
pub(crate) struct Watch {
    looked: Option<Instant>,
    /// What was found last: the days that are left, and whether that is soon.
    shown: BTreeMap<(Holder, String), (i64, bool)>,
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
        let ends = ends(dates, rules, warn_days);
        let ending = ends.iter().filter(|end| end.of == Holder::Authority && end.soon).count();
        metrics::gauge!("polyclave_authorities_ending").set(ending as f64);
        for end in self.note(ends) {
            tracing::warn!("{}", end.message());
        }
    }

    /// Keeps the metric of each end. Returns those that the log has to warn of now.
    fn note(&mut self, ends: Vec<CertificateEnd>) -> Vec<CertificateEnd> {
        let mut before = std::mem::take(&mut self.shown);
        let mut warn = Vec::new();
        for end in ends {
            let (key, state) = ((end.of, end.name.clone()), (end.days, end.soon));
            gauge(&key, end.ends as f64);
            if before.remove(&key) != Some(state) && end.soon {
                warn.push(end);
            }
            self.shown.insert(key, state);
        }
        // A metric cannot be taken back. No comparison holds for this value.
        before.keys().for_each(|gone| gauge(gone, f64::NAN));
        warn
    }
}

fn gauge((of, name): &(Holder, String), value: f64) {
    let of = match of {
        Holder::Own => "own",
        Holder::Node => "node",
        Holder::Client => "client",
        Holder::Authority => "authority",
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
    fn an_authority_is_warned_of_in_the_last_quarter_of_its_certificate_and_never_before_the_settings_say() {
        let now = UNIX_EPOCH + Duration::from_secs(20_000 * DAY);
        let end = |lives: u64, left: u64| {
            let to = now + Duration::from_secs(left);
            CertificateEnd::of_authority("corp", (to - Duration::from_secs(lives), to), now, 30)
        };
        let year = 365 * DAY;
        for (lives, left, soon) in [
            (year, 30 * DAY, false),
            (year, 30 * DAY - 1, true),
            (DAY, DAY, false),
            (DAY, DAY / 4, false),
            (DAY, DAY / 4 - 1, true),
        ] {
            assert_eq!(end(lives, left).soon, soon, "{lives} {left}");
        }
        let message = end(year, 12 * DAY).message();
        assert!(
            message.starts_with("the certificate of the authority corp ends on 2024-10-16, in 12 days: put")
        );
        // One that lives for a day has no whole day left, and is warned of nevertheless; then once a day.
        let (mut watch, mut warned) = (Watch::default(), Vec::new());
        for left in [DAY - 1, DAY / 2, DAY / 4 - 1, DAY / 8, 0] {
            warned.push(watch.note(vec![end(DAY, left)]).len());
        }
        let ended = CertificateEnd::of_authority(
            "corp",
            (now - Duration::from_secs(2 * DAY), now - Duration::from_secs(1)),
            now,
            30,
        );
        warned.push(watch.note(vec![ended]).len());
        assert_eq!(warned, [0, 0, 1, 0, 0, 1]);
        assert_eq!(watch.note(vec![end(DAY, DAY)]).len(), 0, "the next one is there");
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
