//! External key stores of AWS KMS, of which a gateway is the proxy.

use serde::Deserialize;

use crate::policy::matches;
use crate::{Error, Result, check_name};

/// What the path of every store ends with (XKS Proxy API, version 1).
const END: &str = "/kms/xks/v1";
/// The most characters of a path, and of an external key id.
const MOST: usize = 128;
/// Milliseconds within which a request is answered, if nothing else is said.
const ANSWER_MS: u64 = 240;
/// The most bytes of an ARN, and of a pattern of them.
const MOST_OF_ARN: usize = 2048;

/// An external key store of AWS KMS: the gateway is its proxy, on all listeners (`[[xks]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayXks {
    /// Its path, as the `XksProxyUriPath` of KMS: it ends in `/kms/xks/v1`.
    pub path: String,
    /// The regions from which KMS may ask, such as `eu-central-1`; all if none is named.
    #[serde(default)]
    pub regions: Vec<String>,
    /// Milliseconds within which a request is answered; 240 if absent. KMS waits for 250.
    #[serde(default = "answer_ms")]
    pub answer_ms: u64,
    /// Its keys (`[[xks.key]]`).
    #[serde(rename = "key")]
    pub keys: Vec<GatewayXksKey>,
}

/// A key of an external key store (`[[xks.key]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayXksKey {
    /// The external key id, by which KMS names it: 1 to 128 letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// The name of the key at the nodes.
    pub key: String,
    /// The principals of AWS for which it encrypts and decrypts, as KMS names them (ARNs; `*` stands for any
    /// characters, `?` for one); all if none is named.
    #[serde(default)]
    pub principals: Vec<String>,
    /// The keys of KMS for which it encrypts and decrypts, in the same way.
    #[serde(default)]
    pub kms_keys: Vec<String>,
}

fn answer_ms() -> u64 {
    ANSWER_MS
}

impl GatewayXks {
    /// Refuses what KMS would not ask for, and what means two things.
    pub(super) fn check(&self) -> Result<()> {
        let of_path = |c: char| c.is_ascii_alphanumeric() || "/-_".contains(c);
        let before = self.path.strip_suffix(END);
        let fits = |before: &str| (before.is_empty() || before.starts_with('/')) && !before.contains(END);
        if self.path.len() > MOST || !self.path.chars().all(of_path) || !before.is_some_and(fits) {
            return Err(Error::misuse(format!(
                "its path has to be {END}, or to end with it once after a prefix such as /eu, with at most {MOST} letters, digits, -, _ and /"
            )));
        }
        if self.answer_ms == 0 {
            return Err(Error::misuse("answer_ms is 0: nothing could be answered; write at least 1"));
        }
        if self.keys.is_empty() {
            return Err(Error::misuse("it has no keys; add a [[xks.key]] with id and key"));
        }
        for (at, entry) in self.keys.iter().enumerate() {
            entry.check()?;
            if self.keys[..at].iter().any(|other| other.id == entry.id) {
                return Err(Error::misuse(format!("two of its keys have the id {:?}", entry.id)));
            }
        }
        Ok(())
    }
}

impl GatewayXksKey {
    fn check(&self) -> Result<()> {
        let of_id = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !(1..=MOST).contains(&self.id.len()) || !self.id.chars().all(of_id) {
            let shown: String = self.id.chars().take(80).collect();
            return Err(Error::misuse(format!(
                "{shown:?} is no id of a key: it has 1 to {MOST} letters, digits, -, _ and ."
            )));
        }
        for pattern in self.principals.iter().chain(&self.kms_keys) {
            let fits = (1..=MOST_OF_ARN).contains(&pattern.len())
                && pattern.chars().all(|c| c == ' ' || c.is_ascii_graphic());
            if !fits {
                let shown: String = pattern.chars().take(80).collect();
                return Err(Error::misuse(format!(
                    "{shown:?} is no ARN and no pattern of ARNs: write for example arn:aws:iam::111122223333:role/orders, or * for any characters"
                )));
            }
        }
        check_name("key", &self.key)
    }

    /// Whether it encrypts and decrypts for this principal of AWS and this key of KMS.
    pub fn allows(&self, principal: &str, kms_key: &str) -> bool {
        let fits = |patterns: &[String], name: &str| {
            let is_one =
                || name.len() <= MOST_OF_ARN && patterns.iter().any(|pattern| matches(pattern, name));
            patterns.is_empty() || is_one()
        };
        fits(&self.principals, principal) && fits(&self.kms_keys, kms_key)
    }
}
