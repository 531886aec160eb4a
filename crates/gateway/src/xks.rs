//! The proxy API of external key stores of AWS KMS (XKS Proxy API, version 1.0.3 of its specification): KMS
//! encrypts its data keys under keys of the nodes.
//!
//! ```text
//! route.rs (which store, what is asked) -> signed.rs, replays.rs (who asks) -> requests.rs (read)
//!     -> here (whether the caller may) -> data.rs (keys.rs, sealed.rs), health.rs -> answer, or error.rs
//! ```
//!
//! A ciphertext is bound to its additional data and to the version of the key (`sealed.rs`). No plaintext is
//! in a log. The log has what KMS says of the one who asked it, as the specification wants it.

mod data;
mod error;
#[cfg(test)]
mod fuzz;
mod health;
mod keys;
mod replays;
mod requests;
mod route;
mod sealed;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::middleware::{self, Next};
use polyclave_api::Right;
use polyclave_config::{GatewayXks, GatewayXksKey};
use serde::Serialize;
use time::OffsetDateTime;

use crate::counts::Counts;
use crate::look::Look;
use crate::queue::Queue;
use crate::signed::{self, Rules};
use crate::tokens::{AccessKey, Tokens};
use crate::vault::json_response;
use error::{Kind, Result};
pub(crate) use keys::Current;
use keys::Nodes;
use replays::Replays;
use requests::{Decrypt, Encrypt, Metadata};
use route::{Of, Operation, Route};
use sealed::{Encoded, Opened};

/// What signatures have to be ("Authentication", and appendix A of the specification).
const RULES: Rules = Rules { service: "kms-xks-proxy", within: replays::WITHIN };
/// More than an answer takes, so that no copy of it stays behind.
const ROOM: usize = 16 << 10;

/// What requests are answered with.
pub(crate) struct Xks {
    pub(crate) stores: Vec<Store>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queue: Queue,
    pub(crate) look: Arc<Look>,
    pub(crate) counts: Arc<Counts>,
    /// What the cluster is called in answers about its health.
    pub(crate) cluster: String,
    pub(crate) current: Current,
}

/// An external key store.
pub(crate) struct Store {
    settings: GatewayXks,
    replays: Replays,
}

impl Store {
    pub(crate) fn new(settings: &GatewayXks) -> Store {
        Store { settings: settings.clone(), replays: Replays::default() }
    }
}

/// What the log says of a request.
#[derive(Default)]
struct Noted {
    access_key: String,
    key: String,
    metadata: Metadata,
}

/// Adds the stores to other pages. A path is one of a store if `/kms/xks/v1` is in it.
pub(crate) fn with_stores(pages: Router, xks: Xks) -> Router {
    match xks.stores.is_empty() {
        true => pages,
        false => pages.layer(middleware::from_fn_with_state(Arc::new(xks), pick)),
    }
}

async fn pick(State(xks): State<Arc<Xks>>, request: Request, next: Next) -> Response<Body> {
    match route::is_of_a_store(request.uri().path()) {
        true => xks.answer(request).await,
        false => next.run(request).await,
    }
}

impl Xks {
    async fn answer(&self, request: Request) -> Response<Body> {
        let began = Instant::now();
        let mut noted = Noted::default();
        let path = request.uri().path().to_owned();
        let paths = self.stores.iter().map(|store| store.settings.path.as_str());
        let route = Route::of(request.method().as_str(), &path, paths);
        let operation = route.as_ref().map_or("none", |route| route.operation.name());
        let outcome = match route {
            Ok(route) => self.serve_in_time(&route, request, &mut noted).await,
            Err(exception) => Err(exception),
        };
        let took = began.elapsed();
        let (response, outcome, why) = match outcome {
            Ok(response) => (response, "200", String::new()),
            Err(exception) => (exception.response(), exception.kind.name(), exception.why()),
        };
        self.counts.request(("xks", operation), outcome.into(), took);
        let Noted { access_key, key, metadata } = noted;
        let Metadata { request, kms_operation, principal, kms_key } = metadata.shortened();
        let took_ms = took.as_millis();
        // What KMS was told may have any characters: as `?` has it, a line stays one line.
        if outcome == "200" {
            tracing::info!(
                access_key,
                operation,
                key,
                ?request,
                ?kms_operation,
                ?principal,
                ?kms_key,
                took_ms,
                "answered"
            );
        } else {
            tracing::warn!(
                access_key,
                operation,
                key,
                ?request,
                ?kms_operation,
                ?principal,
                ?kms_key,
                took_ms,
                error = outcome,
                ?why,
                "refused"
            );
        }
        response
    }

    async fn serve_in_time(
        &self,
        route: &Route<'_>,
        request: Request,
        noted: &mut Noted,
    ) -> Result<Response<Body>> {
        let store = self.stores.get(route.store).ok_or_else(|| Kind::InvalidUriPath.exception("no store"))?;
        let within = Duration::from_millis(store.settings.answer_ms);
        match tokio::time::timeout(within, self.serve(store, route, request, noted)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Kind::DependencyTimeout.exception("the nodes did not answer in time")),
        }
    }

    async fn serve(
        &self,
        store: &Store,
        route: &Route<'_>,
        request: Request,
        noted: &mut Noted,
    ) -> Result<Response<Body>> {
        let signed = signed::read(&self.tokens, &RULES, request).await?;
        let access_key = &signed.access_key;
        noted.access_key = access_key.entry.name.clone();
        let regions = &store.settings.regions;
        if !regions.is_empty() && !regions.contains(&signed.region) {
            let why = "the signature is for a region from which this external key store may not be asked";
            return Err(Kind::AuthenticationFailed.exception(why));
        }
        store.replays.check(&signed, OffsetDateTime::now_utc())?;
        let answer = match route.of {
            Of::Store => {
                noted.metadata = requests::read_health(&signed.body)?;
                answered(&health::health(&self.look, &self.cluster)?)
            }
            Of::Key(id) => {
                let key = store.settings.keys.iter().find(|key| key.id == id);
                let key = key.ok_or_else(|| Kind::KeyNotFound.exception("there is no key with this id"))?;
                noted.key.clone_from(&key.key);
                self.of_key(access_key, (route.operation, key), &signed.body, &mut noted.metadata).await?
            }
        };
        signed::check_not_revoked(&self.tokens, access_key)?;
        Ok(answer)
    }

    async fn of_key(
        &self,
        access_key: &AccessKey,
        (operation, entry): (Operation, &GatewayXksKey),
        body: &[u8],
        metadata: &mut Metadata,
    ) -> Result<Response<Body>> {
        let key = entry.key.as_str();
        let may = |right| access_key.entry.allows(right, key);
        let nodes = Nodes { asker: &access_key.asker, queue: &self.queue };
        match operation {
            Operation::GetHealthStatus => Err(Kind::InvalidUriPath.exception("health is not of a key")),
            Operation::GetKeyMetadata => {
                *metadata = requests::read_metadata(body)?;
                check_right(may(Right::Encrypt) || may(Right::Decrypt))?;
                Ok(answered(&keys::metadata(&self.current.shown(nodes, key).await?)))
            }
            Operation::Encrypt => {
                let asked = Encrypt::read(body, metadata)?;
                check_caller(entry, metadata)?;
                // A value of integrity takes a decryption.
                check_right(may(Right::Encrypt) && (!asked.integrity || may(Right::Decrypt)))?;
                Ok(answered(&data::encrypt((&self.current, nodes), key, asked).await?))
            }
            Operation::Decrypt => {
                let asked = Decrypt::read(body, metadata)?;
                check_caller(entry, metadata)?;
                check_right(may(Right::Decrypt))?;
                let plaintext = Encoded(data::decrypt((&self.current, nodes), key, asked).await?);
                Ok(answered(&Opened { plaintext }))
            }
        }
    }
}

/// Whether the key is for the one who asked KMS. KMS says that, and vouches for it with its signature.
fn check_caller(entry: &GatewayXksKey, metadata: &Metadata) -> Result<()> {
    let denied = || {
        Kind::AccessDenied
            .exception("the external key store does not allow this principal or KMS key the use of this key")
    };
    if entry.allows(&metadata.principal, &metadata.kms_key) { Ok(()) } else { Err(denied()) }
}

fn check_right(may: bool) -> Result<()> {
    let denied =
        || Kind::AccessDenied.exception("the access key has no right to this operation with this key");
    if may { Ok(()) } else { Err(denied()) }
}

fn answered(document: &impl Serialize) -> Response<Body> {
    json_response(StatusCode::OK, document, ROOM, None)
}
