//! The entries of `clients.toml`.

use std::num::NonZeroU64;

use polyclave_api::{Mode, Right};
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};

use super::times::{Day, Hours, Moment};
use crate::text;

/// A client, and what it may do at any time (`[[client]]`). [`Rule`]s may allow it more, or forbid it
/// something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientRule {
    /// Its name.
    pub name: String,
    /// The certificate by which it is known.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
    /// What it may do.
    #[serde(default)]
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Its next certificate, by which it is known as well, while it changes.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "text::optional_certificate")]
    pub next: Option<CertificateDer<'static>>,
}

/// Several clients under one name (`[[group]]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name. No client has it.
    pub name: String,
    /// The names of the clients.
    pub clients: Vec<String>,
}

/// A rule with conditions (`[[rule]]`). What a rule with `deny` covers is forbidden, also if another rule
/// allows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Whether it forbids.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deny: bool,
    /// The clients that it is for, by name; `*` is every client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// The groups that it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What it allows or forbids.
    pub rights: Vec<Right>,
    /// With which keys: names or patterns.
    pub keys: Vec<String>,
    /// Only in these modes; in all if there are none. Operations that have no mode, such as `delete`, are
    /// allowed all the same, and not forbidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// In force from this moment on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    /// In force up to this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Moment>,
    /// Only on these days, in UTC; on all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Day>,
    /// Only at these hours, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
    /// The most requests of each client in an hour of the clock (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_hour: Option<NonZeroU64>,
    /// The most requests of each client in a day (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_day: Option<NonZeroU64>,
    /// The most blocks of each client in an hour of the clock (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_hour: Option<NonZeroU64>,
    /// The most blocks of each client in a day (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_day: Option<NonZeroU64>,
    /// Only files in envelopes that these clients wrote: names or patterns. Nothing else is allowed or
    /// forbidden then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
}

impl Rule {
    /// Whether the rule has a limit of requests or blocks.
    pub fn is_limited(&self) -> bool {
        self.limits().iter().any(|(_, most)| most.is_some())
    }

    /// Whether the rule is in force at some times only.
    pub fn is_timed(&self) -> bool {
        let has_span = self.not_before.is_some() || self.not_after.is_some();
        has_span || !self.days.is_empty() || self.hours.is_some()
    }

    /// The limits of requests and blocks, each with its name in the file.
    pub fn limits(&self) -> [(&'static str, Option<NonZeroU64>); 4] {
        [
            ("requests_per_hour", self.requests_per_hour),
            ("requests_per_day", self.requests_per_day),
            ("blocks_per_hour", self.blocks_per_hour),
            ("blocks_per_day", self.blocks_per_day),
        ]
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
