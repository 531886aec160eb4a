//! Cards: what other people need to know about a node or a client. A card is public. It must reach them over
//! a channel on which nobody can replace it.

use std::path::Path;

use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Result, check_name, private, text};

/// What peers and clients need to know of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its name in the cluster.
    pub name: String,
    /// `host:port` for other nodes.
    pub address: String,
    /// `host:port` for clients.
    pub client_address: String,
    /// The certificates by which it is known: one, or two while they change. Base64 of DER in the file.
    #[serde(with = "text::certificates")]
    pub certificates: Vec<CertificateDer<'static>>,
    /// Where its further workers are, from number 1 on: machines that serve under its name, with one store.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Place>,
}

/// Where a worker of a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// `host:port` for other nodes.
    pub address: String,
    /// `host:port` for clients.
    pub client_address: String,
}

impl Place {
    pub(crate) fn check(&self) -> Result<()> {
        check_address(&self.address)?;
        check_address(&self.client_address)
    }
}

/// The digest by which other programs show a certificate: SHA-256, as in `openssl x509 -fingerprint -sha256`.
pub fn certificate_fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digits: Vec<String> = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect();
    format!("SHA-256 {}", digits.join(":"))
}

/// What a node needs to know of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCard {
    /// Its name, for rules and for the audit log.
    pub name: String,
    /// The certificate by which it is known.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
}

/// The most workers of one node, the first included.
pub const MAX_WORKERS: usize = 64;

/// The most certificates of one node.
const MAX_CERTIFICATES: usize = 4;

impl Card {
    /// Reads a card.
    pub fn parse(text: &str) -> Result<Card> {
        let card: Card = text::parse(text)?;
        card.check()?;
        Ok(card)
    }

    /// The card as text, to be given to others.
    pub fn to_text(&self) -> String {
        text::render(
            "A node of Polyclave. Public, but only worth what the way is worth on which it came.",
            self,
        )
    }

    /// Reads a card from a file.
    pub fn load(path: &Path) -> Result<Card> {
        Card::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The digests of its certificates.
    pub fn certificate_fingerprints(&self) -> String {
        self.certificates.iter().map(certificate_fingerprint).collect::<Vec<_>>().join(", ")
    }

    /// Where its workers are, from number 0 on.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let first = Place { address: self.address.clone(), client_address: self.client_address.clone() };
        [first].into_iter().chain(self.workers.clone())
    }

    /// Whether one certificate is in both.
    pub(crate) fn overlaps(&self, other: &Card) -> bool {
        self.certificates.iter().any(|certificate| other.certificates.contains(certificate))
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("node", &self.name)?;
        self.places().try_for_each(|place| place.check())?;
        if self.workers.len() >= MAX_WORKERS {
            return Err(Error::misuse(format!(
                "{} has {} workers; at most {MAX_WORKERS} are allowed",
                self.name,
                self.workers.len() + 1
            )));
        }
        let places = self.places().flat_map(|place| [place.address, place.client_address]);
        let mut addresses: Vec<String> = places.collect();
        addresses.sort_unstable();
        if let Some(pair) =
            addresses[..].windows(2).find(|pair| pair[0] == pair[1] && !self.workers.is_empty())
        {
            return Err(Error::misuse(format!(
                "{} has {} twice; give each of its workers its own",
                self.name, pair[0]
            )));
        }
        let n = self.certificates.len();
        if !(1..=MAX_CERTIFICATES).contains(&n) {
            let name = &self.name;
            return Err(Error::misuse(format!(
                "{name} has {n} certificates; 1 to {MAX_CERTIFICATES} are allowed"
            )));
        }
        if (1..n).any(|i| self.certificates[..i].contains(&self.certificates[i])) {
            return Err(Error::misuse(format!("{} has one certificate twice", self.name)));
        }
        Ok(())
    }
}

impl ClientCard {
    /// Reads a card.
    pub fn parse(text: &str) -> Result<ClientCard> {
        let card: ClientCard = text::parse(text)?;
        check_name("client", &card.name)?;
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
    pub fn load(path: &Path) -> Result<ClientCard> {
        ClientCard::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }
}

/// `host:port`, the host not empty.
pub(crate) fn check_address(address: &str) -> Result<()> {
    let fits = address.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let host_fits = !host.is_empty() && (bracketed || !host.contains(':'));
        host_fits && !address.contains(char::is_whitespace) && port.parse::<u16>().is_ok()
    });
    let wrong = || Error::misuse(format!("{address:?} is not an address; write host:port or [ipv6]:port"));
    fits.then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A certificate in form only: these files never look inside.
    pub(crate) fn certificate(seed: u8) -> CertificateDer<'static> {
        CertificateDer::from(vec![0x30, 0x82, 0, 2, seed, seed])
    }

    pub(crate) fn card(name: &str, seed: u8) -> Card {
        Card {
            name: name.into(),
            address: format!("{name}.example:{}", 7000 + u16::from(seed)),
            client_address: format!("{name}.example:{}", 8000 + u16::from(seed)),
            certificates: vec![certificate(seed)],
            workers: Vec::new(),
        }
    }

    #[test]
    fn a_card_comes_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a.card");
        let mut card = card("a", 1);
        card.certificates.push(certificate(2));
        card.save(&file).expect("saved");
        assert_eq!(Card::load(&file).expect("loaded"), card);
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a.card");
        let text = card("a", 1).to_text();
        let broken = [
            text.clone() + "colour = \"red\"\n",
            text.replace("a.example:7001", "a.example"),
            text.replace("name = \"a\"", "name = \"../a\""),
            text.replace("\"MII", "\"!II"),
            text.replace("certificates", "certificate"),
        ];
        for broken in broken {
            std::fs::write(&file, &broken).expect("written");
            let error = Card::load(&file).expect_err(&broken).to_string();
            assert!(error.contains("a.card"), "{error}");
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for good in ["localhost:1", "10.0.0.1:65535", "[::1]:80"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in ["", "localhost", ":80", "::1:80", "a:65536", "a b:1", "a:"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
