//! Where the keys of an issuer come from, and for how long they are good.
//!
//! Keys of a file are read again when the file has changed (`watched.rs`). Keys of a server are asked for
//! again when they are some minutes old, and when a token names a key that is not among them: so keys that
//! the issuer withdraws end, and new ones work at once. The server is never asked more often than every few
//! seconds. If it does not answer, the keys of before are good for an hour (`kept.rs`). They end at once if
//! the file of authorities changes that the server is known by.

use std::path::Path;
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
use super::watched::Watched;
use crate::{Error, Result, outgoing};

/// The times of a server's keys.
const TIMES: Times = Times {
    fresh: Duration::from_secs(300),
    good: Duration::from_secs(3600),
    pause: Duration::from_secs(5),
    patience: Duration::from_secs(1),
};
/// How long a server has to say where its keys are, and to give them.
const WITHIN: Duration = Duration::from_secs(5);

/// The most bytes of a file of authorities.
const MAX_AUTHORITIES: usize = 4 << 20;

/// See the [module](self).
pub(super) enum Source {
    File(Watched<PublicKeys>),
    Server(Server),
}

impl Source {
    /// The source of a login. Files that are missing or wrong are an error; a server is not asked yet.
    pub(super) fn new(login: &GatewayLogin) -> Result<Source> {
        match login.keys_place() {
            Some(KeysPlace::File(path)) => {
                let keys = Watched::read(path, MAX_DOCUMENT, PublicKeys::parse);
                keys.map(Source::File).map_err(|detail| Error::KeysFile { path: path.into(), detail })
            }
            Some(KeysPlace::Url { url, authorities }) => {
                Server::new(Place::Url(url.into()), authorities).map(Source::Server)
            }
            Some(KeysPlace::Discovery { issuer, authorities }) => {
                Server::new(Place::Issuer(issuer.into()), authorities).map(Source::Server)
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
            Source::File(file) => Ok(file.present()),
            Source::Server(server) => server.keys(are_needed).await,
        }
    }
}

/// A server that has keys.
pub(super) struct Server {
    place: Arc<Place>,
    authorities: Watched<TlsConnector>,
    /// The keys that it gave, and the authorities that knew it then.
    kept: Mutex<(Arc<TlsConnector>, Arc<Kept>)>,
}

enum Place {
    Url(String),
    Issuer(String),
}

impl Server {
    fn new(place: Place, authorities: &Path) -> Result<Server> {
        let wrong = |detail| Error::Tls { path: authorities.into(), detail };
        let watched = Watched::read(authorities, MAX_AUTHORITIES, outgoing::tls).map_err(wrong)?;
        let kept = Mutex::new((watched.present(), Arc::new(Kept::new(TIMES))));
        Ok(Server { place: Arc::new(place), authorities: watched, kept })
    }

    async fn keys(
        &self,
        are_needed: impl Fn(&PublicKeys) -> bool,
    ) -> std::result::Result<Arc<PublicKeys>, String> {
        let (tls, kept) = self.kept();
        let place = self.place.clone();
        kept.keys(are_needed, || async move { place.ask(&tls).await }).await
    }

    /// What is kept. Keys from a server that other authorities knew are not: one of these may be no good.
    fn kept(&self) -> (Arc<TlsConnector>, Arc<Kept>) {
        let tls = self.authorities.present();
        let mut kept = self.kept.lock();
        if !Arc::ptr_eq(&kept.0, &tls) {
            *kept = (tls, Arc::new(Kept::new(TIMES)));
        }
        kept.clone()
    }
}

impl Place {
    async fn ask(&self, tls: &TlsConnector) -> std::result::Result<PublicKeys, String> {
        let (Place::Url(place) | Place::Issuer(place)) = self;
        let late = |_| Err(format!("{place}: it did not answer within {} s", WITHIN.as_secs()));
        timeout(WITHIN, self.fetch(tls)).await.unwrap_or_else(late)
    }

    async fn fetch(&self, tls: &TlsConnector) -> std::result::Result<PublicKeys, String> {
        let url = match self {
            Place::Url(url) => url.clone(),
            Place::Issuer(issuer) => {
                let url = GatewayLogin::discovery_url(issuer);
                let document = fetch::get(&url, tls).await?;
                keys_url(&document, issuer).map_err(|why| format!("{url}: {why}"))?
            }
        };
        let document = fetch::get(&url, tls).await?;
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
