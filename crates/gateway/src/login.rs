//! Logins: an identity token of an issuer (a JWT of OIDC, or of a Kubernetes service account) is verified,
//! and a role of `gateway.toml` says whether its holder may log in. What such a program may do then, and for
//! how long, is in `tokens/given.rs`.
//!
//! ```text
//! compact.rs (the parts of a token), strict.rs (JSON without two meanings)
//!     |
//! public_keys.rs (JWKS, PEM; signatures, by ring) <- source.rs (a file, or an issuer) <- kept.rs (for how long), fetch.rs (HTTPS)
//!     |
//! claims.rs (times, audience, whose it is), single_use.rs; failures.rs (how often somebody may be wrong)
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

mod claims;
mod compact;
mod failures;
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

use std::sync::Arc;
use std::time::SystemTime;

use polyclave_config::{GatewayLogin, GatewayLoginRole};

use crate::Result;
pub(crate) use claims::Identity;
pub(crate) use failures::Failures;
pub(crate) use refused::Refused;
use single_use::SingleUse;
use source::Source;

/// An issuer whose tokens are taken, as the file says.
pub(crate) struct Login {
    pub(crate) settings: GatewayLogin,
    source: Arc<Source>,
    used: Arc<SingleUse>,
}

impl Login {
    /// The login of some settings. What the one of before knows of the same keys, and which tokens were used
    /// under its path, is kept.
    pub(crate) fn new(settings: &GatewayLogin, before: Option<&Login>) -> Result<Login> {
        let same = before.filter(|before| before.settings.keys_place() == settings.keys_place());
        let source = match same {
            Some(before) => before.source.clone(),
            None => Arc::new(Source::new(settings)?),
        };
        let used =
            before.map_or_else(|| Arc::new(SingleUse::new(SystemTime::now())), |before| before.used.clone());
        Ok(Login { settings: settings.clone(), source, used })
    }

    /// How many keys of the issuer can be used, or why there are none. The issuer is asked for them, if they
    /// are not in a file.
    pub(crate) async fn keys(&self) -> std::result::Result<usize, String> {
        Ok(self.source.keys(|_| true).await?.usable())
    }

    /// Whose token it is, if it is a good one that may be used for a role.
    pub(crate) async fn verify(
        &self,
        role: &GatewayLoginRole,
        token: &str,
    ) -> std::result::Result<Identity, Refused> {
        let token = compact::Compact::parse(token)?;
        if !self.settings.algorithms.contains(&token.algorithm) {
            return Err(Refused::AlgorithmNotAllowed(token.algorithm.name()));
        }
        let are_needed = |keys: &public_keys::PublicKeys| keys.knows(token.key_id.as_deref());
        // Why is in the log: a stranger need not know the issuer's server.
        let keys = self.source.keys(are_needed).await.map_err(|_| Refused::NoKeys)?;
        keys.verify(&token)?;
        let now = SystemTime::now();
        let claims = strict::object(&token.claims()?).map_err(|flaw| Refused::Json("claims", flaw))?;
        let identity = claims::judge(&claims, &self.settings, role, now)?;
        if role.single_use {
            self.used.spend(&claims, &self.settings, now)?;
        }
        Ok(identity)
    }
}
