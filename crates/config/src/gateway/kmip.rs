//! Listeners for KMIP, the Key Management Interoperability Protocol.

use std::path::PathBuf;

use polyclave_api::Right;
use serde::Deserialize;

use super::listener::{is_of_host, socket_address};
use super::token::{GatewayGrant, check_rights};
use crate::{Error, Result};

/// The rights that a client of KMIP can use.
pub const KMIP_RIGHTS: [Right; 7] = [
    Right::Generate,
    Right::List,
    Right::Delete,
    Right::Encrypt,
    Right::Decrypt,
    Right::Configure,
    Right::Mac,
];

/// Where KMIP is served, with TLS and certificates of its clients (`[[kmip]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayKmip {
    /// An IP address and a port. The port of KMIP is 5696.
    pub address: String,
    /// The certificates for TLS, in PEM: its own first, then those that vouch for it.
    pub certificate: PathBuf,
    /// The private key for TLS, in PEM. Only its owner may be able to read it.
    pub key: PathBuf,
    /// The authorities that may have signed the certificates of clients, in PEM.
    pub client_authorities: PathBuf,
    /// Its clients (`[[kmip.client]]`).
    #[serde(rename = "client", default)]
    pub clients: Vec<GatewayKmipClient>,
}

/// A client of KMIP, and what it may do (`[[kmip.client]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayKmipClient {
    /// Its name, for people and for the audit logs of the nodes.
    pub name: String,
    /// The name in its certificate, among the alternative names of the subject.
    pub certificate_name: String,
    /// What it may do: `generate`, `list`, `delete`, `encrypt`, `decrypt`, `configure`, `mac`.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    pub keys: Vec<String>,
}

impl GatewayKmip {
    /// The same without its clients.
    pub fn without_clients(&self) -> GatewayKmip {
        GatewayKmip { clients: Vec::new(), ..self.clone() }
    }

    /// Its files.
    pub(super) fn files(&mut self) -> [&mut PathBuf; 3] {
        [&mut self.certificate, &mut self.key, &mut self.client_authorities]
    }

    /// Refuses one that nobody could use, and names that mean two clients.
    pub(super) fn check(&self) -> Result<()> {
        if self.clients.is_empty() {
            return Err(Error::misuse("it has no clients: nobody could ask; add a [[kmip.client]]"));
        }
        socket_address(&self.address)?;
        for (at, client) in self.clients.iter().enumerate() {
            if !is_of_host(&client.certificate_name) {
                let shown: String = client.certificate_name.chars().take(80).collect();
                return Err(Error::misuse(format!(
                    "the certificate_name {shown:?} is no name of a host; write for example db.example.org"
                )));
            }
            let is_same = |other: &GatewayKmipClient| {
                other.certificate_name.eq_ignore_ascii_case(&client.certificate_name)
            };
            if self.clients[..at].iter().any(is_same) {
                return Err(Error::misuse(format!(
                    "two of its clients have the certificate_name {:?}; give each its own",
                    client.certificate_name
                )));
            }
            check_rights(&client.rights, &client.keys, &KMIP_RIGHTS)
                .map_err(|e| Error::misuse(format!("the client {:?}: {e}", client.name)))?;
        }
        Ok(())
    }
}

impl GatewayKmipClient {
    /// What it may do.
    pub fn grant(&self) -> GatewayGrant {
        GatewayGrant { name: self.name.clone(), rights: self.rights.clone(), keys: self.keys.clone() }
    }
}
