//! The rules for clients that are in force, what they allow, and how they have changed. Each changed client
//! gets a line of the audit log, also for changes that were made while no node ran.

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use polyclave_api::{Demand, Permission, Reason, Refusal, Right};
use polyclave_config::{ClientPolicy, ClientRule, Grant, Judgement, Moment, Rule};
use polyclave_store::Store;
use polyclave_transport::CertificateDer;

use crate::Result;
use crate::audit::Event;
use crate::audit::logbook::Logbook;
use crate::clients::changes::changes;
use crate::clients::rates::Rates;
use crate::error::system;

/// The client that asks.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) certificate: CertificateDer<'static>,
}

/// The rules for clients that are in force.
#[derive(Clone)]
pub(crate) struct Rules(Arc<InForce>);

struct InForce {
    policy: RwLock<ClientPolicy>,
    rates: Rates,
}

impl Rules {
    pub(crate) fn new(policy: ClientPolicy) -> Rules {
        Rules(Arc::new(InForce { policy: RwLock::new(policy), rates: Rates::default() }))
    }

    /// The rules themselves.
    pub(crate) fn policy(&self) -> RwLockReadGuard<'_, ClientPolicy> {
        self.0.policy.read()
    }

    /// The name of the client with a certificate.
    pub(crate) fn client_of(&self, certificate: &CertificateDer<'_>) -> Option<String> {
        self.0.policy.read().client_of(certificate).map(str::to_owned)
    }

    /// All clients by their names, with the certificates by which each is known.
    pub(crate) fn certificates(&self) -> Vec<(String, Vec<CertificateDer<'static>>)> {
        let policy = self.0.policy.read();
        let of = |client: &ClientRule| (client.name.clone(), client.certificates().cloned().collect());
        policy.clients().iter().map(of).collect()
    }

    /// Whether a client may do something with a key that has no mode.
    pub(crate) fn allows(&self, client: &Client, right: Right, key: &str) -> bool {
        self.0.policy.read().allows(&client.certificate, &Permission::of(right, key), Moment::now())
    }

    /// Refuses what the rules do not allow now. It counts nothing.
    pub(crate) fn allow(&self, client: &Client, asked: &Permission) -> Result<(), Refusal> {
        refuse(client, asked, &self.0.policy.read().judge(&client.certificate, asked, Moment::now()))
            .map(drop)
    }

    /// Counts requests and blocks against the limits of the rules for everything that is asked, before
    /// anything is computed. If a rule without limits allows something, nothing is counted for it. Otherwise
    /// the first rule with room counts the amounts, once for the whole request.
    pub(crate) fn charge<'a>(
        &self,
        client: &Client,
        asked: impl IntoIterator<Item = &'a Permission>,
        amounts: [u64; 2],
    ) -> Result<(), Refusal> {
        let (policy, now) = (self.0.policy.read(), Moment::now());
        let mut counted: Vec<&Rule> = Vec::new();
        for asked in asked {
            let judgement = policy.judge(&client.certificate, asked, now);
            let grants = refuse(client, asked, &judgement)?;
            let limited = |grant: &Grant<'_>| matches!(grant, Grant::Rule(rule) if rule.is_limited());
            if !grants.iter().all(limited) {
                continue;
            }
            let rules: Vec<&Rule> = grants.iter().filter_map(Grant::rule).collect();
            if rules.iter().any(|rule| counted.contains(rule)) {
                continue;
            }
            match rules.iter().find(|rule| self.0.rates.admit(rule, &client.name, amounts, now)) {
                Some(rule) => counted.push(rule),
                None if rules.is_empty() => {}
                None => return Err(used_up(client, asked, &rules)),
            }
        }
        Ok(())
    }

    /// Puts rules into force at once, whether or not their lines can be written to the audit log.
    pub(crate) fn take(&self, policy: ClientPolicy) {
        let (clients, rules) = (policy.clients().len(), policy.rules().len());
        tracing::info!(clients, rules, "rules for clients were read");
        self.0.rates.keep(policy.rules());
        *self.0.policy.write() = policy;
    }

    /// Logs the differences between the rules in force and those that were logged last, and remembers the
    /// former. Tried again if it fails.
    pub(crate) fn log(&self, logbook: &Logbook, store: &Store) -> Result<()> {
        if logbook.failure().is_some() {
            return Ok(());
        }
        let policy = self.0.policy.read().clone();
        let (text, noted) = (policy.to_text(), store.noted_policy().map_err(system)?);
        if noted.as_ref() == Some(&text) {
            return Ok(());
        }
        // Rules of another version cannot be read any more: then all rules in force are logged.
        let before = noted.as_ref().and_then(|noted| ClientPolicy::parse(noted).ok());
        for change in changes(&before.unwrap_or_default(), &policy) {
            let event = Event::of_node("policy", change.outcome);
            logbook.append(&Event { client: &change.client, detail: &change.detail, ..event })?;
        }
        let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex();
        let was = noted.map_or(String::new(), |noted| format!(" rules-before=blake3:{}", hash(&noted)));
        let detail = format!("rules=blake3:{}{was}", hash(&text));
        logbook.append(&Event { detail: &detail, ..Event::of_node("policy", "in-force") })?;
        store.note_policy(&text).map_err(system)
    }
}

fn used_up(client: &Client, asked: &Permission, full: &[&Rule]) -> Refusal {
    let limits = full.iter().map(|rule| {
        let set = rule.limits().into_iter().filter_map(|(name, most)| Some(format!("{name} = {}", most?)));
        format!("the rule {} has {}", rule.name, set.collect::<Vec<_>>().join(", "))
    });
    let message = format!(
        "{} has used up what its policy allows to {asked}: {}; hours and days are those of the clock in UTC",
        client.name,
        limits.collect::<Vec<_>>().join("; ")
    );
    // Not `Busy`: trying again at once is of no use.
    Refusal::new(Reason::Denied, message)
}

/// The rules that allow something, or the refusal that the client gets.
fn refuse<'j, 'p>(
    client: &Client,
    asked: &Permission,
    judgement: &'j Judgement<'p>,
) -> Result<&'j [Grant<'p>], Refusal> {
    let why = match judgement {
        Judgement::Allowed(grants) => return Ok(grants),
        Judgement::Denied(rule) => format!(": the rule {} denies it", rule.name),
        // A rule that lacks more is about something else.
        Judgement::NotAllowed(Some((Grant::Rule(rule), lacks))) if lacks.len() == 1 => {
            format!(": {} (rule {})", lacks[0], rule.name)
        }
        Judgement::NotAllowed(_) | Judgement::Unknown => String::new(),
    };
    let amounts = if asked.demand == Demand::Bound { ", to which this amounts" } else { "" };
    let message = format!("its policy does not allow {} to {asked}{amounts}{why}", client.name);
    Err(Refusal::new(Reason::Denied, message))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use polyclave_config::ClientCard;
    use polyclave_transport::Identity;

    use super::*;

    #[test]
    fn a_request_counts_once_for_a_rule_however_many_keys_it_is_about() {
        let certificate = Identity::generate_named("alice", 1).expect("an identity").certificate();
        let card = ClientCard { name: "alice".into(), certificate: certificate.clone() };
        let mut policy = ClientPolicy::default();
        policy.allow(&card, &[Right::List], &["*".into()]).expect("it fits");
        let rule = Rule {
            name: "rewraps".into(),
            clients: vec!["alice".into()],
            rights: vec![Right::Rewrap],
            keys: vec!["*".into()],
            requests_per_day: NonZeroU64::new(2),
            ..Rule::default()
        };
        policy.set_rule(rule).expect("it fits");
        let (rules, client) = (Rules::new(policy), Client { name: "alice".into(), certificate });
        let asked = ["old", "new"].map(|key| Permission::of(Right::Rewrap, key));
        let outcomes = [(); 3].map(|()| rules.charge(&client, &asked, [1, 0]).is_ok());
        assert_eq!(outcomes, [true, true, false]);
    }
}
