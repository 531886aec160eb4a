//! The fingerprint of a cluster file: shown wherever one is taken, and compared with what a person expects.

use std::path::Path;

use anyhow::{Context, Result};
use polyclave_config::{Cluster, Consent};

use crate::say;

/// What a person has compared.
#[derive(clap::Args)]
pub struct Expected {
    /// The fingerprint that the cluster file must have, as its makers told you: 64 hexadecimal digits or 16 words. Nothing is
    /// changed if it has another
    #[arg(long, value_name = "FINGERPRINT")]
    expect: Option<String>,
}

impl Expected {
    /// Reads a cluster file, and refuses it if it is not the one that is expected.
    pub fn load(&self, path: &Path) -> Result<Cluster> {
        let cluster = Cluster::load(path)?;
        self.check(&cluster).with_context(|| format!("{} is refused", path.display()))?;
        Ok(cluster)
    }

    /// Refuses a cluster that is not the one that is expected.
    pub fn check(&self, cluster: &Cluster) -> Result<()> {
        let expected = self.expect.as_deref();
        Ok(expected.map_or(Ok(()), |expected| cluster.fingerprint().check(expected))?)
    }

    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.expect.is_some()
    }

    /// Who names the fingerprint of a file has compared the certificates in it.
    pub fn consent(&self) -> Consent {
        if self.expect.is_some() { Consent::Certificates } else { Consent::None }
    }

    /// What is left to do for whoever has not.
    pub fn advise(&self) {
        if self.expect.is_none() {
            eprintln!(
                "Compare it with the operators of the nodes, over a way on which nobody can change it: who could replace this file \
                 could take the nodes' places."
            );
        }
    }
}

/// Shows both forms.
pub fn show(cluster: &Cluster) {
    say!("{}", told(cluster));
}

/// Both forms.
pub fn told(cluster: &Cluster) -> String {
    let fingerprint = cluster.fingerprint();
    let words = fingerprint.words();
    let (one, other) = words.match_indices(' ').nth(7).map_or((&words[..], ""), |(at, _)| words.split_at(at));
    format!("  fingerprint  {fingerprint}\n  in words     {one}\n              {other}")
}
