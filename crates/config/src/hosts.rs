//! Which parties run a session of the laboratory between machines: the same file at each of them.
//!
//! A party *is* the certificate that the file lists for it, so the file has to reach every machine unaltered.
//! It is not secret. Beside it each party has the private key of its certificate
//! ([`StoredIdentity`](crate::StoredIdentity)).

use std::path::Path;

use polyclave_protocol::{Party, PartySet};
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};

use crate::card::check_address;
use crate::{Error, Result, private, text};

/// Counted up with every change of the file's form.
const VERSION: i64 = 1;

/// All parties of a session, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    version: i64,
    #[serde(rename = "party")]
    hosts: Vec<Host>,
}

/// Where a party listens, and by what it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// `host:port`.
    pub address: String,
    /// Base64 of DER in the file.
    #[serde(with = "text::certificate")]
    pub certificate: CertificateDer<'static>,
}

/// Read before the rest, which may have another form in another version.
#[derive(Deserialize)]
struct Versioned {
    version: Option<i64>,
}

impl Hosts {
    /// The hosts of these parties.
    pub fn new(hosts: Vec<Host>) -> Result<Hosts> {
        let hosts = Hosts { version: VERSION, hosts };
        hosts.check()?;
        Ok(hosts)
    }

    /// Reads one.
    pub fn parse(text: &str) -> Result<Hosts> {
        match text::parse::<Versioned>(text)?.version {
            Some(VERSION) => {}
            Some(other) => {
                return Err(Error::misuse(format!(
                    "this is a hosts file of version {other}, and this program reads version {VERSION}; make a new one with \
                     `hosts new`, or use the program that made it"
                )));
            }
            None => return Err(Error::misuse("this is no hosts file: it names no version")),
        }
        let hosts: Hosts = text::parse(text)?;
        hosts.check()?;
        Ok(hosts)
    }

    /// As text, to be given to all parties.
    pub fn to_text(&self) -> String {
        text::render(
            "Parties of polyclave-lab, in the order of their numbers: the same file at each of them.",
            self,
        )
    }

    /// Reads one from a file.
    pub fn load(path: &Path) -> Result<Hosts> {
        Hosts::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The parties, in the order of their numbers.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The party that a certificate belongs to.
    pub fn party_of(&self, certificate: &CertificateDer<'_>) -> Option<Party> {
        self.hosts.iter().zip(0..).find(|(host, _)| host.certificate == *certificate).map(|(_, n)| Party(n))
    }

    fn check(&self) -> Result<()> {
        let n = self.hosts.len();
        if !(2..=PartySet::MAX).contains(&n) {
            return Err(Error::misuse(format!("a session of {n} parties; it takes 2 to {}", PartySet::MAX)));
        }
        for (i, host) in self.hosts.iter().enumerate() {
            check_address(&host.address)?;
            for (j, other) in self.hosts[..i].iter().enumerate() {
                let both = format!("parties {} and {}", j + 1, i + 1);
                if host.address == other.address {
                    let address = &host.address;
                    return Err(Error::misuse(format!(
                        "{both} have one address, {address}; give each its own"
                    )));
                }
                if host.certificate == other.certificate {
                    return Err(Error::misuse(format!(
                        "{both} have one certificate; make a new file with `hosts new`"
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::tests::certificate;

    fn host(n: u8) -> Host {
        Host { address: format!("h{n}.example:7000"), certificate: certificate(n) }
    }

    fn hosts(numbers: &[u8]) -> Result<Hosts> {
        Hosts::new(numbers.iter().map(|n| host(*n)).collect())
    }

    #[test]
    fn hosts_come_back_and_are_known_by_their_certificates() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, hosts) = (dir.path().join("hosts.toml"), hosts(&[1, 2, 3]).expect("they fit"));
        hosts.save(&file).expect("saved");
        assert_eq!(Hosts::load(&file).expect("loaded"), hosts);
        assert_eq!(hosts.party_of(&certificate(2)), Some(Party(1)));
        assert_eq!(hosts.party_of(&certificate(9)), None);
    }

    #[test]
    fn parties_that_could_be_mistaken_for_another_are_refused() {
        assert!(hosts(&[1]).is_err() && hosts(&[1, 2, 1]).is_err());
        assert!(Hosts::new((0..17).map(host).collect()).is_err());
        let with = |change: &dyn Fn(&mut Host)| {
            let mut second = host(2);
            change(&mut second);
            Hosts::new(vec![host(1), second])
        };
        assert!(with(&|_| {}).is_ok());
        assert!(with(&|h| h.address = "h1.example:7000".into()).is_err());
        assert!(with(&|h| h.address = "h2.example".into()).is_err());
        assert!(with(&|h| h.certificate = certificate(1)).is_err());
    }

    #[test]
    fn a_file_of_another_version_is_refused_whatever_else_is_in_it() {
        let text = hosts(&[1, 2]).expect("they fit").to_text();
        let newer = text.replace("version = 1", "version = 2\ncolour = \"red\"");
        let error = Hosts::parse(&newer).expect_err("newer").to_string();
        assert!(error.contains("version 2") && error.contains("version 1"), "{error}");
        let none = Hosts::parse(&text.replace("version = 1", "")).expect_err("none").to_string();
        assert!(none.contains("no hosts file"), "{none}");
        assert!(Hosts::parse(&text.replace("version = 1", "version = 1\ncolour = 2")).is_err());
    }
}
