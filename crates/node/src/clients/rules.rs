//! The rules for clients that are in force, what they allow, and how they have changed. Each changed client
//! gets a line of the audit log, also for changes that were made while no node ran.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use polyclave_api::{Demand, Permission, Reason, Refusal, Right};
use polyclave_config::{ClientPolicy, ClientRule, Grant, Judgement, Moment, NodeOperation, Rule};
use polyclave_store::Store;
use polyclave_transport::{CertificateDer, identity_of};

use crate::Result;
use crate::audit::Event;
use crate::audit::logbook::Logbook;
use crate::clients::authorities::{Authorities, AuthorityState, Changed};
use crate::clients::changes::changes;
use crate::clients::client::{Client, Known, Verified};
use crate::clients::rates::Rates;
use crate::clients::refused::Refused;
use crate::error::system;

/// The rules for clients that are in force.
#[derive(Clone)]
pub(crate) struct Rules(Arc<InForce>);

struct InForce {
    policy: RwLock<ClientPolicy>,
    /// Why it is not known which rules are in force now.
    unknown: RwLock<Option<String>>,
    authorities: Authorities,
    rates: Rates,
    refused: Mutex<Refused>,
}

impl Rules {
    pub(crate) fn new(policy: ClientPolicy) -> Rules {
        Rules(Arc::new(InForce {
            policy: RwLock::new(policy),
            unknown: RwLock::default(),
            authorities: Authorities::default(),
            rates: Rates::default(),
            refused: Mutex::default(),
        }))
    }

    /// The rules themselves.
    pub(crate) fn policy(&self) -> RwLockReadGuard<'_, ClientPolicy> {
        self.0.policy.read()
    }

    /// The client that shows a certificate, with those that came with it; or why it is none.
    pub(crate) fn know(&self, shown: &[CertificateDer<'_>]) -> Result<Client, String> {
        let policy = self.0.policy.read();
        let certificate = shown.first().ok_or("it has shown no certificate")?;
        if let Some(name) = policy.client_of(certificate) {
            return Ok(Client::listed(name, certificate));
        }
        if policy.authorities().is_empty() {
            return Err("its certificate is not listed".into());
        }
        let identity =
            identity_of(certificate).map_err(|why| format!("its certificate is not listed, and {why}"))?;
        let Some(authority) = policy.authority_of(&identity) else {
            return Err(format!("no client of an authority has the identity {identity}"));
        };
        let verified =
            self.0.authorities.verify(authority, shown, SystemTime::now()).map_err(|why| {
                format!("the certificate of {identity} (authority {}): {why}", authority.name)
            })?;
        let chain = shown.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let known =
            Known::Signed { authority: authority.name.clone(), chain, verified: Mutex::new(verified) };
        Ok(Client { name: identity, known })
    }

    /// The same for the handshake of somebody who calls. The log says why somebody is refused, if the rules
    /// have authorities: then their operators have to find out what is wrong with a certificate.
    pub(crate) fn admit(&self, shown: &[CertificateDer<'_>]) -> bool {
        let Err(why) = self.know(shown) else { return true };
        if !self.0.policy.read().authorities().is_empty() {
            let certificate = shown.first().map_or([0; 32], |certificate| blake3::hash(certificate).into());
            let told = self.0.refused.lock().tell(certificate, Instant::now());
            if let Some(untold) = told {
                tracing::warn!(why, untold, "a client was refused for its certificate");
            }
        }
        false
    }

    /// Refuses to go on with a client of an authority whose certificate has ended since it connected, or that
    /// would not be let in any more; and with everybody while it is unknown which rules are in force.
    /// What a listed client may do is judged with each request.
    pub(crate) fn refuse_ended(&self, client: &Client) -> Result<(), Refusal> {
        if let Some(why) = self.why_unknown() {
            return Err(Refusal::new(Reason::Unavailable, why));
        }
        let Known::Signed { chain, verified, authority } = &client.known else { return Ok(()) };
        let ended = |why: String| {
            Refusal::new(Reason::Busy, format!("{why}; connect again with a valid certificate"))
        };
        let Verified { until, edition } = *verified.lock();
        if SystemTime::now() > until {
            return Err(ended(format!("the certificate of {} has ended since it connected", client.name)));
        }
        if self.0.authorities.edition() == edition {
            return Ok(());
        }
        match self.know(chain) {
            Ok(Client { known: Known::Signed { authority: of, verified: now, .. }, .. })
                if of == *authority =>
            {
                // Not again with each request, until the next change. Its chain may end at another time now.
                *verified.lock() = now.into_inner();
                Ok(())
            }
            Ok(_) => Err(ended(format!("{} is known in another way now", client.name))),
            Err(why) => Err(ended(why)),
        }
    }

    /// Has everybody refused: other rules are in force, which are not known here.
    pub(crate) fn are_unknown(&self, why: String) {
        *self.0.unknown.write() = Some(why);
    }

    /// These rules are those in force.
    pub(crate) fn are_known(&self) {
        *self.0.unknown.write() = None;
    }

    /// Why it is not known which rules are in force now.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        self.0.unknown.read().clone()
    }

    /// Reads the files of authorities that have changed. They are named from the node's directory on.
    pub(crate) fn read_authorities(&self, dir: &Path) -> Vec<Changed> {
        let (named, are_approved) = {
            let policy = self.0.policy.read();
            let are_approved = !policy.approvals_for_node(NodeOperation::Policy).is_empty();
            (policy.authorities().to_vec(), are_approved)
        };
        self.0.authorities.look(&named, dir, are_approved)
    }

    /// The state of each authority.
    pub(crate) fn authorities(&self) -> Vec<AuthorityState> {
        self.0.authorities.states()
    }

    /// From when until when the certificate of each authority is valid that ends last.
    pub(crate) fn validities_of_authorities(&self) -> Vec<(String, (SystemTime, SystemTime))> {
        self.0.authorities.validities()
    }

    /// All clients by their names, with the certificates by which each is known.
    pub(crate) fn certificates(&self) -> Vec<(String, Vec<CertificateDer<'static>>)> {
        let policy = self.0.policy.read();
        let of = |client: &ClientRule| (client.name.clone(), client.certificates().cloned().collect());
        policy.clients().iter().map(of).collect()
    }

    /// Whether the rules name this very client, and not only a pattern that fits it.
    pub(crate) fn names(&self, client: &Client) -> bool {
        self.0.policy.read().is_named(client.asker())
    }

    /// Whether a client may do something with a key that has no mode.
    pub(crate) fn allows(&self, client: &Client, right: Right, key: &str) -> bool {
        self.0.policy.read().allows(client.asker(), &Permission::of(right, key), Moment::now())
    }

    /// Refuses what the rules do not allow now. It counts nothing.
    pub(crate) fn allow(&self, client: &Client, asked: &Permission) -> Result<(), Refusal> {
        refuse(client, asked, &self.0.policy.read().judge(client.asker(), asked, Moment::now())).map(drop)
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
            let judgement = policy.judge(client.asker(), asked, now);
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
        self.are_known();
        self.0.authorities.rules_have_changed();
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

    use polyclave_config::{Authority as Entry, AuthorityClient, ClientCard};
    use polyclave_harness::authority::{Authority, svid, within};
    use polyclave_transport::Identity;

    use super::*;

    const WEB: &str = "spiffe://corp.example/web";

    /// Rules for one client of an authority whose file is there.
    fn of_corp() -> ClientPolicy {
        let mut policy = ClientPolicy::default();
        policy.set_authority(Entry::new("corp", "corp.pem", None)).expect("it fits");
        let web = AuthorityClient {
            name: "web".into(),
            identity: WEB.into(),
            rights: vec![Right::List],
            keys: vec!["*".into()],
        };
        policy.set_authority_client("corp", web).expect("it fits");
        policy
    }

    fn verified(client: &Client) -> Verified {
        match &client.known {
            Known::Signed { verified, .. } => *verified.lock(),
            Known::Listed(_) => panic!("no list has it"),
        }
    }

    #[test]
    fn a_connected_client_of_an_authority_is_verified_once_after_each_change_and_with_what_is_in_force_then()
    {
        let (dir, authority) = (tempfile::tempdir().expect("a directory"), Authority::new("corp"));
        let write = |authority: &Authority| {
            std::fs::write(dir.path().join("next"), authority.pem()).expect("written");
            std::fs::rename(dir.path().join("next"), dir.path().join("corp.pem")).expect("renamed");
        };
        write(&authority);
        let rules = Rules::new(of_corp());
        assert_eq!(rules.read_authorities(dir.path()).len(), 1);
        let shown = [CertificateDer::from(authority.sign(&svid(WEB)).certificate)];
        let client = rules.know(&shown).expect("signed");
        let first = verified(&client);

        rules.take(of_corp());
        assert_ne!(rules.0.authorities.edition(), first.edition);
        rules.refuse_ended(&client).expect("it is still the authority's");
        let second = verified(&client);
        assert_eq!(second, Verified { edition: rules.0.authorities.edition(), ..first });

        // The authority has another certificate for its key, which ends before the client's.
        let mut params = Authority::params("corp");
        within(&mut params, -3600, 600);
        write(&authority.renewed(params));
        assert_eq!(rules.read_authorities(dir.path()).len(), 1);
        rules.refuse_ended(&client).expect("it is still the authority's");
        assert!(verified(&client).until < first.until);

        write(&Authority::new("corp"));
        rules.read_authorities(dir.path());
        let refusal = rules.refuse_ended(&client).expect_err("the authority is another one");
        assert!(refusal.message.contains("connect again"), "{refusal}");
    }

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
        let (rules, client) = (Rules::new(policy), Client::listed("alice", &certificate));
        let asked = ["old", "new"].map(|key| Permission::of(Right::Rewrap, key));
        let outcomes = [(); 3].map(|()| rules.charge(&client, &asked, [1, 0]).is_ok());
        assert_eq!(outcomes, [true, true, false]);
    }
}
