//! Where a gateway listens: loopback, TLS, or a Unix socket.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::{Error, Result, check_name};

/// Where Vault's API is served: on a loopback address, or with TLS (`[[listener]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayListener {
    /// An IP address and a port.
    pub address: String,
    /// The certificates for TLS, in PEM: its own first, then those that vouch for it.
    pub certificate: Option<PathBuf>,
    /// The private key for TLS, in PEM. Only its owner may be able to read it.
    pub key: Option<PathBuf>,
    /// With it callers need a certificate of their own: the authorities that may have signed it, in PEM.
    pub client_authorities: Option<PathBuf>,
    /// The names of which such a certificate has to have one; any if none is named.
    #[serde(default)]
    pub client_names: Vec<String>,
}

impl GatewayListener {
    /// The files for TLS, if it is served with TLS.
    pub fn tls(&self) -> Option<(&PathBuf, &PathBuf)> {
        self.certificate.as_ref().zip(self.key.as_ref())
    }

    /// Its files.
    pub(super) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.certificate, &mut self.key, &mut self.client_authorities].into_iter().flatten()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.client_authorities.is_some() && self.certificate.is_none() {
            return Err(Error::misuse(
                "it has client_authorities and no TLS: certificates of callers come with TLS; add certificate and key",
            ));
        }
        if let Some(name) = self.client_names.iter().find(|name| !is_of_host(name)) {
            let shown: String = name.chars().take(80).collect();
            return Err(Error::misuse(format!(
                "{shown:?} in client_names is no name of a host; write for example cks.kms.eu-central-1.amazonaws.com"
            )));
        }
        if self.client_authorities.is_none() && !self.client_names.is_empty() {
            return Err(Error::misuse(
                "it has client_names and no client_authorities: anybody could sign a certificate with such a name; name the file of the authorities",
            ));
        }
        match (&self.certificate, &self.key) {
            (Some(_), Some(_)) => socket_address(&self.address).map(drop),
            (None, None) => check_loopback(&self.address),
            (Some(_), None) => Err(Error::misuse(
                "it has a certificate and no key; write the file of its private key as key",
            )),
            (None, Some(_)) => Err(Error::misuse(
                "it has a key and no certificate; write the file of its certificate as certificate",
            )),
        }
    }
}

/// A KMS of Kubernetes, on a Unix socket that only its owner can connect to (`[[kms]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KmsListener {
    /// Its name in the audit logs of the nodes.
    pub name: String,
    /// The socket.
    pub socket: PathBuf,
    /// The name of the key.
    pub key: String,
}

impl KmsListener {
    pub(super) fn check(&self) -> Result<()> {
        check_name("key", &self.key)
    }
}

/// Refuses an address that other machines can reach.
pub(super) fn check_loopback(address: &str) -> Result<()> {
    match socket_address(address)?.ip().is_loopback() {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{address} can be reached from other machines, and what is said there would cross the network in the clear; take 127.0.0.1, or \
             give a [[listener]] a certificate and a key for TLS"
        ))),
    }
}

/// Whether it can be the name of a host in a certificate.
pub(super) fn is_of_host(name: &str) -> bool {
    let of_host = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    (1..=253).contains(&name.len()) && name.chars().all(of_host)
}

pub(super) fn socket_address(address: &str) -> Result<SocketAddr> {
    address.parse().map_err(|_| {
        let shown: String = address.chars().take(80).collect();
        Error::misuse(format!("{shown:?} is no IP address with a port; write for example 127.0.0.1:8200"))
    })
}
