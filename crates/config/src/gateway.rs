//! `gateway.toml`: where a gateway listens, the client as which it asks the nodes, and the permissions of its
//! callers.

mod access_key;
mod kmip;
mod listener;
mod login;
#[cfg(test)]
mod tests;
mod token;
mod transform;
mod xks;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::{Error, Result, TraceSettings, check_name, private, text};

pub use access_key::{ACCESS_KEY_RIGHTS, GatewayAccessKey};
pub use kmip::{GatewayKmip, GatewayKmipClient, KMIP_RIGHTS};
pub use listener::{GatewayListener, KmsListener};
pub use login::{GatewayLogin, GatewayLoginRole, KeysPlace, LoginKind, SignatureAlgorithm};
pub use token::{GatewayGrant, GatewayToken, TOKEN_RIGHTS};
pub use transform::{
    GatewayAlphabet, GatewayRole, GatewayTemplate, GatewayTransform, GatewayTransformation, TweakSource,
};
pub use xks::{GatewayXks, GatewayXksKey};

/// The least memory for long requests. A token may have two thirds of it, and these hold the longest request
/// (32 MiB) with what is computed of it: five times 32 MiB.
const MIN_MEMORY_MIB: usize = 240;

/// The file in a gateway's directory.
const FILE: &str = "gateway.toml";

/// The settings of a gateway. Paths are as the file's directory has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// The directory of the client as which it asks the nodes.
    pub client: PathBuf,
    /// The loopback address on which it answers HTTP requests about its health and metrics; none if absent.
    pub http_listen: Option<String>,
    /// How much may be asked of it.
    pub limits: GatewayLimits,
    /// Where it serves Vault's API, and those of AWS Payment Cryptography and external key stores.
    pub listeners: Vec<GatewayListener>,
    /// Where it is a KMS of Kubernetes.
    pub kms: Vec<KmsListener>,
    /// Where it serves KMIP.
    pub kmip: Vec<GatewayKmip>,
    /// Who may use Vault's API.
    pub tokens: Vec<GatewayToken>,
    /// Who may log in for a token of Vault's API.
    pub logins: Vec<GatewayLogin>,
    /// The external key stores of AWS KMS, of which it is the proxy.
    pub xks: Vec<GatewayXks>,
    /// Who may use the API of AWS Payment Cryptography, and those of external key stores.
    pub access_keys: Vec<GatewayAccessKey>,
    /// What is tokenized, and how.
    pub transform: GatewayTransform,
    /// Where traces of requests go.
    pub traces: TraceSettings,
}

/// How much may be asked of a gateway at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayLimits {
    /// Requests to the nodes at the same time. The nodes have a limit for each client, too
    /// (`requests_at_once_per_client`).
    pub requests_at_once: usize,
    /// Requests of one token, or of one KMS, that wait for their turn. More are refused.
    pub waiting_per_token: usize,
    /// Connections of each listener whose callers have shown a good token. A quarter as many more may be open
    /// from callers that have shown none; one address may have half of those.
    pub connections: usize,
    /// Memory, in MiB, for requests that are longer than 64 KiB. A token may have two thirds of it.
    pub memory_mib: usize,
    /// Seconds within which a request is answered.
    pub request_seconds: u64,
    /// Tokens of logins that are in force at the same time. One more takes the place of the oldest one of the
    /// identity that has most in the role that has most.
    pub tokens_of_logins: usize,
}

impl Default for GatewayLimits {
    fn default() -> GatewayLimits {
        GatewayLimits {
            requests_at_once: 8,
            waiting_per_token: 256,
            connections: 256,
            memory_mib: 256,
            request_seconds: 90,
            tokens_of_logins: 10_000,
        }
    }
}

/// The file, with the place of each entry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    client: PathBuf,
    http_listen: Option<Spanned<String>>,
    #[serde(default)]
    limits: GatewayLimits,
    #[serde(default)]
    listener: Vec<Spanned<GatewayListener>>,
    #[serde(default)]
    kms: Vec<Spanned<KmsListener>>,
    #[serde(default)]
    kmip: Vec<Spanned<GatewayKmip>>,
    #[serde(default)]
    xks: Vec<Spanned<GatewayXks>>,
    #[serde(default)]
    token: Vec<Spanned<GatewayToken>>,
    #[serde(default)]
    login: Vec<Spanned<GatewayLogin>>,
    #[serde(default)]
    access_key: Vec<Spanned<GatewayAccessKey>>,
    #[serde(default)]
    transform: GatewayTransform,
    #[serde(default)]
    traces: TraceSettings,
}

impl GatewaySettings {
    /// The file that is meant by a path: the file itself, or `gateway.toml` in a directory.
    pub fn file(path: &Path) -> PathBuf {
        if path.is_dir() { path.join(FILE) } else { path.into() }
    }

    /// Reads settings from a file.
    pub fn load(file: &Path) -> Result<GatewaySettings> {
        let text = private::read_public(file)?;
        let mut settings = GatewaySettings::parse(&text).map_err(|e| e.in_file(file))?;
        settings.place_in(private::parent(file));
        Ok(settings)
    }

    /// Reads settings. An error names the line, and the entry if it can be read.
    pub fn parse(text: &str) -> Result<GatewaySettings> {
        let Text {
            client,
            http_listen,
            limits,
            listener,
            kms,
            kmip,
            xks,
            token,
            login,
            access_key,
            transform,
            traces,
        } = text::parse(text)?;
        let at = |start: usize| text[..start].bytes().filter(|b| *b == b'\n').count() + 1;
        limits.check()?;
        transform.check()?;
        traces.check()?;
        if let Some(address) = &http_listen {
            listener::check_loopback(address.get_ref())
                .map_err(|e| placed(e, at(address.span().start), "http_listen"))?;
        }
        let mut names = Names::default();
        for one in &listener {
            one.get_ref().check().map_err(|e| placed(e, at(one.span().start), "a listener"))?;
        }
        for one in &kms {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let checked = entry.check().and_then(|()| names.take(&entry.name));
            checked.map_err(|e| placed(e, line, &format!("the kms {:?}", entry.name)))?;
        }
        for (i, one) in kmip.iter().enumerate() {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let is_new = |()| match kmip[..i].iter().any(|other| other.get_ref().address == entry.address) {
                true => Err(Error::misuse("another one has this address; give both their clients in one")),
                false => Ok(()),
            };
            let take = |()| entry.clients.iter().try_for_each(|client| names.take(&client.name));
            let checked = entry.check().and_then(is_new).and_then(take);
            checked.map_err(|e| placed(e, line, &format!("the kmip {:?}", entry.address)))?;
        }
        let mut paths: Vec<&str> = Vec::new();
        for one in &xks {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let checked = entry.check().and_then(|()| match paths.contains(&entry.path.as_str()) {
                true => Err(Error::misuse("another [[xks]] has this path")),
                false => Ok(()),
            });
            checked.map_err(|e| placed(e, line, &format!("the xks {:?}", entry.path)))?;
            paths.push(&entry.path);
        }
        let mut hashes: Vec<&GatewayToken> = Vec::new();
        for one in &token {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let same = hashes.iter().find(|other| other.hash == entry.hash);
            let checked = entry.check().and_then(|()| names.take(&entry.name)).and_then(|()| match same {
                None => Ok(()),
                Some(other) => Err(Error::misuse(format!(
                    "it has the hash of {:?}: give each its own token, so that one can be revoked alone",
                    other.name
                ))),
            });
            checked.map_err(|e| placed(e, line, &format!("the token {:?}", entry.name)))?;
            hashes.push(entry);
        }
        let mut mounts: Vec<&str> = Vec::new();
        for one in &login {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let checked = entry.check().and_then(|()| match mounts.contains(&entry.path.as_str()) {
                true => Err(Error::misuse("another [[login]] has this path")),
                false => entry.roles.iter().try_for_each(|role| names.take(&role.name)),
            });
            checked.map_err(|e| placed(e, line, &format!("the login {:?}", entry.path)))?;
            mounts.push(&entry.path);
        }
        let mut ids: Vec<&str> = Vec::new();
        for one in &access_key {
            let (line, entry) = (at(one.span().start), one.get_ref());
            let checked = entry.check().and_then(|()| names.take(&entry.name)).and_then(|()| {
                match ids.contains(&entry.id.as_str()) {
                    true => Err(Error::misuse("another access key has this id")),
                    false => Ok(()),
                }
            });
            checked.map_err(|e| placed(e, line, &format!("the access key {:?}", entry.name)))?;
            ids.push(&entry.id);
        }
        if listener.is_empty() && kms.is_empty() && kmip.is_empty() {
            return Err(Error::misuse(
                "there is no [[listener]], no [[kms]] and no [[kmip]]: nobody could ask anything; add one of them, as `polyclave gateway run --help` \
                 shows",
            ));
        }
        if listener.is_empty() && !login.is_empty() {
            return Err(Error::misuse(
                "there is a [[login]] and no [[listener]]: nobody could log in; add one with certificate and key",
            ));
        }
        if listener.is_empty() && !xks.is_empty() {
            return Err(Error::misuse(
                "there is an [[xks]] and no [[listener]]: KMS could not ask anything; add one with certificate and key",
            ));
        }
        Ok(GatewaySettings {
            client,
            http_listen: http_listen.map(Spanned::into_inner),
            limits,
            listeners: listener.into_iter().map(Spanned::into_inner).collect(),
            kms: kms.into_iter().map(Spanned::into_inner).collect(),
            kmip: kmip.into_iter().map(Spanned::into_inner).collect(),
            xks: xks.into_iter().map(Spanned::into_inner).collect(),
            tokens: token.into_iter().map(Spanned::into_inner).collect(),
            logins: login.into_iter().map(Spanned::into_inner).collect(),
            access_keys: access_key.into_iter().map(Spanned::into_inner).collect(),
            transform,
            traces,
        })
    }

    /// Whether external key stores are served on a listener: on those that want certificates of their
    /// callers, if there are some, and else on all.
    pub fn has_stores(&self, listener: &GatewayListener) -> bool {
        let wants_certificates = |one: &GatewayListener| one.client_authorities.is_some();
        !self.xks.is_empty()
            && (wants_certificates(listener) || !self.listeners.iter().any(wants_certificates))
    }

    /// Makes relative paths those of a directory.
    fn place_in(&mut self, dir: &Path) {
        self.client = dir.join(&self.client);
        self.kms.iter_mut().for_each(|kms| kms.socket = dir.join(&kms.socket));
        self.access_keys.iter_mut().for_each(|key| key.place_in(dir));
        self.logins.iter_mut().for_each(|login| login.place_in(dir));
        for listener in &mut self.listeners {
            listener.files().for_each(|path| *path = dir.join(&*path));
        }
        for kmip in &mut self.kmip {
            kmip.files().into_iter().for_each(|path| *path = dir.join(&*path));
        }
    }
}

impl GatewayLimits {
    fn check(&self) -> Result<()> {
        let counts = [
            ("requests_at_once", self.requests_at_once as u64),
            ("waiting_per_token", self.waiting_per_token as u64),
            ("connections", self.connections as u64),
            ("request_seconds", self.request_seconds),
            ("tokens_of_logins", self.tokens_of_logins as u64),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::misuse(format!(
                "{name} under [limits] is 0: the gateway could serve nobody; write at least 1"
            )));
        }
        if self.memory_mib < MIN_MEMORY_MIB {
            return Err(Error::misuse(format!(
                "memory_mib under [limits] is {}: one request of 32 MiB, and what is computed of it, would not fit into the two thirds that a \
                 token may have; write at least {MIN_MEMORY_MIB}",
                self.memory_mib
            )));
        }
        Ok(())
    }
}

/// The names that are taken. The audit logs of the nodes tell users of the gateway apart by them.
#[derive(Default)]
struct Names<'t>(Vec<&'t str>);

impl<'t> Names<'t> {
    fn take(&mut self, name: &'t str) -> Result<()> {
        check_name("token, role of a login, access key, kms or client of kmip", name)?;
        if self.0.contains(&name) {
            return Err(Error::misuse(
                "another token, role of a login, access key, kms or client of kmip has this name, and the audit logs of the nodes could not tell them apart; take another one",
            ));
        }
        self.0.push(name);
        Ok(())
    }
}

fn placed(error: Error, line: usize, entry: &str) -> Error {
    Error::misuse(format!("line {line}, {entry}: {error}"))
}
