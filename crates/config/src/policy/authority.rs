//! Authorities whose clients are known by an identity in their certificates, and not by the certificates
//! themselves.
//!
//! An identity belongs to one authority at most: no other authority of the rules can vouch for it. So the
//! audit log, which has the identity, says who vouched for it, too.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use polyclave_api::Right;
use polyclave_transport::{Anchors, DNS, SPIFFE, check_identity};
use serde::{Deserialize, Serialize};

use super::ClientPolicy;
use crate::{Error, Result, private};

/// The most hours that a client's certificate is valid, if nothing else is said.
const MAX_HOURS: u32 = 24;
/// The most that may be said: ten years.
const MOST_HOURS: u32 = 10 * 366 * 24;

/// An authority that signs certificates of clients (`[[authority]]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    /// Its name, for messages. It need not be the same at other nodes.
    pub name: String,
    /// The PEM file of its certificates, one or several; a path from the node's directory on. A running node
    /// reads it again when it changes.
    pub file: String,
    /// The most hours that a certificate of a client may be valid in all; 24 if absent.
    #[serde(default = "max_hours")]
    pub max_hours: u32,
    /// Its clients (`[[authority.client]]`). Nobody else whose certificate it signed may connect.
    #[serde(rename = "client", default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<AuthorityClient>,
}

/// Clients of an authority, and what they may do at any time (`[[authority.client]]`). A client to which
/// several of these fit may do what any of them allows. Each counts for itself in limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityClient {
    /// A name for rules and groups.
    pub name: String,
    /// Whose certificates: a SPIFFE ID (`spiffe://corp.example/web`), all below a path
    /// (`spiffe://corp.example/ns/prod/*`), a DNS name (`dns:web.corp.example`), or all that have one label in
    /// the place of a star (`dns:*.corp.example`).
    pub identity: String,
    /// What they may do.
    #[serde(default)]
    pub rights: Vec<Right>,
    /// The keys that they may use: names, or patterns of names with `*` and `?`.
    #[serde(default)]
    pub keys: Vec<String>,
}

fn max_hours() -> u32 {
    MAX_HOURS
}

impl Authority {
    /// An authority without clients.
    pub fn new(name: &str, file: &str, max_hours: Option<u32>) -> Authority {
        let max_hours = max_hours.unwrap_or(MAX_HOURS);
        Authority { name: name.into(), file: file.into(), max_hours, clients: Vec::new() }
    }

    /// Where its certificates are, for the node of a directory.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.file)
    }

    /// Its certificates, for the node of a directory.
    pub fn load(&self, dir: &Path) -> Result<Anchors> {
        let path = self.path(dir);
        let text = private::read_public(&path)?;
        Anchors::from_pem(text.as_bytes()).map_err(|e| Error::malformed(&path, e.to_string()))
    }

    /// How long a certificate of a client may be valid in all.
    pub fn longest(&self) -> Duration {
        Duration::from_secs(3600 * u64::from(self.max_hours))
    }

    /// Refuses what no certificate fits.
    pub(super) fn check(&self) -> Result<()> {
        if self.file.is_empty() {
            return Err(Error::misuse("it has no file; name the PEM file of its certificates"));
        }
        if self.max_hours == 0 || self.max_hours > MOST_HOURS {
            return Err(Error::misuse(format!("max_hours is {}; take 1 to {MOST_HOURS}", self.max_hours)));
        }
        let mut identities: Vec<&str> = self.clients.iter().map(|client| client.identity.as_str()).collect();
        identities.sort_unstable();
        match identities.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(Error::misuse(format!("two of its clients have the identity {}", two[0]))),
            None => Ok(()),
        }
    }
}

impl AuthorityClient {
    /// Whether an identity is one of these.
    pub fn fits(&self, identity: &str) -> bool {
        match Pattern::of(&self.identity) {
            Pattern::Exact(exact) => exact == identity,
            Pattern::Below(path) => identity.starts_with(path),
            Pattern::OneLabel(suffix) => {
                let host = identity.strip_prefix(DNS).and_then(|host| host.strip_suffix(suffix));
                host.is_some_and(|label| !label.is_empty() && !label.contains('.'))
            }
        }
    }

    /// Refuses what is neither an identity nor a pattern of some.
    pub(super) fn check(&self) -> Result<()> {
        let example = match Pattern::of(&self.identity) {
            Pattern::Exact(exact) => exact.to_owned(),
            Pattern::Below(path) => format!("{path}x"),
            Pattern::OneLabel(suffix) => format!("{DNS}x{suffix}"),
        };
        check_identity(&example).map_err(|why| {
            Error::misuse(format!(
                "the identity {:?} is of no client: {why}. Take such as spiffe://corp.example/web, spiffe://corp.example/ns/prod/*, \
                 dns:web.corp.example, dns:*.corp.example",
                self.identity.chars().take(100).collect::<String>()
            ))
        })
    }

    /// Whether some identity fits both.
    fn overlaps(&self, other: &AuthorityClient) -> bool {
        use Pattern::{Below, Exact, OneLabel};
        match (Pattern::of(&self.identity), Pattern::of(&other.identity)) {
            (Exact(exact), _) => other.fits(exact),
            (_, Exact(exact)) => self.fits(exact),
            (Below(a), Below(b)) => a.starts_with(b) || b.starts_with(a),
            (OneLabel(a), OneLabel(b)) => a == b,
            (Below(_), OneLabel(_)) | (OneLabel(_), Below(_)) => false,
        }
    }
}

/// What the identity of an entry means.
enum Pattern<'i> {
    Exact(&'i str),
    /// Everything that begins with this, which ends with a slash.
    Below(&'i str),
    /// A DNS name with one label before this, which begins with a dot.
    OneLabel(&'i str),
}

impl<'i> Pattern<'i> {
    fn of(identity: &'i str) -> Pattern<'i> {
        if let Some(path) = identity.strip_suffix('*')
            && path.starts_with(SPIFFE)
            && path.ends_with('/')
        {
            return Pattern::Below(path);
        }
        let starred = identity.strip_prefix(DNS).and_then(|host| host.strip_prefix('*'));
        match starred.filter(|suffix| suffix.starts_with('.')) {
            Some(suffix) => Pattern::OneLabel(suffix),
            None => Pattern::Exact(identity),
        }
    }
}

impl ClientPolicy {
    /// All authorities.
    pub fn authorities(&self) -> &[Authority] {
        &self.authorities
    }

    /// The authority that can vouch for an identity. There is at most one.
    pub fn authority_of(&self, identity: &str) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.clients.iter().any(|client| client.fits(identity)))
    }

    /// The clients of authorities under a name.
    pub fn authority_client_named(&self, name: &str) -> Option<&AuthorityClient> {
        self.authorities.iter().flat_map(|authority| &authority.clients).find(|client| client.name == name)
    }

    /// Adds an authority, or gives one of this name another file and limit. Its clients stay.
    pub fn set_authority(&mut self, mut authority: Authority) -> Result<()> {
        self.change(|policy| match policy.authorities.iter_mut().find(|old| old.name == authority.name) {
            Some(old) => {
                authority.clients = std::mem::take(&mut old.clients);
                *old = authority;
            }
            None => policy.authorities.push(authority),
        })
    }

    /// Adds clients of an authority, or replaces those of this name.
    pub fn set_authority_client(&mut self, authority: &str, client: AuthorityClient) -> Result<()> {
        if !self.authorities.iter().any(|known| known.name == authority) {
            return Err(Error::misuse(format!("there is no authority {authority:?} here; add it first")));
        }
        self.change(|policy| {
            let known = policy.authorities.iter_mut().find(|known| known.name == authority);
            let Some(known) = known else { return };
            match known.clients.iter_mut().find(|old| old.name == client.name) {
                Some(old) => *old = client,
                None => known.clients.push(client),
            }
        })
    }

    /// Removes an authority with its clients, who may do nothing more.
    pub fn remove_authority(&mut self, name: &str) -> Result<()> {
        let Some(known) = self.authorities.iter().find(|known| known.name == name) else {
            return Err(Error::misuse(format!("there is no authority {name:?} here; nothing was changed")));
        };
        let clients: Vec<String> = known.clients.iter().map(|client| client.name.clone()).collect();
        self.change(|policy| {
            policy.authorities.retain(|known| known.name != name);
            clients.iter().for_each(|client| policy.forget(client));
        })
    }

    /// Refuses two authorities that could vouch for the same identity.
    pub(super) fn check_apart(&self, number: usize) -> Result<()> {
        let authority = &self.authorities[number];
        for other in &self.authorities[..number] {
            for client in &authority.clients {
                if let Some(same) = other.clients.iter().find(|same| same.overlaps(client)) {
                    return Err(Error::misuse(format!(
                        "its identity {} and {} of the authority {} overlap; who a client is must depend on one authority",
                        client.identity, same.identity, other.name
                    )));
                }
            }
        }
        Ok(())
    }
}
