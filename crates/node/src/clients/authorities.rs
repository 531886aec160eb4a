//! The certificates of authorities that are in force at this node, from their files.
//!
//! A file that changes is read again. If it cannot be, what it said before stays in force, and the log and
//! `node status` say so. An authority whose file could never be read vouches for nobody.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use polyclave_config::Authority;
use polyclave_transport::{Anchors, CertificateDer};
use serde::{Deserialize, Serialize};

use crate::clients::client::Verified;

/// An authority of a node's rules, for its operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityState {
    /// Its name.
    pub name: String,
    /// How many certificates of it are in force.
    pub certificates: usize,
    /// The last moment at which one of them is valid, in seconds since 1970; 0 if there is none.
    pub ends: u64,
    /// Why its file is not taken, as it is now.
    pub problem: Option<String>,
}

/// The certificates in force.
#[derive(Default)]
pub(super) struct Authorities(RwLock<InForce>);

#[derive(Default)]
struct InForce {
    /// Another one after each change.
    edition: u64,
    by_name: BTreeMap<String, Held>,
}

/// What is held of a file.
#[derive(Clone, Default)]
struct Held {
    /// The file, as the rules name it.
    file: String,
    stamp: Option<Stamp>,
    anchors: Option<Anchors>,
    problem: Option<String>,
}

/// By what a changed file is noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
    file: (u64, u64),
}

/// Certificates of an authority that came into force, or are in force no longer.
pub(crate) struct Changed {
    pub(crate) authority: String,
    /// BLAKE3 of each certificate that is in force now, in hexadecimal.
    pub(crate) certificates: Vec<String>,
}

impl Authorities {
    /// The edition of what is in force.
    pub(super) fn edition(&self) -> u64 {
        self.0.read().edition
    }

    /// Has every client of an authority judged anew: the rules have changed.
    pub(super) fn rules_have_changed(&self) {
        self.0.write().edition += 1;
    }

    /// Verifies the chain of a client of an authority.
    pub(super) fn verify(
        &self,
        authority: &Authority,
        chain: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> Result<Verified, String> {
        let in_force = self.0.read();
        // The rules may name another file that was not read yet.
        let held = in_force.by_name.get(&authority.name).filter(|held| held.file == authority.file);
        let anchors = held.and_then(|held| held.anchors.as_ref());
        let anchors =
            anchors.ok_or_else(|| "no certificate of the authority could be read yet".to_owned())?;
        let until = anchors.verify(chain, authority.longest(), now)?;
        Ok(Verified { until, edition: in_force.edition })
    }

    /// Reads the files that have changed, of the authorities that the rules name.
    /// `are_approved`: whether changes of the rules need approval. It covers the name of a file and not what is
    /// in it. So then a file in the node's directory is not read: who may write there and nothing else would
    /// decide who the clients are.
    pub(super) fn look(&self, named: &[Authority], dir: &Path, are_approved: bool) -> Vec<Changed> {
        // Strangers' handshakes go on meanwhile with what is in force.
        let mut before = self.0.read().by_name.clone();
        let mut changes = Vec::new();
        let mut now = BTreeMap::new();
        for authority in named {
            let held = before.remove(&authority.name).filter(|held| held.file == authority.file);
            let mut held = held.unwrap_or_else(|| Held { file: authority.file.clone(), ..Held::default() });
            let was = held.anchors.clone();
            held.read_again(authority, dir, are_approved);
            if held.anchors != was {
                changes.push(held.changed(&authority.name));
            }
            now.insert(authority.name.clone(), held);
        }
        changes.extend(
            before
                .iter()
                .filter(|(_, gone)| gone.anchors.is_some())
                .map(|(name, _)| Changed { authority: name.clone(), certificates: Vec::new() }),
        );
        let mut in_force = self.0.write();
        in_force.by_name = now;
        in_force.edition += u64::from(!changes.is_empty());
        changes
    }

    /// The state of each.
    pub(super) fn states(&self) -> Vec<AuthorityState> {
        let in_force = self.0.read();
        let of = |(name, held): (&String, &Held)| AuthorityState {
            name: name.clone(),
            certificates: held.anchors.as_ref().map_or(0, |anchors| anchors.certificates().count()),
            ends: held.last().map_or(0, |(_, to)| seconds(to)),
            problem: held.problem.clone(),
        };
        in_force.by_name.iter().map(of).collect()
    }

    /// From when until when the certificate of each is valid that ends last.
    pub(super) fn validities(&self) -> Vec<(String, (SystemTime, SystemTime))> {
        let in_force = self.0.read();
        in_force.by_name.iter().filter_map(|(name, held)| Some((name.clone(), held.last()?))).collect()
    }
}

impl Held {
    fn read_again(&mut self, authority: &Authority, dir: &Path, are_approved: bool) {
        let path = authority.path(dir);
        let is_open = are_approved && lies_in(&path, dir);
        let stamp = if is_open { None } else { stamp(&path) };
        if stamp.is_some() && stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        let problem = match authority.load(dir) {
            _ if is_open => Some(format!(
                "{} is in the node's directory, and changes of the rules need approval: keep it where only those \
                 may write who may change the rules",
                path.display()
            )),
            Ok(anchors) => {
                self.anchors = Some(anchors);
                None
            }
            Err(e) => Some(e.to_string()),
        };
        if let Some(why) = problem.as_ref().filter(|why| self.problem.as_ref() != Some(why)) {
            let keeps = if self.anchors.is_some() {
                "its certificates of before stay in force"
            } else {
                "it vouches for nobody"
            };
            tracing::error!(authority = %authority.name, why, "the file of an authority is not taken; {keeps}");
        }
        self.problem = problem;
    }

    fn last(&self) -> Option<(SystemTime, SystemTime)> {
        self.anchors.as_ref().and_then(Anchors::last)
    }

    fn changed(&self, name: &str) -> Changed {
        let certificates = self.anchors.iter().flat_map(Anchors::certificates);
        let hashes = certificates.map(|certificate| blake3::hash(certificate).to_hex().to_string());
        Changed { authority: name.into(), certificates: hashes.collect() }
    }
}

/// Whether a file is in a directory, also over links. One that is not there lies nowhere.
fn lies_in(path: &Path, dir: &Path) -> bool {
    let is_named_so = path.starts_with(dir);
    match (path.canonicalize(), dir.canonicalize()) {
        (Ok(path), Ok(dir)) => is_named_so || path.starts_with(dir),
        _ => is_named_so,
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = path.metadata().ok()?;
    Some(Stamp { modified: found.modified().ok()?, bytes: found.len(), file: (found.dev(), found.ino()) })
}

fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_rules_need_approval_no_file_of_an_authority_is_read_from_the_nodes_directory() {
        let [dir, other] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let outside = other.path().join("corp.pem");
        for path in [&outside, &dir.path().join("corp.pem")] {
            std::fs::write(path, "no certificate").expect("written");
        }
        std::os::unix::fs::symlink(dir.path(), other.path().join("link")).expect("linked");
        let over_a_link = other.path().join("link/corp.pem");
        let problem = |file: &Path, are_approved: bool| {
            let authorities = Authorities::default();
            let named = [Authority::new("corp", file.to_str().expect("text"), None)];
            authorities.look(&named, dir.path(), are_approved);
            authorities.states().remove(0).problem.expect("it is no PEM")
        };
        for inside in [Path::new("corp.pem"), &dir.path().join("corp.pem"), &over_a_link] {
            assert!(problem(inside, true).contains("need approval"), "{}", inside.display());
            assert!(!problem(inside, false).contains("need approval"), "{}", inside.display());
        }
        assert!(!problem(&outside, true).contains("need approval"));
    }
}
