//! Requests that their callers sign with an access key, for every API that has them: who asks, and what was
//! signed. Nothing of a body is looked at before its signature is known to be good.

mod body;
pub(crate) mod json;
pub(crate) mod sigv4;

use std::sync::Arc;

use axum::extract::Request;
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use crate::connections::Peer;
use crate::failure::Failure;
use crate::tokens::{AccessKey, Tokens};
use sigv4::{Claim, Signed, Unsigned};

/// What the signatures of an API have to be.
pub(crate) struct Rules {
    /// The service of their scope.
    pub(crate) service: &'static str,
    /// How far their time may be from that of this machine.
    pub(crate) within: Duration,
}

/// A request that somebody who has the secret of an access key has signed.
pub(crate) struct SignedRequest {
    pub(crate) access_key: Arc<AccessKey>,
    /// The region of the scope.
    pub(crate) region: String,
    pub(crate) at: OffsetDateTime,
    pub(crate) signature: [u8; 32],
    pub(crate) body: Zeroizing<Vec<u8>>,
}

/// Why a request is not answered.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Its signature.
    Unsigned(Unsigned),
    /// Anything else.
    Failure(Failure),
}

impl From<Unsigned> for Refused {
    fn from(unsigned: Unsigned) -> Refused {
        Refused::Unsigned(unsigned)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::Failure(failure)
    }
}

/// Reads a request to its end, and verifies its signature.
pub(crate) async fn read(tokens: &Tokens, rules: &Rules, request: Request) -> Result<SignedRequest, Refused> {
    let (head, body) = request.into_parts();
    let claim = Claim::of(&head.headers)?;
    // Nothing of a body is read for a caller that shows no known id.
    let access_key = tokens.find_access_key(claim.id).ok_or(Unsigned::Unknown)?;
    let at = claim.check_time(OffsetDateTime::now_utc(), rules.within)?;
    let body = body::read(body).await?;
    let signed = Signed {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        body: &body,
    };
    claim.verify(&access_key.secret, &signed)?;
    if claim.service != rules.service {
        return Err(Unsigned::Wrong.into());
    }
    if let Some(peer) = head.extensions.get::<Peer>() {
        peer.is_known_as(&access_key.asker.name).map_err(|_| Failure::Crowded)?;
    }
    if head.uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(Failure::Bad("no operation has a query".into()).into());
    }
    let (region, signature) = (claim.region.to_owned(), claim.signature);
    Ok(SignedRequest { access_key, region, at, signature, body })
}

/// Refuses what was computed for an access key that was revoked meanwhile: it is not given away.
pub(crate) fn check_not_revoked(tokens: &Tokens, access_key: &AccessKey) -> Result<(), Refused> {
    match tokens.find_access_key(&access_key.entry.id) {
        Some(_) => Ok(()),
        None => Err(Unsigned::Unknown.into()),
    }
}
