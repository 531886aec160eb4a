//! The rules for clients that are in force, what they allow, and how they have changed. Each changed client gets a line of the audit log,
//! also for changes that were made while no node ran.

use std::sync::Arc;

use parking_lot::RwLock;
use polyclave_config::{ClientPolicy, ClientRule};
use polyclave_transport::CertificateDer;
use polyclave_transport::wire::{Reason, Refusal, Right};

use crate::Result;
use crate::error::system;
use crate::operator::audit::Event;
use crate::operator::logbook::Logbook;
use crate::store::Store;

/// The client that asks.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) certificate: CertificateDer<'static>,
}

/// What has changed for one client.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    client: String,
    outcome: &'static str,
    detail: String,
}

/// The rules for clients that are in force.
#[derive(Clone)]
pub(crate) struct Rules(Arc<RwLock<ClientPolicy>>);

impl Rules {
    pub(crate) fn new(policy: ClientPolicy) -> Rules {
        Rules(Arc::new(RwLock::new(policy)))
    }

    /// The name of the client with a certificate.
    pub(crate) fn client_of(&self, certificate: &CertificateDer<'_>) -> Option<String> {
        self.0.read().client_of(certificate).map(str::to_owned)
    }

    /// Whether a client may do this with a key.
    pub(crate) fn allows(&self, client: &Client, right: Right, key: &str) -> bool {
        self.0.read().allows(&client.certificate, right, key)
    }

    /// The same, with a refusal as the error.
    pub(crate) fn allow(&self, client: &Client, right: Right, key: &str) -> Result<(), Refusal> {
        if self.allows(client, right, key) {
            return Ok(());
        }
        let name = &client.name;
        let told = format!("its policy does not allow {name} to {right} with the key '{key}'");
        Err(Refusal::new(Reason::Denied, told))
    }

    /// Refuses a client that does not have a right that is not about keys.
    pub(crate) fn allow_without_key(&self, client: &Client, right: Right) -> Result<(), Refusal> {
        if self.0.read().allows_without_key(&client.certificate, right) {
            return Ok(());
        }
        let told = format!(
            "its policy does not allow {} to have random bytes: it lacks the right {right}",
            client.name
        );
        Err(Refusal::new(Reason::Denied, told))
    }

    /// Puts rules into force at once, whether or not their lines can be written to the audit log.
    pub(crate) fn take(&self, policy: ClientPolicy) {
        tracing::info!(clients = policy.rules().len(), "rules for clients were read");
        *self.0.write() = policy;
    }

    /// Logs the differences between the rules in force and those that were logged last, and remembers the former. Tried again if it fails.
    pub(crate) fn log(&self, logbook: &Logbook, store: &Store) -> Result<()> {
        if logbook.failure().is_some() {
            return Ok(());
        }
        let policy = self.0.read().clone();
        let (text, noted) = (policy.to_text(), store.noted_policy().map_err(system)?);
        if noted.as_ref() == Some(&text) {
            return Ok(());
        }
        // Rules of another version cannot be read any more: then all rules in force are logged.
        let before = noted.and_then(|noted| ClientPolicy::parse(&noted).ok());
        for change in changes(&before.unwrap_or_default(), &policy) {
            let event = Event::of_node("policy", change.outcome);
            logbook.append(&Event { client: &change.client, detail: &change.detail, ..event })?;
        }
        store.note_policy(&text).map_err(system)
    }
}

/// The differences, in the order of the clients' names.
fn changes(before: &ClientPolicy, after: &ClientPolicy) -> Vec<Change> {
    let of =
        |policy: &ClientPolicy, name: &str| policy.rules().iter().find(|rule| rule.name == name).cloned();
    let mut names: Vec<&str> =
        before.rules().iter().chain(after.rules()).map(|rule| rule.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &str| {
        let (outcome, detail) = match (of(before, name), of(after, name)) {
            (old, new) if old == new => return None,
            (None, Some(new)) => ("allowed", fields(&new).map(|(field, value)| format!("{field}={value}"))),
            (Some(old), None) => ("revoked", fields(&old).map(|(field, value)| format!("{field}={value}"))),
            (Some(old), Some(new)) => ("changed", differing(&old, &new)),
            (None, None) => return None,
        };
        let detail = detail.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(" ");
        Some(Change { client: name.to_owned(), outcome, detail })
    };
    names.into_iter().filter_map(change).collect()
}

/// The fields that differ, each with its new value and then its old one; the others are left out.
fn differing(old: &ClientRule, new: &ClientRule) -> [String; 3] {
    let mut before = fields(old).into_iter();
    fields(new).map(|(field, value)| match before.next() {
        Some((_, was)) if was != value => format!("{field}={value} {field}-before={was}"),
        _ => String::new(),
    })
}

fn fields(rule: &ClientRule) -> [(&'static str, String); 3] {
    let rights: Vec<String> = rule.rights.iter().map(ToString::to_string).collect();
    let certificate = format!("blake3:{}", blake3::hash(&rule.certificate).to_hex());
    [("certificate", certificate), ("rights", rights.join(",")), ("keys", rule.keys.join(","))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_config::ClientCard;

    fn rule(policy: &mut ClientPolicy, name: &str, certificate: u8, rights: &[Right], keys: &[&str]) {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let certificate = CertificateDer::from(vec![0x30, certificate]);
        policy.replace(&ClientCard { name: name.into(), certificate }, rights, &keys).expect("it fits");
    }

    fn hash(certificate: u8) -> String {
        format!("blake3:{}", blake3::hash(&[0x30, certificate]).to_hex())
    }

    #[test]
    fn who_is_allowed_changed_and_revoked_is_told_with_what_differs() {
        let mut before = ClientPolicy::default();
        rule(&mut before, "alice", 1, &[Right::Encrypt], &["pay-*"]);
        rule(&mut before, "bob", 2, &[Right::Mac], &["*"]);
        rule(&mut before, "same", 3, &[Right::List], &["*"]);
        let mut after = before.clone();
        rule(&mut after, "alice", 4, &[Right::Encrypt, Right::Decrypt], &["pay-*"]);
        rule(&mut after, "carol", 5, &[Right::List], &["a", "b"]);
        after.revoke("bob").expect("he was there");
        let expected = [
            (
                "alice",
                "changed",
                format!(
                    "certificate={} certificate-before={} rights=encrypt,decrypt rights-before=encrypt",
                    hash(4),
                    hash(1)
                ),
            ),
            ("bob", "revoked", format!("certificate={} rights=mac keys=*", hash(2))),
            ("carol", "allowed", format!("certificate={} rights=list keys=a,b", hash(5))),
        ];
        let found = changes(&before, &after);
        let found: Vec<_> = found.iter().map(|c| (c.client.as_str(), c.outcome, c.detail.clone())).collect();
        assert_eq!(found, expected);
        assert!(changes(&after, &after).is_empty());
    }
}
