//! Logins: an identity token of an issuer (a JWT of OIDC, or of a Kubernetes service account) is verified,
//! and a role of `gateway.toml` says whether its holder may log in. What such a program may do then, and for
//! how long, is in `tokens/given.rs`.
//!
//! ```text
//! compact.rs (the parts of a token), strict.rs (JSON without two meanings)
//!     |
//! public_keys.rs (JWKS, PEM; signatures, by ring) <- source.rs (a file, or an issuer) <- watched.rs (files that change),
//!     |                                                                        kept.rs (for how long), fetch.rs (HTTPS)
//! claims.rs (times, audience, whose it is), single_use.rs
//!
//! allowance.rs (how often somebody may be wrong, and may log in), turns.rs (when a signature is verified)
//! ```
//!
//! Signatures are verified by ring, which TLS uses here, too. A library for JWTs would bring a second set of
//! cryptography (`jsonwebtoken` has `aws-lc-rs`, or `rsa` and the curves of RustCrypto), and would leave
//! what is strict here to us: two members of one name, `crit`, limits, and errors that say what is wrong
//! (RFC 8725).
//!
//! Nothing of a token is believed before its signature was verified, except which algorithm and which key are
//! meant. The algorithm has to be one that the file allows, and it has to be one of the key's kind. There is
//! no algorithm with a secret, so no public key can be taken for one.

mod allowance;
mod claims;
mod compact;
mod fetch;
#[cfg(test)]
mod fuzz;
mod kept;
mod public_keys;
mod refused;
mod single_use;
mod source;
mod strict;
#[cfg(test)]
mod tests;
mod turns;
mod watched;

use std::sync::Arc;
use std::time::SystemTime;

use polyclave_config::{GatewayLogin, GatewayLoginRole};

use crate::Result;
pub(crate) use allowance::Allowance;
pub(crate) use claims::Identity;
pub(crate) use refused::Refused;
use single_use::{SingleUse, Unused};
use source::Source;
pub(crate) use turns::{Line, Turns};

/// An issuer whose tokens are taken, as the file says.
pub(crate) struct Login {
    pub(crate) settings: GatewayLogin,
    source: Arc<Source>,
    used: Arc<SingleUse>,
}

/// A good token that may be used for a role.
pub(crate) struct Verified {
    pub(crate) identity: Identity,
    /// What is spent if it may be used once.
    once: Option<Unused>,
}

impl Login {
    /// The login of some settings. What the one of before, under the same path, knows of the same keys is
    /// kept, and which tokens of the same issuer were used.
    pub(crate) fn new(settings: &GatewayLogin, before: Option<&Login>) -> Result<Login> {
        let same = before.filter(|before| before.settings.keys_place() == settings.keys_place());
        let source = match same {
            Some(before) => before.source.clone(),
            None => Arc::new(Source::new(settings)?),
        };
        let of_issuer = before.filter(|before| before.settings.issuer == settings.issuer);
        let new = || Arc::new(SingleUse::new(SystemTime::now()));
        let used = of_issuer.map_or_else(new, |before| before.used.clone());
        Ok(Login { settings: settings.clone(), source, used })
    }

    /// How many keys of the issuer can be used, or why there are none. The issuer is asked for them, if they
    /// are not in a file.
    pub(crate) async fn keys(&self) -> std::result::Result<usize, String> {
        Ok(self.source.keys(|_| true).await?.usable())
    }

    /// Whose token it is, if it is a good one that may be used for a role. It is not spent yet.
    pub(crate) async fn verify(
        &self,
        role: &GatewayLoginRole,
        token: &str,
        line: Line<'_>,
    ) -> std::result::Result<Verified, Refused> {
        let token = compact::Compact::parse(token)?;
        if !self.settings.algorithms.contains(&token.algorithm) {
            return Err(Refused::AlgorithmNotAllowed(token.algorithm.name()));
        }
        let are_needed = |keys: &public_keys::PublicKeys| keys.knows(token.key_id.as_deref());
        // Why is in the log: a stranger need not know the issuer's server.
        let keys = self.source.keys(are_needed).await.map_err(|_| Refused::NoKeys)?;
        {
            let _turn = line.turn().await?;
            keys.verify(&token)?;
        }
        let claims = strict::object(&token.claims()?).map_err(|flaw| Refused::Json("claims", flaw))?;
        let identity = claims::judge(&claims, &self.settings, role, SystemTime::now())?;
        let once = match role.single_use {
            true => Some(self.used.look_at(&claims, &self.settings, &role.name)?),
            false => None,
        };
        Ok(Verified { identity, once })
    }

    /// Uses a token that was verified: it cannot be used again, if it may be used once.
    pub(crate) fn spend(&self, verified: Verified) -> std::result::Result<Identity, Refused> {
        if let Some(unused) = verified.once {
            self.used.spend(unused, SystemTime::now())?;
        }
        Ok(verified.identity)
    }
}
