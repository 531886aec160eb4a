//! Who asks, as a node knows it.

use polyclave_api::Right;
use polyclave_transport::CertificateDer;

use super::ClientPolicy;

/// A client that has shown its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker<'a> {
    /// By its certificate, if the rules list it.
    Listed(&'a CertificateDer<'a>),
    /// By an identity for which an authority has vouched.
    Signed {
        /// The name of the authority.
        authority: &'a str,
        /// The identity.
        identity: &'a str,
    },
}

/// What an entry for clients allows, under no conditions: a `[[client]]`, or an `[[authority.client]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'p> {
    /// Its name.
    pub name: &'p str,
    /// What it allows.
    pub rights: &'p [Right],
    /// With which keys: names or patterns.
    pub keys: &'p [String],
}

impl<'a> From<&'a CertificateDer<'a>> for Asker<'a> {
    fn from(certificate: &'a CertificateDer<'a>) -> Asker<'a> {
        Asker::Listed(certificate)
    }
}

impl ClientPolicy {
    /// Whether the rules name this very client: a listed one, or one of an authority that has an entry with
    /// exactly its identity. Whom else a pattern fits, its authority decides alone.
    pub fn is_named(&self, who: Asker<'_>) -> bool {
        match who {
            Asker::Listed(certificate) => self.entry_of(certificate).is_some(),
            Asker::Signed { authority, identity } => {
                let known = self.authorities.iter().filter(|known| known.name == authority);
                known.flat_map(|known| &known.clients).any(|client| client.identity == identity)
            }
        }
    }

    /// What is written about a client: one entry at most if it is listed.
    pub(super) fn entries_of(&self, who: Asker<'_>) -> Vec<Entry<'_>> {
        match who {
            Asker::Listed(certificate) => {
                let listed = self.entry_of(certificate).into_iter();
                listed.map(|c| Entry { name: &c.name, rights: &c.rights, keys: &c.keys }).collect()
            }
            Asker::Signed { authority, identity } => {
                let clients = self.authorities.iter().filter(|known| known.name == authority);
                let fitting = clients.flat_map(|known| &known.clients).filter(|c| c.fits(identity));
                fitting.map(|c| Entry { name: &c.name, rights: &c.rights, keys: &c.keys }).collect()
            }
        }
    }
}
