//! A role: whose tokens it takes, and what their holders may do then.

use std::collections::BTreeMap;

use polyclave_api::Right;
use serde::Deserialize;

use super::LoginKind;
use crate::gateway::token::{GatewayGrant, TOKEN_RIGHTS, check_rights};
use crate::policy::fits;
use crate::{Error, Result};

/// The most entries of a list, and bytes of each.
const MOST_ENTRIES: usize = 256;
const MOST_BYTES: usize = 512;
/// Seconds that a token of the gateway is good for after a login, and after that if it is renewed.
const LIFE: u64 = 900;
const MOST_LIFE: u64 = 8 * 3600;
/// The longest time for both.
const LONGEST: u64 = 7 * 24 * 3600;

/// Whom an issuer's tokens let in, and what they may do (`[[login.role]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayLoginRole {
    /// Its name: programs log in with it, and the audit logs of the nodes have it.
    pub name: String,
    /// The audiences of which the claim `aud` has to have one.
    pub audiences: Vec<String>,
    /// With `kind = "jwt"`: patterns (`*`, `?`) of which the claim `sub` has to fit one. All subjects if
    /// absent; then `claims` are needed.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Claims that a token has to have, each with the patterns of which its value, or one of its values, has
    /// to fit one. A name that begins with `/` is a path in the token (JSON Pointer).
    #[serde(default)]
    pub claims: BTreeMap<String, Vec<String>>,
    /// With `kind = "kubernetes"`: patterns of the names of service accounts.
    #[serde(default)]
    pub service_accounts: Vec<String>,
    /// With `kind = "kubernetes"`: patterns of the service accounts' namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Whether each token of the issuer is good for one login. It has to have the claims `jti` and `iat`
    /// then, and `exp` at most 24 hours after `iat`.
    #[serde(default)]
    pub single_use: bool,
    /// Seconds after which the gateway's token ends if it is not renewed; 900 if absent.
    #[serde(default = "life")]
    pub life_seconds: u64,
    /// Seconds after the login at which the gateway's token ends, however often it is renewed; 28800 if
    /// absent.
    #[serde(default = "most_life")]
    pub most_life_seconds: u64,
    /// What the gateway's token may do.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    #[serde(default)]
    pub keys: Vec<String>,
}

fn life() -> u64 {
    LIFE
}

fn most_life() -> u64 {
    MOST_LIFE
}

impl GatewayLoginRole {
    /// What programs may do that have logged in with it.
    pub fn grant(&self) -> GatewayGrant {
        GatewayGrant { name: self.name.clone(), rights: self.rights.clone(), keys: self.keys.clone() }
    }

    /// Whether it takes tokens of a subject.
    pub fn fits_subject(&self, subject: &str) -> bool {
        self.subjects.is_empty() || fits(&self.subjects, subject)
    }

    /// Whether it takes tokens of a service account.
    pub fn fits_service_account(&self, name: &str) -> bool {
        fits(&self.service_accounts, name)
    }

    /// Whether it takes tokens of service accounts in a namespace.
    pub fn fits_namespace(&self, namespace: &str) -> bool {
        fits(&self.namespaces, namespace)
    }

    /// Whether a value fits one of some patterns of `claims`.
    pub fn fits_claim(patterns: &[String], value: &str) -> bool {
        fits(patterns, value)
    }

    /// Whom it lets in: all but what they may do, and for how long.
    pub(super) fn admission(&self) -> GatewayLoginRole {
        let (rights, keys) = Default::default();
        GatewayLoginRole { life_seconds: 0, most_life_seconds: 0, rights, keys, ..self.clone() }
    }

    pub(super) fn check(&self, kind: LoginKind) -> Result<()> {
        check_rights(&self.rights, &self.keys, &TOKEN_RIGHTS)?;
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            return Err(Error::misuse(
                "it has no audiences: it would take tokens that were made for other services; name what `aud` is in tokens for this gateway",
            ));
        }
        let lists = [&self.audiences, &self.subjects, &self.service_accounts, &self.namespaces];
        lists.into_iter().chain(self.claims.values()).try_for_each(|list| check_list(list))?;
        if self.claims.len() > MOST_ENTRIES
            || self.claims.iter().any(|(name, values)| name.is_empty() || values.is_empty())
        {
            return Err(Error::misuse(
                "each of its claims has to have a name, and values of which one has to fit",
            ));
        }
        self.check_who(kind)?;
        if !(1..=LONGEST).contains(&self.life_seconds)
            || !(self.life_seconds..=LONGEST).contains(&self.most_life_seconds)
        {
            return Err(Error::misuse(format!(
                "life_seconds is {} and most_life_seconds {}: both have to be from 1 to {LONGEST}, and the second at least the first",
                self.life_seconds, self.most_life_seconds
            )));
        }
        Ok(())
    }

    fn check_who(&self, kind: LoginKind) -> Result<()> {
        let fits_all = |pattern: &String| pattern.contains('*') && pattern.chars().all(|c| "*?".contains(c));
        let is_everybody = |patterns: &[String]| patterns.iter().any(fits_all);
        match kind {
            LoginKind::Jwt if !self.service_accounts.is_empty() || !self.namespaces.is_empty() => {
                Err(Error::misuse(
                    "service_accounts and namespaces are for kind = \"kubernetes\"; write subjects or claims",
                ))
            }
            LoginKind::Jwt if self.subjects.is_empty() && self.claims.is_empty() => Err(Error::misuse(
                "it has neither subjects nor claims: everybody with a token of the issuer could log in; name them, or write subjects = [\"*\"]",
            )),
            LoginKind::Kubernetes if !self.subjects.is_empty() => {
                Err(Error::misuse("subjects are for kind = \"jwt\"; write service_accounts and namespaces"))
            }
            LoginKind::Kubernetes if self.service_accounts.is_empty() || self.namespaces.is_empty() => {
                Err(Error::misuse("it needs service_accounts and namespaces"))
            }
            LoginKind::Kubernetes
                if is_everybody(&self.service_accounts) && is_everybody(&self.namespaces) =>
            {
                Err(Error::misuse(
                    "service_accounts and namespaces are both \"*\": everything that runs in that cluster could log in; name some",
                ))
            }
            _ => Ok(()),
        }
    }
}

fn check_list(list: &[String]) -> Result<()> {
    let fits =
        |entry: &String| (1..=MOST_BYTES).contains(&entry.len()) && !entry.chars().any(char::is_control);
    match list.len() <= MOST_ENTRIES && list.iter().all(fits) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "a list of it has more than {MOST_ENTRIES} entries, or one that is empty or has more than {MOST_BYTES} bytes"
        ))),
    }
}
