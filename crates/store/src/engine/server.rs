//! How a node reaches the PostgreSQL server of its store.

use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use polyclave_config::private;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::{Result, StoreError};

/// After so long without a word each side asks whether the other is there.
const QUIET: Duration = Duration::from_secs(10);

/// A server, a database in it, and a user.
pub(in super::super) struct Server {
    config: Config,
    tls: MakeRustlsConnect,
    /// For messages: without the password.
    name: String,
}

impl Server {
    /// From a URL, `postgresql://USER@HOST/DATABASE`. The password is in a private file, since settings are
    /// not private. TLS is taken on all ways but a Unix socket and loopback, and the server's certificate
    /// must be of the authority of the given file.
    pub(in super::super) fn new(url: &str, password: &Path, authority: &Path) -> Result<Server> {
        let mut config = Config::from_str(url)
            .map_err(|e| StoreError::unusable("the store's URL", format!("is not one of PostgreSQL: {e}")))?;
        let hosts: Vec<String> = config.get_hosts().iter().map(shown).collect();
        let name =
            format!("{} at {}", config.get_dbname().unwrap_or("the user's database"), hosts.join(", "));
        let unusable = |detail: &str| StoreError::unusable(&name, detail);
        if config.get_password().is_some() {
            return Err(unusable(&format!(
                "has its password in node.toml, which others may read; put it into {}, mode 0600",
                password.display()
            )));
        }
        if hosts.is_empty() {
            return Err(unusable("has no host; write postgresql://USER@HOST/DATABASE"));
        }
        if password.exists() {
            let text = private::read(password)?;
            config.password(text.trim_ascii());
        }
        let is_far = config.get_hosts().iter().any(|host| !is_near(host));
        let mut roots = RootCertStore::empty();
        if is_far {
            if config.get_ssl_mode() == SslMode::Disable {
                return Err(unusable(
                    "is on another machine, and its URL turns TLS off; remove sslmode=disable",
                ));
            }
            config.ssl_mode(SslMode::Require);
            read_authority(authority, &mut roots).map_err(|detail| unusable(&detail))?;
        } else {
            config.ssl_mode(SslMode::Disable);
        }
        config.application_name("polyclave");
        // The same on this side: a lost server is noticed, and another connection is tried.
        config
            .keepalives_idle(QUIET)
            .keepalives_interval(QUIET / 2)
            .keepalives_retries(3)
            .tcp_user_timeout(2 * QUIET);
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(&format!("cannot be reached by TLS: {e}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Server { config, tls: MakeRustlsConnect::new(tls), name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn failed(&self, detail: impl ToString) -> StoreError {
        StoreError::Server { place: self.name.clone(), detail: detail.to_string() }
    }

    pub(super) fn unusable(&self, detail: &str) -> StoreError {
        StoreError::unusable(&self.name, detail)
    }

    pub(super) async fn connect(
        &self,
    ) -> std::result::Result<(Client, impl Future<Output = ()> + Send + use<>), tokio_postgres::Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        Ok((client, async move {
            // The client reports it.
            let _ = connection.await;
        }))
    }
}

/// Whether the connection to the server stays on this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn shown(host: &Host) -> String {
    match host {
        Host::Unix(path) => path.display().to_string(),
        Host::Tcp(name) => name.clone(),
    }
}

fn read_authority(path: &Path, roots: &mut RootCertStore) -> std::result::Result<(), String> {
    let wrong = |e: &dyn std::fmt::Display| {
        format!(
            "is on another machine, and needs TLS: put the certificate of the authority that signed its certificate, in PEM, into {} ({e})",
            path.display()
        )
    };
    let pem = std::fs::read(path).map_err(|e| wrong(&e))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
    }
    if roots.is_empty() { Err(wrong(&"it has none")) } else { Ok(()) }
}
