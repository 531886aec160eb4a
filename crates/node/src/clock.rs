//! Whether this node's clock fits the dates of the certificates.
//!
//! Certificates have dates, and every node judges them by its own clock. With a wrong clock, or with
//! certificates that nobody rotated in time, a node refuses all others, or they refuse it, while existing
//! connections continue. So a node checks the dates itself and reports what does not fit. It also compares
//! its clock with those of its peers, which they tell with every beat. Keys, approvals and sessions end by
//! this clock, too.

use std::time::{SystemTime, UNIX_EPOCH};

use polyclave_config::Cluster;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::{CertificateDer, expiry};
use time::OffsetDateTime;

use crate::Result;

/// How many seconds clocks may differ. Clocks that the network sets differ by far less.
const MAX_SKEW: i64 = 300;

/// The validity period of a certificate.
type Span = (SystemTime, SystemTime);

/// The dates of the nodes' certificates.
#[derive(Clone)]
pub(crate) struct Dates {
    pub(crate) me: Party,
    /// By party: its name, and the dates of its certificates; for this node only those of the one in use.
    nodes: Vec<(String, Vec<Span>)>,
}

impl Dates {
    /// The dates in a cluster, where this node uses `own`.
    pub(crate) fn of(cluster: &Cluster, me: Party, own: &CertificateDer<'_>) -> Result<Dates> {
        let of_node = |(card, party): (&polyclave_config::Card, Party)| {
            let spans = match party == me {
                true => vec![expiry(own)?],
                false => card.certificates.iter().map(expiry).collect::<Result<_>>()?,
            };
            Ok((card.name.clone(), spans))
        };
        let nodes =
            cluster.cards().iter().zip(Party::all(cluster.nodes())).map(of_node).collect::<Result<_>>()?;
        Ok(Dates { me, nodes })
    }

    /// By node, this one included: its name, and when the last of its certificates ends.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Party, &str, SystemTime)> {
        self.nodes.iter().zip(Party::all(self.nodes.len())).filter_map(|((name, spans), party)| {
            let last = spans.iter().map(|(_, to)| *to).max()?;
            Some((party, name.as_str(), last))
        })
    }

    /// The nodes that this one can connect with by these dates; none if its own certificate is not valid now.
    pub(crate) fn fitting(&self, now: SystemTime) -> PartySet {
        let fits =
            |party: Party| self.nodes[party.index()].1.iter().any(|(from, to)| (*from..=*to).contains(&now));
        match fits(self.me) {
            true => Party::all(self.nodes.len()).filter(|party| fits(*party)).collect(),
            false => PartySet::default(),
        }
    }

    /// Reports what is wrong with the clock, whenever that changes.
    pub(crate) fn watch(misfit: Option<String>, message: &mut Option<String>) {
        metrics::gauge!("polyclave_clock_fits").set(if misfit.is_none() { 1.0 } else { 0.0 });
        if *message != misfit {
            match &misfit {
                Some(misfit) => tracing::error!("{misfit}"),
                None => tracing::info!("the clock fits again"),
            }
            *message = misfit;
        }
    }

    /// What does not fit, and what to do; `None` if everything fits.
    pub(crate) fn misfit(&self, now: SystemTime) -> Option<String> {
        let of_node = |((name, spans), party): (&(String, Vec<Span>), Party)| {
            if spans.iter().any(|(from, to)| (*from..=*to).contains(&now)) {
                return None;
            }
            let whose = if party == self.me {
                "this node's own certificate".into()
            } else {
                format!("that of {name}")
            };
            // The last of them counts.
            let (from, to) = spans.iter().max_by_key(|(_, to)| *to)?;
            Some(match now < *from {
                true => format!("{whose} is not valid before {}", date(*from)),
                false => format!("{whose} expired on {}", date(*to)),
            })
        };
        let misfits: Vec<String> =
            self.nodes.iter().zip(Party::all(self.nodes.len())).filter_map(of_node).collect();
        (!misfits.is_empty()).then(|| {
            format!(
                "its clock and the certificates do not fit: by its clock it is {}, and {}. Set the clock if it is wrong; else \
                 rotate these certificates (`polyclave node rotate`)",
                date(now),
                misfits.join(", ")
            )
        })
    }
}

/// What to report if this node's clock differs from those of most peers that it hears. `ahead` has the names
/// of all these peers, and by how many seconds this clock is ahead of each.
pub(crate) fn apart(ahead: &[(&str, i64)]) -> Option<String> {
    let far: Vec<String> = ahead
        .iter()
        .filter(|(_, seconds)| seconds.abs() > MAX_SKEW)
        .map(|(name, seconds)| {
            let (minutes, how) = (seconds.abs() / 60, if *seconds > 0 { "ahead of" } else { "behind" });
            format!("{minutes} minutes {how} that of {name}")
        })
        .collect();
    (2 * far.len() > ahead.len()).then(|| {
        format!(
            "its clock differs from those of most nodes that it hears: it is {}. Set the clock that is wrong (run NTP). Nodes judge certificates, \
             approvals and the ends of keys by their clocks",
            far.join(", ")
        )
    })
}

pub(crate) fn date(moment: SystemTime) -> String {
    OffsetDateTime::from(moment).date().to_string()
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use polyclave_config::NodeDir;
    use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

    use super::*;
    use crate::Running;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// Three nodes with certificates for a year from day 1000 on; the third has one for the next year, too.
    fn dates() -> Dates {
        let day = |number: u32| SystemTime::UNIX_EPOCH + DAY * number;
        let spans = |from| (day(from), day(from + 365));
        let node =
            |name: &str, from: &[u32]| (name.to_owned(), from.iter().map(|from| spans(*from)).collect());
        Dates { me: Party(0), nodes: vec![node("a", &[1000]), node("b", &[1010]), node("c", &[1000, 1350])] }
    }

    #[test]
    fn a_clock_that_is_wrong_either_way_is_told_with_the_dates() {
        let at = |day: u32| SystemTime::UNIX_EPOCH + DAY * day;
        let dates = dates();
        assert_eq!((dates.misfit(at(1200)), dates.fitting(at(1200)).len()), (None, 3));
        let message = dates.misfit(at(10)).expect("long before");
        assert!(
            message.contains("1970-01-11")
                && message.contains("own certificate is not valid before 1972-09-27"),
            "{message}"
        );
        assert!(
            message.contains("that of b is not valid before") && message.contains("that of c"),
            "{message}"
        );
        assert!(dates.fitting(at(10)).is_empty());
        let message = dates.misfit(at(1370)).expect("too late for the first");
        assert!(
            message.contains("own certificate expired on 1973-09-27") && !message.contains("that of"),
            "{message}"
        );
        assert!(dates.fitting(at(1370)).is_empty(), "nobody lets it in");
    }

    #[test]
    fn a_clock_that_differs_from_most_peers_is_told_and_one_that_differs_from_one_of_two_is_not() {
        let hour = 3600;
        for fits in [&[][..], &[("b", 10), ("c", -MAX_SKEW)], &[("b", 3 * hour), ("c", 0)]] {
            assert_eq!(apart(fits), None, "{fits:?}");
        }
        let message = apart(&[("b", 3 * hour), ("c", 3 * hour + 60), ("d", 2)]).expect("most differ");
        assert!(
            message.contains("180 minutes ahead of that of b, 181 minutes ahead of that of c"),
            "{message}"
        );
        assert!(apart(&[("b", -2 * hour)]).expect("it does").contains("120 minutes behind that of b"));
    }

    #[test]
    fn a_peer_whose_certificate_does_not_fit_is_named() {
        let at = |day: u32| SystemTime::UNIX_EPOCH + DAY * day;
        let dates = dates();
        let message = dates.misfit(at(1005)).expect("too early for b");
        assert!(
            message.contains("that of b is not valid before 1972-10-07") && !message.contains("own"),
            "{message}"
        );
        assert_eq!(dates.fitting(at(1005)), [Party(0), Party(2)].into_iter().collect());
    }

    /// Three nodes are ready. One certificate ends while they are connected; the connections remain.
    #[test]
    fn a_node_whose_certificate_ends_while_it_runs_is_not_ready_and_says_why() {
        let dir = tempfile::tempdir().expect("a directory");
        let local = crate::local::create(&dir.path().join("cluster"), "shamir", 3, 1).expect("made");
        let pair = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let mut parameters = CertificateParams::default();
        let end = OffsetDateTime::now_utc() + Duration::from_secs(4);
        (parameters.not_before, parameters.not_after) = (end - DAY, end);
        let certificate = parameters.self_signed(&pair).expect("a certificate");
        let mut first = NodeDir::open(&local.nodes[0]).expect("its directory");
        let mut cluster = first.cluster().expect("read").expect("it is there");
        cluster
            .update(first.begin_rotation(certificate.der(), &pair.serialize_der()).expect("begun"))
            .expect("updated");
        cluster.update(first.finish_rotation().expect("finished")).expect("updated");
        let start = |path: &std::path::PathBuf| {
            let node = NodeDir::open(path).expect("its directory");
            node.set_cluster(&cluster, polyclave_config::Consent::Certificates).expect("saved");
            Running::start(node).expect("it starts")
        };
        let nodes: Vec<Running> = local.nodes.iter().map(start).collect();
        let until = Instant::now() + Duration::from_secs(30);
        while SystemTime::from(end) + Duration::from_secs(1) > SystemTime::now() {
            assert!(Instant::now() < until);
            sleep(Duration::from_millis(100));
        }
        let message = nodes[0].why_not_ready().expect("not ready");
        assert!(message.contains("clock") && message.contains("own certificate expired on"), "{message}");
        for node in &nodes[1..] {
            let message = node.why_not_ready().expect("too few are left");
            assert!(message.contains("that of node-1 expired on"), "{message}");
        }
    }
}
