//! Where the keys of an issuer come from, and for how long they are good.
//!
//! Keys of a file are read again when the file has changed. Keys of a server are asked for again when they
//! are some minutes old, and when a token names a key that is not among them: so keys that the issuer
//! withdraws end, and new ones work at once. The server is never asked more often than every few seconds. If
//! it does not answer, the keys of before are good for an hour.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_config::{GatewayLogin, KeysPlace};
use serde_json::Value;
use tokio_rustls::TlsConnector;

use super::fetch;
use super::public_keys::{MAX_DOCUMENT, PublicKeys};
use super::refused::Refused;
use super::strict;
use crate::mark::Mark;
use crate::{Error, Result};

/// Keys of a server are good for this time without asking again, and for that time if it does not answer.
const FRESH: Duration = Duration::from_secs(300);
const GOOD: Duration = Duration::from_secs(3600);
/// The time between two questions to a server.
const PAUSE: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(super) enum Source {
    File(KeysFile),
    Server(Box<Server>),
}

impl Source {
    /// The source of a login. Files that are missing or wrong are an error; a server is not asked yet.
    pub(super) fn new(login: &GatewayLogin) -> Result<Source> {
        let server = |place, authorities: &Path| {
            let (known, asked) = Default::default();
            Ok(Source::Server(Box::new(Server { place, tls: fetch::tls(authorities)?, known, asked })))
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

    /// The keys. A server is asked again if they are not the ones that are needed.
    pub(super) async fn keys(
        &self,
        are_needed: &(dyn Fn(&PublicKeys) -> bool + Sync),
    ) -> std::result::Result<Arc<PublicKeys>, Refused> {
        match self {
            Source::File(file) => Ok(file.keys()),
            Source::Server(server) => server.keys(are_needed).await.map_err(Refused::NoKeys),
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
        // Before it is read: a change meanwhile is noticed with the next login.
        let mark = Mark::of(path);
        let keys = read(path).map_err(|detail| Error::KeysFile { path: path.into(), detail })?;
        Ok(KeysFile { path: path.into(), read: Mutex::new((mark, Arc::new(keys))) })
    }

    fn keys(&self) -> Arc<PublicKeys> {
        let mark = Mark::of(&self.path);
        let mut last = self.read.lock();
        if mark != last.0 {
            last.0 = mark;
            match read(&self.path) {
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

fn read(path: &Path) -> std::result::Result<PublicKeys, String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {e}");
    let file = File::open(path).map_err(unreadable)?;
    let mut document = Vec::new();
    // One byte more than there may be: then it is too long.
    file.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut document).map_err(unreadable)?;
    PublicKeys::parse(&document)
}

/// Keys of a server.
pub(super) struct Server {
    place: Place,
    tls: TlsConnector,
    known: Mutex<Option<Known>>,
    /// What came of the last question. Who asks has this lock.
    asked: tokio::sync::Mutex<Option<Asked>>,
}

enum Place {
    Url(String),
    Issuer(String),
}

#[derive(Clone)]
struct Known {
    keys: Arc<PublicKeys>,
    at: Instant,
}

struct Asked {
    at: Instant,
    trouble: Option<String>,
}

impl Server {
    async fn keys(
        &self,
        are_needed: &(dyn Fn(&PublicKeys) -> bool + Sync),
    ) -> std::result::Result<Arc<PublicKeys>, String> {
        if let Some(keys) = self.known_for(FRESH).filter(|keys| are_needed(keys)) {
            return Ok(keys);
        }
        let mut asked = match self.asked.try_lock() {
            Ok(asked) => asked,
            Err(_) => {
                // Somebody asks already. Nobody waits for that whose key is known.
                if let Some(keys) = self.known_for(GOOD).filter(|keys| are_needed(keys)) {
                    return Ok(keys);
                }
                self.asked.lock().await
            }
        };
        let lately = asked.as_ref().is_some_and(|asked| asked.at.elapsed() < PAUSE);
        if !lately {
            // Before it is asked: a caller that goes away in the middle ends this.
            *asked = Some(Asked { at: Instant::now(), trouble: None });
            let outcome = self.ask().await;
            let trouble = outcome.as_ref().err().cloned();
            if let Ok(keys) = outcome {
                *self.known.lock() = Some(Known { keys: Arc::new(keys), at: Instant::now() });
            }
            if let Some(why) = &trouble {
                tracing::warn!(why, "an issuer's keys could not be fetched");
            }
            *asked = Some(Asked { at: Instant::now(), trouble });
        }
        self.known_for(GOOD).ok_or_else(|| {
            let trouble = asked.as_ref().and_then(|asked| asked.trouble.clone());
            trouble.unwrap_or_else(|| "its server was asked a moment ago; ask again in some seconds".into())
        })
    }

    /// The keys, if they are not older than this.
    fn known_for(&self, good_for: Duration) -> Option<Arc<PublicKeys>> {
        let known = self.known.lock();
        known.as_ref().filter(|known| known.at.elapsed() < good_for).map(|known| known.keys.clone())
    }

    async fn ask(&self) -> std::result::Result<PublicKeys, String> {
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
