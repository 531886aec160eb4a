//! Where the keys of an issuer come from, and for how long they are good.
//!
//! Keys of a file are read again when the file has changed. Keys of a server are asked for again when they
//! are some minutes old, and when a token names a key that is not among them: so keys that the issuer
//! withdraws end, and new ones work at once. The server is never asked more often than every few seconds. If
//! it does not answer, the keys of before are good for an hour (`kept.rs`).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use polyclave_config::{GatewayLogin, KeysPlace};
use serde_json::Value;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::fetch;
use super::kept::{Kept, Times};
use super::public_keys::{MAX_DOCUMENT, PublicKeys};
use super::strict;
use crate::mark::Mark;
use crate::{Error, Result};

/// The times of a server's keys.
const TIMES: Times = Times {
    fresh: Duration::from_secs(300),
    good: Duration::from_secs(3600),
    pause: Duration::from_secs(5),
    patience: Duration::from_secs(1),
};
/// How long a server has to say where its keys are, and to give them.
const WITHIN: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(super) enum Source {
    File(KeysFile),
    Server(Arc<Server>, Arc<Kept>),
}

impl Source {
    /// The source of a login. Files that are missing or wrong are an error; a server is not asked yet.
    pub(super) fn new(login: &GatewayLogin) -> Result<Source> {
        let server = |place, authorities: &Path| {
            let server = Server { place, tls: fetch::tls(authorities)? };
            Ok(Source::Server(Arc::new(server), Arc::new(Kept::new(TIMES))))
        };
        match login.keys_place() {
            Some(KeysPlace::File(path)) => KeysFile::read(path).map(Source::File),
            Some(KeysPlace::Url { url, authorities }) => server(Place::Url(url.into()), authorities),
            Some(KeysPlace::Discovery { issuer, authorities }) => {
                server(Place::Issuer(issuer.into()), authorities)
            }
            None => Err(Error::Keys(format!("the login {:?} names no place of keys", login.path))),
        }
    }

    /// The keys, or why there are none. A server is asked again if they are not the ones that are needed.
    pub(super) async fn keys(
        &self,
        are_needed: impl Fn(&PublicKeys) -> bool,
    ) -> std::result::Result<Arc<PublicKeys>, String> {
        match self {
            Source::File(file) => Ok(file.keys()),
            Source::Server(server, kept) => {
                let server = server.clone();
                kept.keys(are_needed, || async move { server.ask().await }).await
            }
        }
    }
}

/// Keys of a file.
pub(super) struct KeysFile {
    path: PathBuf,
    read: Mutex<(Option<Mark>, Arc<PublicKeys>)>,
}

impl KeysFile {
    fn read(path: &Path) -> Result<KeysFile> {
        let wrong = |detail| Error::KeysFile { path: path.into(), detail };
        // Before it is read: a change meanwhile is noticed with the next login.
        let mark = Mark::of(path);
        let document = read(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let keys = PublicKeys::parse(&document).map_err(wrong)?;
        Ok(KeysFile { path: path.into(), read: Mutex::new((mark, Arc::new(keys))) })
    }

    fn keys(&self) -> Arc<PublicKeys> {
        let mark = Mark::of(&self.path);
        let mut last = self.read.lock();
        if mark != last.0 {
            // A file that cannot be read now is tried again with the next login.
            let parsed = read(&self.path).map_err(|e| format!("cannot be read: {e}")).and_then(|document| {
                last.0 = mark;
                PublicKeys::parse(&document)
            });
            match parsed {
                Ok(keys) => last.1 = Arc::new(keys),
                Err(why) => {
                    let file = self.path.display();
                    tracing::error!(%file, why, "the keys of before stay in force, also those that the file was to withdraw");
                }
            }
        }
        last.1.clone()
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut document = Vec::new();
    // One byte more than there may be: then it is too long.
    File::open(path)?.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut document)?;
    Ok(document)
}

/// A server that has keys.
pub(super) struct Server {
    place: Place,
    tls: TlsConnector,
}

enum Place {
    Url(String),
    Issuer(String),
}

impl Server {
    async fn ask(&self) -> std::result::Result<PublicKeys, String> {
        let (Place::Url(place) | Place::Issuer(place)) = &self.place;
        let late = |_| Err(format!("{place}: it did not answer within {} s", WITHIN.as_secs()));
        timeout(WITHIN, self.fetch()).await.unwrap_or_else(late)
    }

    async fn fetch(&self) -> std::result::Result<PublicKeys, String> {
        let url = match &self.place {
            Place::Url(url) => url.clone(),
            Place::Issuer(issuer) => {
                let url = GatewayLogin::discovery_url(issuer);
                let document = fetch::get(&url, &self.tls).await?;
                keys_url(&document, issuer).map_err(|why| format!("{url}: {why}"))?
            }
        };
        let document = fetch::get(&url, &self.tls).await?;
        PublicKeys::parse(&document).map_err(|why| format!("{url}: {why}"))
    }
}

/// Where the keys are, as a document of OpenID Connect Discovery 1.0 (section 4.3) says. Its issuer has to be
/// the one that was asked.
pub(super) fn keys_url(document: &[u8], issuer: &str) -> std::result::Result<String, String> {
    let members = strict::object(document).map_err(|flaw| format!("its answer {flaw}"))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("issuer") != Some(issuer) {
        return Err("it says that it is another issuer".into());
    }
    match text("jwks_uri") {
        Some(url) if url.starts_with("https://") && url.len() <= 2048 => Ok(url.into()),
        _ => Err("it names no address of keys with https (\"jwks_uri\")".into()),
    }
}
