//! The fingerprint of a cluster file. It is shown wherever a command takes such a file, and compared with the
//! expected one.

use std::path::Path;

use anyhow::{Context, Result};
use polyclave_config::{Cluster, Consent};

use crate::say;

/// The option for the expected fingerprint.
#[derive(clap::Args)]
pub struct Expected {
    /// The fingerprint that the cluster file must have, as its makers told you: 64 hexadecimal digits or 16
    /// words. If it has another, nothing is changed
    #[arg(long, value_name = "FINGERPRINT")]
    expect: Option<String>,
}

impl Expected {
    /// Reads a cluster file, and refuses it if it does not have the expected fingerprint.
    pub fn load(&self, path: &Path) -> Result<Cluster> {
        let cluster = Cluster::load(path)?;
        self.check(&cluster).with_context(|| format!("{} is refused", path.display()))?;
        Ok(cluster)
    }

    /// Refuses a cluster that does not have the expected fingerprint.
    pub fn check(&self, cluster: &Cluster) -> Result<()> {
        let expected = self.expect.as_deref();
        Ok(expected.map_or(Ok(()), |expected| cluster.fingerprint().check(expected))?)
    }

    /// Whether a fingerprint is expected.
    pub fn is_given(&self) -> bool {
        self.expect.is_some()
    }

    /// A user who gives the fingerprint of a file has thereby compared the certificates in it.
    pub fn consent(&self) -> Consent {
        if self.expect.is_some() { Consent::Certificates } else { Consent::None }
    }

    /// What a user still has to do who has not.
    pub fn advise(&self) {
        if self.expect.is_none() {
            eprintln!(
                "Compare it with the operators of the nodes, over a channel that nobody can alter: somebody who replaces this file \
                 can impersonate the nodes."
            );
        }
    }
}

/// Prints both forms.
pub fn show(cluster: &Cluster) {
    say!("{}", message_of(cluster));
}

/// Both forms.
pub fn message_of(cluster: &Cluster) -> String {
    let fingerprint = cluster.fingerprint();
    let words = fingerprint.words();
    let (one, other) = words.match_indices(' ').nth(7).map_or((&words[..], ""), |(at, _)| words.split_at(at));
    format!("  fingerprint  {fingerprint}\n  in words     {one}\n              {other}")
}

/// The names of the nodes, which are shown with it.
pub fn names(cluster: &Cluster) -> String {
    cluster.cards().iter().map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ")
}
