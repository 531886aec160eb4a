//! Logins: what tokens of an issuer (OIDC, Kubernetes) have to say, so that a program gets a token of the
//! gateway for them, and the permissions that it has then.

mod role;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, Result, check_name};

pub use role::GatewayLoginRole;

/// The most characters of a path, and of an issuer and its URLs.
const MOST_OF_PATH: usize = 128;
const MOST_OF_URL: usize = 512;
/// How far clocks may differ, in seconds, if nothing else is said.
const LEEWAY: u64 = 30;
/// Where an issuer says what it is (OpenID Connect Discovery 1.0, section 4).
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// An issuer of identity tokens, and who may log in with them (`[[login]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayLogin {
    /// The path of its mount, as in Vault: programs log in at `/v1/auth/PATH/login`.
    pub path: String,
    /// What its tokens are.
    pub kind: LoginKind,
    /// The issuer: the claim `iss` of its tokens, exactly.
    pub issuer: String,
    /// A file with the issuer's public keys: a JWKS, or PEM (`BEGIN PUBLIC KEY`). It is read again when it
    /// has changed. Of `keys_file`, `keys_url` and `discovery` one is needed.
    pub keys_file: Option<PathBuf>,
    /// The `https` address of the issuer's JWKS.
    pub keys_url: Option<String>,
    /// Whether to ask the issuer where its keys are: at the address `issuer`, by OpenID Connect Discovery.
    #[serde(default)]
    pub discovery: bool,
    /// A file with certificates in PEM. The server that is asked for the keys has to have a certificate from
    /// one of these authorities. Needed with `keys_url` and `discovery`.
    pub authorities: Option<PathBuf>,
    /// The algorithms that its tokens may be signed with: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`,
    /// `PS512`, `ES256`, `ES384` and `EdDSA` (Ed25519). All of them if absent.
    #[serde(default = "all_algorithms")]
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Seconds by which the issuer's clock and the gateway's may differ, at most 300; 30 if absent.
    #[serde(default = "leeway")]
    pub leeway_seconds: u64,
    /// The role of a login that names none.
    pub default_role: Option<String>,
    /// Its roles (`[[login.role]]`).
    #[serde(rename = "role")]
    pub roles: Vec<GatewayLoginRole>,
}

/// What tokens an issuer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginKind {
    /// Any JWT.
    Jwt,
    /// Tokens of service accounts, from a Kubernetes API server.
    Kubernetes,
}

/// A signature algorithm of JWS with a public key. There is none with a secret, and no `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SignatureAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// The same with SHA-384.
    #[serde(rename = "RS384")]
    Rs384,
    /// The same with SHA-512.
    #[serde(rename = "RS512")]
    Rs512,
    /// RSASSA-PSS with SHA-256.
    #[serde(rename = "PS256")]
    Ps256,
    /// The same with SHA-384.
    #[serde(rename = "PS384")]
    Ps384,
    /// The same with SHA-512.
    #[serde(rename = "PS512")]
    Ps512,
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// ECDSA over P-384 with SHA-384.
    #[serde(rename = "ES384")]
    Es384,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl SignatureAlgorithm {
    /// All of them, with their names in the header of a token.
    pub const ALL: [(SignatureAlgorithm, &'static str); 9] = [
        (SignatureAlgorithm::Rs256, "RS256"),
        (SignatureAlgorithm::Rs384, "RS384"),
        (SignatureAlgorithm::Rs512, "RS512"),
        (SignatureAlgorithm::Ps256, "PS256"),
        (SignatureAlgorithm::Ps384, "PS384"),
        (SignatureAlgorithm::Ps512, "PS512"),
        (SignatureAlgorithm::Es256, "ES256"),
        (SignatureAlgorithm::Es384, "ES384"),
        (SignatureAlgorithm::EdDsa, "EdDSA"),
    ];

    /// The algorithm with a name.
    pub fn named(name: &str) -> Option<SignatureAlgorithm> {
        SignatureAlgorithm::ALL.iter().find(|(_, of)| *of == name).map(|(algorithm, _)| *algorithm)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        SignatureAlgorithm::ALL.iter().find(|(of, _)| *of == self).map_or("", |(_, name)| name)
    }
}

/// Where the keys of an issuer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysPlace<'l> {
    /// In a file.
    File(&'l Path),
    /// At an address.
    Url {
        /// The `https` address of a JWKS.
        url: &'l str,
        /// Whose certificates its server may have: a file in PEM.
        authorities: &'l Path,
    },
    /// Where the issuer says.
    Discovery {
        /// The issuer, which is an `https` address.
        issuer: &'l str,
        /// Whose certificates the servers may have: a file in PEM.
        authorities: &'l Path,
    },
}

fn all_algorithms() -> Vec<SignatureAlgorithm> {
    SignatureAlgorithm::ALL.map(|(algorithm, _)| algorithm).into()
}

fn leeway() -> u64 {
    LEEWAY
}

impl GatewayLogin {
    /// How far clocks may differ, at most.
    pub const MOST_LEEWAY_SECONDS: u64 = 300;

    /// Where its keys are. `None` if the settings name no place, or several: then they were not checked.
    pub fn keys_place(&self) -> Option<KeysPlace<'_>> {
        let authorities = self.authorities.as_deref();
        match (&self.keys_file, &self.keys_url, self.discovery) {
            (Some(file), None, false) => Some(KeysPlace::File(file)),
            (None, Some(url), false) => Some(KeysPlace::Url { url, authorities: authorities? }),
            (None, None, true) => {
                Some(KeysPlace::Discovery { issuer: &self.issuer, authorities: authorities? })
            }
            _ => None,
        }
    }

    /// The address at which an issuer says where its keys are.
    pub fn discovery_url(issuer: &str) -> String {
        [issuer.trim_end_matches('/'), DISCOVERY].concat()
    }

    /// The role with a name.
    pub fn role(&self, name: &str) -> Option<&GatewayLoginRole> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// Whom it lets in as a role: all settings but what such a program may do, and for how long.
    pub fn admission(&self, role: &GatewayLoginRole) -> GatewayLogin {
        GatewayLogin { roles: vec![role.admission()], default_role: None, ..self.clone() }
    }

    /// Refuses what lets nobody in, and what lets in more than anybody can want.
    pub(super) fn check(&self) -> Result<()> {
        self.check_path()?;
        if self.issuer.is_empty() || self.issuer.len() > MOST_OF_URL {
            return Err(Error::misuse(format!(
                "issuer has to be the claim `iss` of its tokens, with 1 to {MOST_OF_URL} bytes"
            )));
        }
        self.check_keys()?;
        if self.algorithms.is_empty() {
            return Err(Error::misuse(
                "algorithms is empty: no token could be verified; leave it out, or name some",
            ));
        }
        if self.leeway_seconds > GatewayLogin::MOST_LEEWAY_SECONDS {
            return Err(Error::misuse(format!(
                "leeway_seconds is {}, and may be {} at most: set the clocks right (NTP)",
                self.leeway_seconds,
                GatewayLogin::MOST_LEEWAY_SECONDS
            )));
        }
        if self.roles.is_empty() {
            return Err(Error::misuse("it has no roles: nobody could log in; add a [[login.role]]"));
        }
        for role in &self.roles {
            role.check(self.kind).map_err(|e| Error::misuse(format!("the role {:?}: {e}", role.name)))?;
        }
        match &self.default_role {
            Some(name) if self.role(name).is_none() => Err(Error::misuse(format!(
                "default_role is {name:?}, and it has no [[login.role]] of this name"
            ))),
            _ => Ok(()),
        }
    }

    fn check_path(&self) -> Result<()> {
        let parts: Vec<&str> = self.path.split('/').collect();
        if self.path.len() > MOST_OF_PATH || parts.iter().any(|part| check_name("path", part).is_err()) {
            return Err(Error::misuse(format!(
                "its path has to be as jwt or team/jwt: at most {MOST_OF_PATH} letters, digits, '-', '_' and '.', with '/' between parts"
            )));
        }
        match parts[0] {
            "token" => {
                Err(Error::misuse("its path is that of tokens (auth/token); take another one, such as jwt"))
            }
            _ => Ok(()),
        }
    }

    fn check_keys(&self) -> Result<()> {
        let places = [self.keys_file.is_some(), self.keys_url.is_some(), self.discovery]
            .iter()
            .filter(|is| **is)
            .count();
        if places != 1 {
            return Err(Error::misuse(
                "the issuer's keys have to be in one place: write keys_file, or keys_url, or discovery = true",
            ));
        }
        let url = if self.discovery { Some(("issuer", &self.issuer)) } else { None };
        let Some((name, url)) = url.or(self.keys_url.as_ref().map(|url| ("keys_url", url))) else {
            return match self.authorities {
                None => Ok(()),
                Some(_) => Err(Error::misuse("authorities is of no use with keys_file: no server is asked")),
            };
        };
        let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{}|#@".contains(c);
        let rest = url.strip_prefix("https://").unwrap_or_default();
        if rest.is_empty() || rest.starts_with('/') || url.len() > MOST_OF_URL || !url.chars().all(is_plain) {
            return Err(Error::misuse(format!(
                "{name} has to be an address as https://issuer.example/keys, to be asked for keys: without https anybody on the way could \
                 give others"
            )));
        }
        if self.discovery && url.contains('?') {
            return Err(Error::misuse(
                "issuer has a '?', and no address for discovery can be made of it; write keys_url",
            ));
        }
        match self.authorities {
            Some(_) => Ok(()),
            None => Err(Error::misuse(
                "authorities is missing: name the file with the certificates (PEM) that the issuer's server is known by. Those that a system \
                 trusts are in a file such as /etc/ssl/certs/ca-certificates.crt",
            )),
        }
    }

    /// Makes relative paths those of a directory.
    pub(super) fn place_in(&mut self, dir: &Path) {
        for path in [&mut self.keys_file, &mut self.authorities].into_iter().flatten() {
            *path = dir.join(&*path);
        }
    }
}
