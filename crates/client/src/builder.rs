//! How a client is made: from its directory, or from its parts by programs that keep them elsewhere.

use std::sync::Arc;

use polyclave_config::{ClientDir, Cluster, RenewedFiles};
use polyclave_transport::{Halt, Identity};

use crate::client::Client;
use crate::identities::Identities;
use crate::session::approvals::Approvals;
use crate::session::group::{Caller, WorkerGroup};
use crate::{Error, Result};

/// A client that is being made of its parts ([`Client::builder`]).
#[derive(Default)]
pub struct ClientBuilder {
    name: String,
    cluster: Option<Cluster>,
    identity: Option<Result<Identities>>,
}

impl Client {
    /// Opens the client of a directory.
    ///
    /// ```no_run
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use polyclave_client::Client;
    /// use polyclave_config::ClientDir;
    ///
    /// let client = Client::open(&ClientDir::open("try/client".as_ref())?)?;
    /// let code = client.key("orders")?.cmac(b"twelve boxes")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(dir: &ClientDir) -> Result<Client> {
        let cluster = dir.cluster()?.ok_or_else(|| {
            Error::Misuse(format!(
                "{} has no cluster file yet; give it that of the nodes",
                dir.path().display()
            ))
        })?;
        let builder = Client::builder().name(dir.name()).cluster(cluster);
        if let Some(files) = dir.renewed() {
            return builder.renewed(files).build();
        }
        let identity = dir.identity();
        builder.identity(&identity.certificate, &identity.key).build()
    }

    /// Makes a client of its parts, without a directory.
    ///
    /// ```no_run
    /// # fn run(certificate: &[u8], key: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// use polyclave_client::Client;
    /// use polyclave_config::Cluster;
    ///
    /// let cluster = Cluster::load("cluster.toml".as_ref())?;
    /// let client = Client::builder().name("web").cluster(cluster).identity(certificate, key).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl ClientBuilder {
    /// The client's own name, which files in envelopes contain. Nodes know it by its certificate.
    pub fn name(self, name: &str) -> ClientBuilder {
        ClientBuilder { name: name.into(), ..self }
    }

    /// The cluster whose nodes it asks. The caller has compared the file's fingerprint.
    pub fn cluster(self, cluster: Cluster) -> ClientBuilder {
        ClientBuilder { cluster: Some(cluster), ..self }
    }

    /// Who it is: an X.509 certificate and its Ed25519 key in PKCS#8, both in DER.
    pub fn identity(self, certificate: &[u8], key: &[u8]) -> ClientBuilder {
        let identity = Identity::from_der(certificate, key).map_err(Error::from);
        ClientBuilder { identity: Some(identity.map(Identities::Own)), ..self }
    }

    /// Who it is, if an authority of the nodes vouches for it: the files into which an agent writes its
    /// certificate and key, and again before the certificate ends. They are read for each new connection if
    /// they have changed. Its name is then the identity in the certificate.
    pub fn renewed(self, files: RenewedFiles) -> ClientBuilder {
        ClientBuilder { identity: Some(Identities::renewed(files)), ..self }
    }

    /// The client. It needs a cluster and an identity. Nothing is asked of the nodes yet.
    pub fn build(self) -> Result<Client> {
        let ClientBuilder { name, cluster, identity } = self;
        let (Some(cluster), Some(identity)) = (cluster, identity) else {
            return Err(Error::Misuse("a client needs a cluster and an identity".into()));
        };
        let identity = identity?;
        let caller = Caller {
            name: identity.vouched().map_or(name, str::to_owned),
            on_behalf_of: String::new(),
            trace: None,
            identity,
            left_out: Arc::default(),
            remarks: Arc::new(|_: &str| ()),
            halt: Halt::default(),
            approvals: Approvals::None,
            work: Arc::new(|_: u64, _: u64| ()),
        };
        // A file has at most so many, and further ones are none.
        let further = (1..=u16::MAX).map_while(|number| cluster.of_worker_group(number));
        let clusters: Vec<Cluster> = [cluster.clone()].into_iter().chain(further).collect();
        let pairs = cluster.pairs();
        let several = clusters.len() + pairs.len() > 1;
        let groups = |of: Vec<Cluster>| -> Result<Arc<[WorkerGroup]>> {
            of.into_iter().map(|cluster| WorkerGroup::new(cluster, several)).collect()
        };
        Ok(Client { caller, groups: groups(clusters)?, pairs: groups(pairs)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_without_a_cluster_is_refused() {
        let without = Client::builder().name("web").identity(b"", b"").build();
        assert!(matches!(without, Err(Error::Misuse(message)) if message.contains("needs a cluster")));
    }
}
