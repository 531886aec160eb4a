//! The card of a client whose certificate changes: with the next certificate, signed under the current one.
//!
//! The client signs with the key of its current certificate that another certificate is its next one. A node
//! that knows the current certificate by a rule, and checks the signature, gives the next one the same
//! rights. So nobody has to compare a certificate anew: the card may come over any way. A thief of the
//! current key can do this too, but with that key the thief can act as the client anyway, until somebody
//! revokes it.
//!
//! The signature is Ed25519 over a text that no TLS handshake signs (RFC 8446, section 4.4.3, begins with 64
//! spaces), with the client's name and the digests of both certificates. A card that was used is of no use
//! later: by then the node knows the client by another certificate than the one that signed.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_transport::{CertificateDer, Identity, expiry, verify_signature};
use serde::{Deserialize, Serialize};

use crate::{ClientCard, Error, Result, check_name, private, text};

/// What a node needs to know of a client, and of its next certificate if it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSuccession {
    name: String,
    #[serde(with = "text::certificate")]
    certificate: CertificateDer<'static>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    #[serde(with = "text::certificate")]
    certificate: CertificateDer<'static>,
    /// Base64.
    signature: String,
}

impl ClientSuccession {
    /// The card of a client that keeps its certificate.
    pub fn of(card: ClientCard) -> ClientSuccession {
        ClientSuccession { name: card.name, certificate: card.certificate, next: None }
    }

    /// The card of a client that changes its certificate: `current` vouches for `next`.
    pub fn vouch(name: &str, current: &Identity, next: &CertificateDer<'_>) -> Result<ClientSuccession> {
        let (certificate, next) = (current.certificate(), next.clone().into_owned());
        let signature =
            current.sign(&statement(name, &certificate, &next)).map_err(|e| Error::misuse(e.to_string()))?;
        let next = Next { certificate: next, signature: STANDARD.encode(signature) };
        Ok(ClientSuccession { name: name.into(), certificate, next: Some(next) })
    }

    /// Reads a card. A next certificate that is not signed under the current one is an error.
    pub fn parse(text: &str) -> Result<ClientSuccession> {
        let card: ClientSuccession = text::parse(text)?;
        check_name("client", &card.name)?;
        card.check()?;
        Ok(card)
    }

    /// The card as text, to be given to nodes.
    pub fn to_text(&self) -> String {
        text::render(
            "A client of Polyclave. Public, but only worth what the way is worth on which it came.",
            self,
        )
    }

    /// Reads a card from a file.
    pub fn load(path: &Path) -> Result<ClientSuccession> {
        ClientSuccession::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The client by its current certificate.
    pub fn card(&self) -> ClientCard {
        ClientCard { name: self.name.clone(), certificate: self.certificate.clone() }
    }

    /// The next certificate, if the client changes it. The current one vouches for it.
    pub fn next(&self) -> Option<&CertificateDer<'static>> {
        self.next.as_ref().map(|next| &next.certificate)
    }

    fn check(&self) -> Result<()> {
        let Some(next) = &self.next else { return Ok(()) };
        let name = &self.name;
        if next.certificate == self.certificate {
            return Err(Error::misuse(format!("the next certificate of {name} is the current one")));
        }
        expiry(&next.certificate)
            .map_err(|e| Error::misuse(format!("the next certificate of {name}: {e}")))?;
        let statement = statement(name, &self.certificate, &next.certificate);
        let signature = STANDARD.decode(next.signature.trim()).unwrap_or_default();
        verify_signature(&self.certificate, &statement, &signature).map_err(|_| {
            Error::misuse(format!(
                "the current certificate of {name} does not vouch for the next one: the card was altered, or is not of \
                 `polyclave client rotate`; nothing was changed"
            ))
        })
    }
}

/// What a client signs with its current key.
fn statement(name: &str, current: &CertificateDer<'_>, next: &CertificateDer<'_>) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 the next certificate of a client");
    for part in [name.as_bytes(), current, next] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    [b"polyclave: the next certificate of a client\n", &hasher.finalize().as_bytes()[..]].concat()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn identity() -> Identity {
        Identity::generate_named("alice", 10).expect("made")
    }

    #[test]
    fn a_card_with_a_next_certificate_comes_back_and_every_change_of_it_is_found() {
        let (current, next, other) = (identity(), identity(), identity());
        let card = ClientSuccession::vouch("alice", &current, &next.certificate()).expect("signed");
        let text = card.to_text();
        assert_eq!(ClientSuccession::parse(&text).expect("it fits"), card);
        assert_eq!(card.next(), Some(&next.certificate()));
        let base64 = |identity: &Identity| text::certificate_to_text(&identity.certificate());
        let altered = [
            text.replace("name = \"alice\"", "name = \"bob\""),
            text.replace(&base64(&next), &base64(&other)),
            text.replace(&base64(&current), &base64(&other)),
            text.replace(&base64(&next), &base64(&current)),
            text.replace("signature = \"", "signature = \"AA"),
            text.split("signature").next().expect("some").to_owned() + "signature = \"\"\n",
        ];
        for altered in altered {
            assert!(altered != text && ClientSuccession::parse(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn a_card_without_one_is_the_card_of_a_client_as_it_always_was() {
        let card = ClientCard { name: "alice".into(), certificate: identity().certificate() };
        let both = ClientSuccession::parse(&card.to_text()).expect("it fits");
        assert_eq!((both.card(), both.next()), (card.clone(), None));
        assert_eq!(ClientCard::parse(&ClientSuccession::of(card.clone()).to_text()).expect("it fits"), card);
    }
}
