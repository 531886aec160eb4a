//! A client changes its certificate and keeps what it may do: the current certificate vouches for the next
//! one. Until the change is finished, the client is known by both.

use polyclave_transport::CertificateDer;

use super::{ClientPolicy, ClientRule};
use crate::{ClientSuccession, Error, Result};

impl ClientPolicy {
    /// Takes the card of a client that changes its certificate, or has changed it. Everything else about the
    /// client stays.
    ///
    /// A card with the current certificate brings the next one, or takes it back. A card with the next
    /// certificate, which vouched for was brought before, makes it the current one; the one before is not
    /// known any more.
    pub fn succeed(&mut self, card: &ClientSuccession) -> Result<()> {
        let client = card.card();
        let Some(known) = self.client_named(&client.name) else {
            return Err(Error::misuse(format!(
                "there is no client {} here yet; say with --rights and --keys what it may do",
                client.name
            )));
        };
        let mut changed = known.clone();
        if known.next.as_ref() == Some(&client.certificate) {
            changed.certificate = client.certificate;
        } else {
            self.refuse_other_certificate(&client)?;
        }
        changed.next = card.next().cloned();
        self.set_client(changed)
    }
}

impl ClientRule {
    /// Whether the client is known by this certificate.
    pub fn is_known_by(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificates().any(|known| known == certificate)
    }

    /// The certificates by which the client is known: one, or two while they change.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        [&self.certificate].into_iter().chain(&self.next)
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Right;

    use super::*;
    use crate::ClientCard;
    use crate::succession::tests::identity;

    #[test]
    fn a_client_is_known_by_one_certificate_then_by_two_then_by_the_next_one_with_the_same_rights() {
        let [first, second, third, foreign] = [(); 4].map(|()| identity());
        let card = |of: &polyclave_transport::Identity| ClientCard {
            name: "alice".into(),
            certificate: of.certificate(),
        };
        let vouch = |current: &polyclave_transport::Identity, next: &polyclave_transport::Identity| {
            ClientSuccession::vouch("alice", current, &next.certificate()).expect("signed")
        };
        let mut policy = ClientPolicy::default();
        let message = policy.succeed(&vouch(&first, &second)).expect_err("nobody knows it").to_string();
        assert!(message.contains("--rights"), "{message}");
        policy.allow(&card(&first), &[Right::Encrypt], &["pay-*".into()]).expect("it fits");
        let known = |policy: &ClientPolicy| {
            [&first, &second, &third, &foreign].map(|of| policy.client_of(&of.certificate()) == Some("alice"))
        };

        // Whoever is not the client cannot name a next certificate for it.
        let before = policy.clone();
        assert!(policy.succeed(&vouch(&foreign, &second)).is_err());
        assert!(policy.succeed(&ClientSuccession::of(card(&second))).is_err());
        assert_eq!(policy, before);

        policy.succeed(&vouch(&first, &second)).expect("vouched for");
        assert_eq!(known(&policy), [true, true, false, false]);
        assert_eq!(ClientPolicy::parse(&policy.to_text()).expect("it fits"), policy);
        // New rights while it changes; and a change of mind.
        policy.allow(&card(&first), &[Right::Encrypt, Right::Mac], &["pay-*".into()]).expect("it fits");
        assert_eq!(known(&policy), [true, true, false, false]);
        policy.succeed(&vouch(&first, &third)).expect("vouched for");
        assert_eq!(known(&policy), [true, false, true, false]);

        policy.succeed(&ClientSuccession::of(card(&third))).expect("it was brought before");
        assert_eq!(known(&policy), [false, false, true, false]);
        let rule = policy.client_named("alice").expect("known");
        assert_eq!(
            (&rule.rights[..], &rule.keys[..]),
            (&[Right::Encrypt, Right::Mac][..], &["pay-*".to_owned()][..])
        );
        // What vouched before does so no longer.
        assert!(policy.succeed(&vouch(&first, &second)).is_err());
        assert!(policy.succeed(&ClientSuccession::of(card(&first))).is_err());
    }

    #[test]
    fn a_next_certificate_that_is_another_client_s_is_refused() {
        let [alice, bob] = [(); 2].map(|()| identity());
        let card = |name: &str, of: &polyclave_transport::Identity| ClientCard {
            name: name.into(),
            certificate: of.certificate(),
        };
        let mut policy = ClientPolicy::default();
        policy.allow(&card("alice", &alice), &[], &[]).expect("it fits");
        policy.allow(&card("bob", &bob), &[], &[]).expect("it fits");
        let before = policy.clone();
        let taken = ClientSuccession::vouch("alice", &alice, &bob.certificate()).expect("signed");
        assert!(policy.succeed(&taken).is_err());
        assert_eq!(policy, before);
    }
}
