//! One party's place among the parties of a hosts file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use polyclave_config::{Hosts, StoredIdentity, certificate_fingerprint};
use polyclave_protocol::{Party, catalog};
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress, TlsNet, WireMeter};

use super::key_file;
use crate::options::ProtocolOptions;

/// The default time to wait for the other parties.
const WAIT_S: u64 = 120;

/// Options that select a party of a hosts file, if there is one.
#[derive(clap::Args)]
pub struct PlaceArguments {
    /// The file that `hosts new` wrote, the same at every party
    #[arg(long, value_name = "FILE", requires = "me")]
    hosts: Option<PathBuf>,

    /// The number of this party, from 1, in the order of the hosts file
    #[arg(long, value_name = "K", requires = "hosts")]
    me: Option<usize>,

    /// The secret key of this party [default: party-K.key beside the hosts file]
    #[arg(long, value_name = "FILE", requires = "hosts")]
    identity: Option<PathBuf>,

    /// Where to listen, if that differs from the address in the hosts file, such as 0.0.0.0:7000
    #[arg(long, value_name = "ADDRESS", requires = "hosts")]
    listen: Option<String>,

    /// Seconds to wait for the other parties at the beginning [default: 120]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400), requires = "hosts")]
    wait: Option<u64>,
}

/// One party, ready to connect with the others.
pub struct Place {
    hosts: Hosts,
    me: Party,
    identity: Identity,
    listen: String,
    wait: Duration,
}

impl PlaceArguments {
    /// Whether this is a party of a hosts file.
    pub fn is_given(&self) -> bool {
        self.hosts.is_some()
    }

    /// Reads the files and checks that they belong together.
    pub fn open(&self) -> Result<Place> {
        let (path, number) = self.hosts.as_ref().zip(self.me).context("--hosts and --me are needed")?;
        let hosts = Hosts::load(path)?;
        let (count, shown) = (hosts.hosts().len(), path.display());
        ensure!(
            (1..=count).contains(&number),
            "--me {number}: {shown} lists {count} parties, so it takes 1 to {count}"
        );
        let me = Party((number - 1) as u8);
        let beside = || path.parent().unwrap_or(Path::new("")).join(key_file(number));
        let file = self.identity.clone().unwrap_or_else(beside);
        let stored = StoredIdentity::load(&file).with_context(|| {
            format!("{me} needs its secret key, which `hosts new` wrote; copy it to this machine or give --identity")
        })?;
        let file = file.display();
        match hosts.party_of(&stored.certificate) {
            Some(owner) if owner == me => {}
            Some(owner) => bail!(
                "{file} is the key of {owner}, and this is to be {me}; give --me {} or the key of {me}",
                owner.0 + 1
            ),
            None => bail!(
                "{file} is the key of no party in {shown}: the two come from different runs of `hosts new`; copy both again \
                 (the key's certificate has {})",
                certificate_fingerprint(&stored.certificate)
            ),
        }
        let identity = Identity::from_der(&stored.certificate, &stored.key)?;
        let listen = self.listen.clone().unwrap_or_else(|| hosts.hosts()[me.index()].address.clone());
        Ok(Place { hosts, me, identity, listen, wait: Duration::from_secs(self.wait.unwrap_or(WAIT_S)) })
    }
}

impl Place {
    /// This party.
    pub fn me(&self) -> Party {
        self.me
    }

    /// How many parties there are.
    pub fn parties(&self) -> usize {
        self.hosts.hosts().len()
    }

    /// The address at which others reach this party.
    pub fn address(&self) -> &str {
        &self.hosts.hosts()[self.me.index()].address
    }

    /// The protocol among the parties of the file.
    pub fn protocol(&self, chosen: &ProtocolOptions) -> Result<ProtocolOptions> {
        ensure!(
            !chosen.is_cleartext(),
            "cleartext has no parties: it runs in one process, under `polyclave-lab eval`; choose another protocol"
        );
        let listed = self.parties();
        if let Some(asked) = chosen.parties {
            ensure!(asked == listed, "--parties {asked}: the hosts file lists {listed}; leave --parties out");
        }
        let descriptor = chosen.descriptor()?;
        if !descriptor.parties.contains(&listed) {
            let fitting = catalog::all().into_iter().filter(|other| other.parties.contains(&listed));
            let fitting: Vec<&str> = fitting.map(|other| other.name).collect();
            bail!(
                "{} runs among {}, and the hosts file lists {listed}; choose another --protocol: {}",
                descriptor.name,
                descriptor.party_range(),
                fitting.join(", ")
            );
        }
        let protocol = ProtocolOptions { parties: Some(listed), ..chosen.clone() };
        protocol.check_parties()?;
        Ok(protocol)
    }

    /// Connects with all other parties. A party that owes bytes is waited for at most `idle`.
    pub fn connect(&self, idle: Duration, quiet: bool) -> Result<(TlsNet, Arc<WireMeter>)> {
        let limits = Limits { connect: self.wait, idle, ..Limits::default() };
        let endpoint = Endpoint::bind(&*self.listen, self.identity.clone(), limits).map_err(|e| {
            let port = self.listen.rsplit_once(':').map_or("7000", |(_, port)| port);
            anyhow!(
                "{e}; or, if others reach this machine by an address that it does not have itself, give --listen 0.0.0.0:{port}"
            )
        })?;
        if !quiet {
            let others = self.me.peers(self.parties()).map(|peer| self.named(peer)).collect::<Vec<_>>();
            eprintln!(
                "{} listens on {} and waits up to {} s for {}",
                self.me,
                endpoint.local_addr(),
                self.wait.as_secs(),
                others.join(", ")
            );
        }
        let peer = |host: &polyclave_config::Host| PeerAddress {
            address: host.address.clone(),
            certificate: host.certificate.clone(),
        };
        let wire = endpoint.wire_meter();
        let peers: Vec<PeerAddress> = self.hosts.hosts().iter().map(peer).collect();
        Ok((endpoint.join(self.me, &peers)?, wire))
    }

    /// An error in which each party has its address where it is first named.
    pub fn in_addresses(&self, error: &anyhow::Error) -> anyhow::Error {
        let message = self
            .me
            .peers(self.parties())
            .fold(format!("{error:#}"), |text, peer| self.address_in(text, peer));
        anyhow!(message)
    }

    fn named(&self, party: Party) -> String {
        format!("{party} ({})", self.hosts.hosts()[party.index()].address)
    }

    fn address_in(&self, text: String, peer: Party) -> String {
        let name = peer.to_string();
        let longer = |end: usize| text[end..].starts_with(|c: char| c.is_ascii_digit());
        match text.match_indices(&name).find(|(at, _)| !longer(at + name.len())) {
            Some((at, _)) if !text.contains(&self.named(peer)) => {
                format!("{}{}{}", &text[..at], self.named(peer), &text[at + name.len()..])
            }
            _ => text,
        }
    }
}
