//! What an alarm is about, and the alert of Prometheus that tells the same
//! (`packaging/prometheus/alerts.yml`).

/// What an alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    TooFewNodes,
    CorrectionOff,
    ReleasesDiffer,
    NotAdmitted,
    NodeDown,
    PeerUnreached,
    Quarantine,
    StandbyServes,
    NodeNotReady,
    KeysDamaged,
    KeysLacking,
    ClockDoesNotFit,
    ChecksFailed,
    NodeOutvoted,
    AuditLogShorter,
    AuditUnwritable,
    StockLow,
    CertificateEnds,
    CertificateEndsSoon,
    AuthorityEnds,
    KeyBudgetLow,
    KeysExpire,
}

impl Kind {
    /// The name of the alert. None if it is about the client that looks, of which no node has a metric.
    pub(super) fn alert(self) -> Option<String> {
        (self != Kind::NotAdmitted).then(|| format!("Polyclave{self:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Kind;

    const RULES: &str = include_str!("../../../../../packaging/prometheus/alerts.yml");

    /// The kinds of alarms that are told somewhere.
    fn told() -> BTreeSet<&'static str> {
        let (code, _) = include_str!("../alarms.rs").split_once("#[cfg(test)]").expect("tests at its end");
        let after = code.split("Kind::").skip(1);
        after.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()).collect()
    }

    #[test]
    fn every_alarm_has_a_rule_for_prometheus() {
        let alerts: BTreeSet<&str> =
            RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
        assert!(told().len() >= 20, "{:?}", told());
        let without: Vec<&str> = told()
            .into_iter()
            .filter(|kind| *kind != "NotAdmitted" && !alerts.contains(format!("Polyclave{kind}").as_str()))
            .collect();
        assert_eq!(without, [""; 0], "these alarms have no rule in packaging/prometheus/alerts.yml");
        assert_eq!(Kind::NotAdmitted.alert(), None);
        assert_eq!(Kind::NodeDown.alert().as_deref(), Some("PolyclaveNodeDown"));
    }
}
