//! `clients.toml`: what each client may do at this node. A client that is not in it may do nothing.

use std::path::Path;

use polyclave_transport::CertificateDer;
use polyclave_transport::wire::Right;
use serde::{Deserialize, Serialize};

use crate::{ClientCard, Error, Result, certificate_fingerprint, check_name, private, text};

/// The rules of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPolicy {
    #[serde(default, rename = "client", skip_serializing_if = "Vec::is_empty")]
    rules: Vec<ClientRule>,
}

/// What one client may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientRule {
    /// Its name.
    pub name: String,
    /// The certificate by which it is known.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
    /// What it may do.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or beginnings of names followed by a `*`.
    pub keys: Vec<String>,
}

impl ClientPolicy {
    /// Reads rules.
    pub fn parse(text: &str) -> Result<ClientPolicy> {
        let policy: ClientPolicy = text::parse(text)?;
        policy.check()?;
        Ok(policy)
    }

    /// Reads rules from a file.
    pub fn load(path: &Path) -> Result<ClientPolicy> {
        ClientPolicy::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The rules as text, as their file has them.
    pub fn to_text(&self) -> String {
        text::render("What which client may do at this node. Who is not here may do nothing.", self)
    }

    /// All rules.
    pub fn rules(&self) -> &[ClientRule] {
        &self.rules
    }

    /// Whether a client has this right for the key with this name.
    pub fn allows(&self, certificate: &CertificateDer<'_>, right: Right, key: &str) -> bool {
        self.rule_of(certificate).is_some_and(|rule| rule.allows(right, key))
    }

    /// Whether a client has this right, which is not about keys.
    pub fn allows_without_key(&self, certificate: &CertificateDer<'_>, right: Right) -> bool {
        self.rule_of(certificate).is_some_and(|rule| rule.rights.contains(&right))
    }

    /// The name of the client with this certificate.
    pub fn client_of(&self, certificate: &CertificateDer<'_>) -> Option<&str> {
        self.rule_of(certificate).map(|rule| rule.name.as_str())
    }

    /// The certificates of all clients. Nobody else may connect.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        self.rules.iter().map(|rule| rule.certificate.clone()).collect()
    }

    /// Gives a client these rights and no others. It replaces an older rule for the client, but not for another certificate with its name.
    pub fn allow(&mut self, client: &ClientCard, rights: &[Right], keys: &[String]) -> Result<()> {
        let known = self.rules.iter().find(|rule| rule.name == client.name);
        if let Some(known) = known.filter(|rule| rule.certificate != client.certificate) {
            return Err(Error::misuse(format!(
                "{} is known here by another certificate; nothing was changed\n  known:       {}\n  this card's: {}\nIf it is the \
                 same client with a new certificate, compare this with its owner, and give --replace; then the old one may do \
                 nothing more. If it is another client, it takes another name",
                client.name,
                certificate_fingerprint(&known.certificate),
                certificate_fingerprint(&client.certificate)
            )));
        }
        self.replace(client, rights, keys)
    }

    /// Gives a client these rights, and replaces whatever certificate had this name.
    pub fn replace(&mut self, client: &ClientCard, rights: &[Right], keys: &[String]) -> Result<()> {
        let mut rights = rights.to_vec();
        rights.sort();
        rights.dedup();
        let (name, certificate) = (client.name.clone(), client.certificate.clone());
        let rule = ClientRule { name, certificate, rights, keys: keys.to_vec() };
        let mut changed = self.clone();
        match changed.rules.iter_mut().find(|old| old.name == rule.name) {
            Some(old) => *old = rule,
            None => changed.rules.push(rule),
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Takes all rights from a client.
    pub fn revoke(&mut self, name: &str) -> Result<()> {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.name != name);
        let missing = || Error::misuse(format!("there is no client {name:?} here; nothing was changed"));
        (self.rules.len() < before).then_some(()).ok_or_else(missing)
    }

    fn rule_of(&self, certificate: &CertificateDer<'_>) -> Option<&ClientRule> {
        self.rules.iter().find(|rule| rule.certificate == *certificate)
    }

    fn check(&self) -> Result<()> {
        for (i, rule) in self.rules.iter().enumerate() {
            check_name("client", &rule.name)?;
            rule.keys.iter().try_for_each(|pattern| check_pattern(pattern))?;
            for other in &self.rules[..i] {
                if rule.name == other.name {
                    return Err(Error::misuse(format!(
                        "two clients are called {}; give each its own name",
                        rule.name
                    )));
                }
                if rule.certificate == other.certificate {
                    let both = format!("{} and {}", other.name, rule.name);
                    return Err(Error::misuse(format!(
                        "{both} have one certificate; each client makes its own"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl ClientRule {
    fn allows(&self, right: Right, key: &str) -> bool {
        self.rights.contains(&right) && self.keys.iter().any(|pattern| matches(pattern, key))
    }
}

/// A pattern is a name, or the beginning of a name and a `*`.
fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => key.starts_with(beginning),
        None => pattern == key,
    }
}

fn check_pattern(pattern: &str) -> Result<()> {
    match pattern.strip_suffix('*') {
        Some("") => Ok(()),
        Some(beginning) => check_name("key", beginning),
        None => check_name("key", pattern),
    }
    .map_err(|_| Error::misuse(format!("{pattern:?} is no key's name; a `*` may only stand at the end")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::tests::certificate;

    fn client(name: &str, seed: u8) -> ClientCard {
        ClientCard { name: name.into(), certificate: certificate(seed) }
    }

    fn policy() -> ClientPolicy {
        let mut policy = ClientPolicy::default();
        let keys = ["pay-*".to_owned(), "exact".to_owned()];
        policy.allow(&client("alice", 1), &[Right::Encrypt, Right::Mac], &keys).expect("it fits");
        policy.allow(&client("bob", 2), &[Right::Decrypt], &["*".into()]).expect("it fits");
        policy
    }

    #[test]
    fn a_client_may_do_what_its_rule_says_and_no_more() {
        let policy = policy();
        let alice = certificate(1);
        assert!(policy.allows(&alice, Right::Encrypt, "pay-roll"));
        assert!(policy.allows(&alice, Right::Mac, "exact"));
        assert!(!policy.allows(&alice, Right::Decrypt, "exact"));
        assert!(!policy.allows(&alice, Right::Encrypt, "exactly"));
        assert!(!policy.allows(&alice, Right::Encrypt, "pa"));
        assert!(policy.allows(&certificate(2), Right::Decrypt, "anything"));
        assert!(!policy.allows(&certificate(3), Right::Decrypt, "anything"));
        assert_eq!(policy.client_of(&alice), Some("alice"));
        assert_eq!(policy.client_of(&certificate(3)), None);
    }

    #[test]
    fn who_is_revoked_may_do_nothing() {
        let mut policy = policy();
        policy.revoke("bob").expect("he was there");
        assert!(!policy.allows(&certificate(2), Right::Decrypt, "anything"));
        assert!(policy.revoke("bob").is_err());
    }

    #[test]
    fn a_new_rule_replaces_the_old_one() {
        let mut policy = policy();
        policy.allow(&client("alice", 1), &[Right::List], &["exact".into()]).expect("it fits");
        assert!(!policy.allows(&certificate(1), Right::Encrypt, "exact"));
        assert!(policy.allows(&certificate(1), Right::List, "exact"));
    }

    #[test]
    fn another_certificate_takes_a_name_only_if_that_is_wanted() {
        let mut policy = policy();
        let before = policy.clone();
        let card = client("alice", 4);
        let error =
            policy.allow(&card, &[Right::List], &["exact".into()]).expect_err("in silence").to_string();
        for certificate in [certificate(1), certificate(4)] {
            assert!(error.contains(&certificate_fingerprint(&certificate)), "{error}");
        }
        assert!(error.contains("--replace"), "{error}");
        assert_eq!(policy, before);
        policy.replace(&card, &[Right::List], &["exact".into()]).expect("wanted");
        assert!(!policy.allows(&certificate(1), Right::Encrypt, "exact"));
        assert!(!policy.allows(&certificate(4), Right::Encrypt, "exact"));
        assert!(policy.allows(&certificate(4), Right::List, "exact"));
    }

    #[test]
    fn ambiguous_rules_are_refused_and_change_nothing() {
        let mut policy = policy();
        let before = policy.clone();
        assert!(policy.allow(&client("carol", 1), &[], &[]).is_err());
        assert!(policy.allow(&client("c rol", 3), &[], &[]).is_err());
        assert!(policy.allow(&client("carol", 3), &[], &["a*b".into()]).is_err());
        assert!(policy.allow(&client("carol", 3), &[], &["a**".into()]).is_err());
        assert_eq!(policy, before);
    }

    #[test]
    fn a_policy_comes_back_and_an_empty_one_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("clients.toml");
        for policy in [policy(), ClientPolicy::default()] {
            policy.save(&file).expect("saved");
            assert_eq!(ClientPolicy::load(&file).expect("loaded"), policy);
        }
        std::fs::write(&file, "[[client]]\nname = 'a'\nrights = ['encrypt', 'everything']\n")
            .expect("written");
        assert!(ClientPolicy::load(&file).expect_err("no such right").to_string().contains("clients.toml"));
    }
}
