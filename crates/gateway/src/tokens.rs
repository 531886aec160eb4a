//! The tokens and access keys that are in force. The file is looked at with every request, so that a token
//! that was revoked stops at once.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use parking_lot::{Mutex, RwLock};
use polyclave_client::Client;
use polyclave_config::{GatewayAccessKey, GatewaySettings, GatewayToken};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::Result;
use crate::memory::TURNS;
use crate::nodes::Asker;

/// A token, and the client as which the gateway asks the nodes for it.
pub(crate) struct Token {
    pub(crate) entry: GatewayToken,
    pub(crate) asker: Asker,
    /// Its long requests take turns for its share of the memory.
    pub(crate) turns: Arc<Semaphore>,
}

/// An access key, and the client as which the gateway asks the nodes for its holder.
pub(crate) struct AccessKey {
    pub(crate) entry: GatewayAccessKey,
    pub(crate) secret: Zeroizing<String>,
    pub(crate) asker: Asker,
}

/// The token of a request. If there are several, nobody can say which one is meant.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<&str> {
    let mut own = headers.get_all("x-vault-token").iter();
    match (own.next(), own.next()) {
        (Some(_), Some(_)) => return None,
        (Some(own), None) if !own.is_empty() => return own.to_str().ok(),
        _ => {}
    }
    let mut all = headers
        .get_all(AUTHORIZATION)
        .iter()
        .filter_map(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    all.next().filter(|text| !text.is_empty() && all.next().is_none())
}

/// The tokens by their hashes. An attacker that measures how long a look-up takes learns something of the
/// hash of its own input, and cannot choose tokens by their hashes.
type ByHash = HashMap<[u8; 32], Arc<Token>>;

/// Who may ask, as the file says.
struct InForce {
    tokens: ByHash,
    /// By their ids, which are no secrets.
    access_keys: HashMap<String, Arc<AccessKey>>,
}

/// See the [module](self).
pub(crate) struct Tokens {
    file: PathBuf,
    client: Arc<Client>,
    in_force: RwLock<Arc<InForce>>,
    /// The file that was read last, whether or not it was right.
    read: Mutex<Read>,
}

struct Read {
    mark: Option<Mark>,
    settings: GatewaySettings,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    file: (u64, u64),
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    fn of(file: &Path) -> Option<Mark> {
        let of = |data: Metadata| Mark {
            file: (data.dev(), data.ino()),
            bytes: data.len(),
            written: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        };
        std::fs::metadata(file).ok().map(of)
    }
}

impl Tokens {
    /// Reads the file.
    pub(crate) fn load(file: &Path, client: Arc<Client>) -> Result<Tokens> {
        // Before it is read: a change meanwhile is noticed with the next request.
        let mark = Mark::of(file);
        let settings = GatewaySettings::load(file)?;
        let in_force = RwLock::new(Arc::new(in_force(&client, &settings)?));
        let read = Mutex::new(Read { mark, settings });
        Ok(Tokens { file: file.into(), client, in_force, read })
    }

    /// The token with a hash, as the file has it now.
    pub(crate) fn find(&self, hash: &[u8; 32]) -> Option<Arc<Token>> {
        self.look_again();
        self.in_force.read().tokens.get(hash).cloned()
    }

    /// The access key with an id, as the file has it now.
    pub(crate) fn find_access_key(&self, id: &str) -> Option<Arc<AccessKey>> {
        self.look_again();
        self.in_force.read().access_keys.get(id).cloned()
    }

    /// Takes the tokens of the file, if it has changed. Those of a file with an error are not taken: the
    /// tokens from before stay in force.
    fn look_again(&self) {
        let mark = Mark::of(&self.file);
        let mut read = self.read.lock();
        if mark == read.mark {
            return;
        }
        read.mark = mark;
        let taken = GatewaySettings::load(&self.file).map_err(crate::Error::from).and_then(|settings| {
            let in_force = in_force(&self.client, &settings)?;
            Ok((settings, in_force))
        });
        match taken {
            Ok((settings, in_force)) => {
                let (tokens, access_keys) = (in_force.tokens.len(), in_force.access_keys.len());
                tracing::info!(tokens, access_keys, "tokens were read");
                let without = |settings: &GatewaySettings| GatewaySettings {
                    tokens: Vec::new(),
                    access_keys: Vec::new(),
                    ..settings.clone()
                };
                if without(&settings) != without(&read.settings) {
                    tracing::warn!(
                        "of gateway.toml only tokens and access keys are taken while the gateway runs; start it again for the rest"
                    );
                }
                read.settings = settings;
                *self.in_force.write() = Arc::new(in_force);
            }
            Err(e) => {
                tracing::error!(error = %e, "the tokens from before stay in force, also those that the file was to revoke");
            }
        }
    }
}

fn in_force(client: &Client, settings: &GatewaySettings) -> Result<InForce> {
    let token = |entry: &GatewayToken| {
        let asker = Asker::new(client, &entry.name)?;
        let turns = Arc::new(Semaphore::new(TURNS));
        Ok((entry.hash, Arc::new(Token { entry: entry.clone(), asker, turns })))
    };
    let access_key = |entry: &GatewayAccessKey| {
        let (secret, asker) = (entry.read_secret()?, Asker::new(client, &entry.name)?);
        Ok((entry.id.clone(), Arc::new(AccessKey { entry: entry.clone(), secret, asker })))
    };
    Ok(InForce {
        tokens: settings.tokens.iter().map(token).collect::<Result<_>>()?,
        access_keys: settings.access_keys.iter().map(access_key).collect::<Result<_>>()?,
    })
}
