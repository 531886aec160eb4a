//! Vault's API, as far as programs that use the transit engine ask for it.
//!
//! ```text
//! route.rs (what is asked) -> here (who asks, and whether it may) -> keys.rs, messages.rs, transform.rs, local.rs, token.rs, health.rs -> answer.rs
//! ```

mod answer;
mod body;
mod ciphertext;
mod fields;
mod health;
mod keys;
mod local;
mod messages;
mod route;
mod token;
mod transform;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Response};
use axum::routing::any;
use polyclave_config::GatewayToken;
use polyclave_transport::wire::Right;
use tokio::sync::Semaphore;

use crate::counts::Counts;
use crate::failure::Failure;
use crate::look::Look;
use crate::queue::Queue;
use crate::tokens::{Token, Tokens};
use crate::transform::Transformations;
use crate::versions::Versions;
use answer::Answer;
use fields::Fields;
use route::Call;

/// What requests are answered with.
pub(crate) struct Vault {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queue: Queue,
    pub(crate) versions: Versions,
    pub(crate) look: Arc<Look>,
    pub(crate) counts: Arc<Counts>,
    /// In MiB.
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) memory_mib: u32,
    pub(crate) within: Duration,
    pub(crate) cluster: Cluster,
    pub(crate) transformations: Transformations,
}

/// What is told of the cluster.
pub(crate) struct Cluster {
    pub(crate) id: [u8; 16],
    pub(crate) protocol: String,
}

/// The pages of the API.
pub(crate) fn pages(vault: Arc<Vault>) -> Router {
    Router::new().route("/v1/sys/health", any(health::answer)).fallback(answer).with_state(vault)
}

async fn answer(State(vault): State<Arc<Vault>>, request: Request) -> Response<Body> {
    let began = Instant::now();
    let mut noted = Noted::default();
    let outcome = match tokio::time::timeout(vault.within, vault.serve(request, &mut noted)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Late),
    };
    let failed = outcome.as_ref().err().map(ToString::to_string);
    let response = outcome.unwrap_or_else(Answer::Failed).into_response();
    let (status, took) = (response.status().as_u16(), began.elapsed());
    vault.counts.request(("transit", noted.operation), status.to_string(), took);
    let Noted { token, operation, key } = noted;
    let took_ms = took.as_millis();
    match failed {
        None => tracing::info!(token, operation, key, status, took_ms, "answered"),
        Some(why) => tracing::warn!(token, operation, key, status, took_ms, why, "refused"),
    }
    response
}

/// What the log and the counts say of a request.
struct Noted {
    token: String,
    operation: &'static str,
    key: String,
}

impl Default for Noted {
    fn default() -> Noted {
        Noted { token: "-".into(), operation: "none", key: String::new() }
    }
}

/// Who asks, while it is asked: the token may be revoked at any moment.
pub(crate) struct Caller {
    text: zeroize::Zeroizing<String>,
    hash: [u8; 32],
    token: Arc<Token>,
}

impl Vault {
    async fn serve(&self, request: Request, noted: &mut Noted) -> Result<Answer, Failure> {
        let (head, body) = request.into_parts();
        let admitted = self.admit(&head.headers).and_then(|caller| {
            noted.token = caller.token.entry.name.clone();
            refuse_what_is_ignored_elsewhere(&head.headers)?;
            let call = Call::of(&head.method, &head.uri)?;
            (noted.operation, noted.key) = (call.operation(), call.key().to_owned());
            caller.allow(self, &call)?;
            Ok((caller, call))
        });
        let (caller, call) = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => {
                body::drain(body).await;
                return Err(failure);
            }
        };
        let (bytes, _memory) = body::read(self, &head.headers, body).await?;
        let fields = Arc::new(Fields::parse(&bytes)?);
        drop(bytes);
        let answer = self.call(&caller, &call, &fields).await?;
        // What was computed for a token that was revoked meanwhile is not given away.
        caller.allow(self, &call)?;
        Ok(answer.with_unknown(fields.unknown(call.fields())))
    }

    async fn call(&self, caller: &Caller, call: &Call, fields: &Arc<Fields>) -> Result<Answer, Failure> {
        let Call { what, .. } = call;
        match what {
            route::What::ListKeys => keys::list(self, caller).await,
            route::What::CreateKey(key) => keys::create(self, caller, key, fields).await,
            route::What::ReadKey(key) => keys::read(self, caller, key).await,
            route::What::DeleteKey(key) => keys::delete(self, caller, key).await,
            route::What::RotateKey(key) => keys::rotate(self, caller, key).await,
            route::What::ConfigureKey(key) => keys::configure(self, caller, key, fields).await,
            route::What::Encrypt(key) => messages::encrypt(self, (caller, call), key, fields).await,
            route::What::Decrypt(key) => messages::decrypt(self, (caller, call), key, fields).await,
            route::What::Rewrap(key) => messages::rewrap(self, (caller, call), key, fields).await,
            route::What::DataKey { key, shown } => {
                messages::data_key(self, (caller, call), (key, *shown), fields).await
            }
            route::What::Transform { direction, role } => {
                transform::transform(self, caller, (*direction, role), fields).await
            }
            route::What::Random { bytes } => local::random(bytes.as_deref(), fields),
            route::What::Hash { algorithm } => local::hash(algorithm.as_deref(), fields),
            route::What::LookUpSelf => Ok(token::look_up(caller)),
            route::What::RenewSelf => Ok(token::renew(caller)),
            route::What::Refused(why) => Err(Failure::Bad((*why).into())),
        }
    }

    /// Who asks.
    fn admit(&self, headers: &HeaderMap) -> Result<Caller, Failure> {
        let bearer = || headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ");
        let given = headers.get("x-vault-token").and_then(|value| value.to_str().ok()).or_else(bearer);
        let text = given.filter(|text| !text.is_empty()).ok_or(Failure::Stranger)?;
        let hash = GatewayToken::hash_of(text);
        let token = self.tokens.find(&hash).ok_or(Failure::Stranger)?;
        Ok(Caller { text: text.to_owned().into(), hash, token })
    }
}

impl Caller {
    /// Whether the token may do it, as the file says now.
    pub(crate) fn allow(&self, vault: &Vault, call: &Call) -> Result<(), Failure> {
        let token = vault.tokens.find(&self.hash).ok_or(Failure::Stranger)?;
        match call.right() {
            Some((right, None)) if token.entry.rights.contains(&right) => Ok(()),
            Some((right, Some(key))) if token.entry.allows(right, key) => Ok(()),
            None => Ok(()),
            Some(_) => Err(Failure::NotAllowed),
        }
    }
}

impl Caller {
    /// Whether the token may do something with a key that the request's body names, as the file says now.
    fn allow_key(&self, vault: &Vault, right: Right, key: &str) -> Result<(), Failure> {
        let token = vault.tokens.find(&self.hash).ok_or(Failure::Stranger)?;
        if token.entry.allows(right, key) { Ok(()) } else { Err(Failure::NotAllowed) }
    }
}

/// Headers that change what a request means. Whoever sends them must not get what they did not ask for.
fn refuse_what_is_ignored_elsewhere(headers: &HeaderMap) -> Result<(), Failure> {
    let set = |name: &str| headers.get(name).is_some_and(|value| !value.is_empty());
    if set("x-vault-wrap-ttl") {
        return Err(Failure::Bad("this gateway does not wrap responses (X-Vault-Wrap-TTL)".into()));
    }
    let namespace = headers.get("x-vault-namespace").map(|value| value.as_bytes());
    match namespace.is_none_or(|name| matches!(name, b"" | b"/" | b"root" | b"root/")) {
        true => Ok(()),
        false => Err(Failure::Bad(
            "this gateway has no namespaces (X-Vault-Namespace); what keys a token may use, gateway.toml says".into(),
        )),
    }
}
