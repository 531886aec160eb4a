//! Vault's API, as far as programs that use the transit engine ask for it.
//!
//! ```text
//! route.rs (what is asked) -> here (who asks, and whether it may) -> keys.rs, messages.rs (upsert.rs), codes.rs, transform.rs, local.rs, token.rs, sys.rs -> answer.rs
//! log_in.rs (logins take no token)
//! ```

mod answer;
mod body;
mod ciphertext;
mod codes;
mod data;
mod fields;
#[cfg(test)]
mod fuzz;
mod item;
mod keys;
mod local;
mod log_in;
mod messages;
mod route;
mod sys;
mod token;
mod transform;
mod types;
mod upsert;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use axum::routing::any;
use polyclave_api::Right;
use polyclave_config::GatewayToken;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::bulk::Bulk;
use crate::connections::{Peer, Whose};
use crate::counts::Counts;
use crate::failure::Failure;
use crate::login::{Allowance, Turns};
use crate::look::Look;
use crate::memory::Memory;
use crate::nodes::Asker;
use crate::queue::Queue;
use crate::tokens::{Token, Tokens, token_of};
use crate::transform::Transformations;
use crate::versions::Versions;
use answer::Answer;
pub(crate) use answer::json_response;
use body::Reading;
pub(crate) use data::Data;
use fields::Fields;
use route::Call;

/// Items of a batch that is answered where short requests are.
const FEW: usize = 64;

/// What requests are answered with.
pub(crate) struct Vault {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queue: Queue,
    pub(crate) versions: Versions,
    pub(crate) look: Arc<Look>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) memory: Arc<Memory>,
    /// Where long requests are answered, and batches of more than a [`FEW`] items.
    pub(crate) bulk: Bulk,
    pub(crate) within: Duration,
    /// How often logins failed, and when their tokens are verified.
    pub(crate) failures: Allowance<Whose>,
    pub(crate) turns: Turns,
    pub(crate) cluster: Cluster,
    pub(crate) transformations: Transformations,
}

/// What is told of the cluster.
pub(crate) struct Cluster {
    pub(crate) id: [u8; 16],
    pub(crate) protocol: String,
    pub(crate) nodes: usize,
    /// How many of them it takes.
    pub(crate) needed: usize,
}

impl Cluster {
    fn name(&self) -> String {
        format!("polyclave-{}", self.protocol)
    }

    fn id_as_text(&self) -> String {
        hex::encode(self.id)
    }
}

/// The pages of the API.
pub(crate) fn pages(vault: Arc<Vault>) -> Router {
    let with = |router: Router<Arc<Vault>>, path: &&str| router.route(path, any(sys::answer));
    sys::WITHOUT_TOKEN.iter().fold(Router::new(), with).fallback(answer).with_state(vault)
}

async fn answer(State(vault): State<Arc<Vault>>, request: Request) -> Response<Body> {
    let began = Instant::now();
    let mut noted = Noted::default();
    let outcome = match tokio::time::timeout(vault.within, vault.serve(request, &mut noted)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Late),
    };
    let failed = outcome.as_ref().err().map(ToString::to_string);
    let response = outcome.unwrap_or_else(|failure| Answer::Failed(failure).into_response(None));
    let (status, took) = (response.status().as_u16(), began.elapsed());
    vault.counts.request(("transit", noted.operation), status.to_string(), took);
    let Noted { token, accessor, operation, key } = noted;
    let took_ms = took.as_millis();
    match failed {
        None => tracing::info!(token, accessor, operation, key, status, took_ms, "answered"),
        Some(why) => tracing::warn!(token, accessor, operation, key, status, took_ms, why, "refused"),
    }
    response
}

/// What the log and the counts say of a request.
struct Noted {
    token: String,
    /// What names a token of a login among others of its role.
    accessor: String,
    operation: &'static str,
    key: String,
}

impl Default for Noted {
    fn default() -> Noted {
        Noted { token: "-".into(), accessor: "-".into(), operation: "none", key: String::new() }
    }
}

/// The caller, while its request runs: the token may be revoked at any moment.
pub(crate) struct Caller {
    text: Zeroizing<String>,
    hash: [u8; 32],
    token: Arc<Token>,
    /// Asks for the token, and holds the memory of the request.
    asker: Asker,
}

impl Vault {
    async fn serve(
        self: &Arc<Vault>,
        request: Request,
        noted: &mut Noted,
    ) -> Result<Response<Body>, Failure> {
        if let Some(login) = log_in::asked(request.uri().path()).and_then(|path| self.tokens.login(path)) {
            noted.operation = "log-in";
            let answer = log_in::answer(self, &login, request, noted).await?;
            return Ok(answer.into_response(None));
        }
        let (head, body) = request.into_parts();
        // Nothing of a body is read before.
        let caller = self.admit(&head.headers)?;
        (noted.token, noted.accessor) = (caller.token.entry.name.clone(), token::accessor(&caller.hash));
        if let Some(peer) = head.extensions.get::<Peer>() {
            peer.is_known_as(&caller.asker.name).map_err(|_| Failure::Crowded)?;
        }
        refuse_what_is_ignored_elsewhere(&head.headers)?;
        let call = Call::of(&head.method, &head.uri)?;
        (noted.operation, noted.key) = (call.operation(), call.key().to_owned());
        caller.allow(self, &call)?;
        let (held, turns) = (self.memory.for_one(&caller.asker.name), caller.token.turns.clone());
        let mut reading = Reading::begin(body, call.most_bytes(), held, turns)?;
        let mut admitted = Admitted { vault: self.clone(), caller, call };
        if !reading.is_short().await? {
            let whole = async move {
                let fields = admitted.read(reading).await?;
                admitted.answer(fields).await
            };
            return self.bulk.run(whole).await;
        }
        let fields = admitted.read(reading).await?;
        match fields.items() > FEW {
            true => self.bulk.run(admitted.answer(fields)).await,
            false => admitted.answer(fields).await,
        }
    }

    async fn call(&self, caller: &Caller, call: &Call, fields: &Fields) -> Result<Answer, Failure> {
        let Call { what, .. } = call;
        match what {
            route::What::ListKeys => keys::list(self, caller).await,
            route::What::CreateKey(key) => keys::create(self, caller, key, fields).await,
            route::What::ReadKey(key) => keys::read(self, caller, key).await,
            route::What::DeleteKey(key) => keys::delete(self, caller, key).await,
            route::What::RotateKey(key) => keys::rotate(self, caller, key).await,
            route::What::ConfigureKey(key) => keys::configure(self, caller, key, fields).await,
            route::What::TrimKey(key) => keys::trim(self, caller, key, fields).await,
            route::What::Encrypt(key) => messages::encrypt(self, (caller, call), key, fields).await,
            route::What::Decrypt(key) => messages::decrypt(self, (caller, call), key, fields).await,
            route::What::Rewrap(key) => messages::rewrap(self, (caller, call), key, fields).await,
            route::What::Hmac { key, algorithm } => {
                codes::hmac(self, (caller, call), (key, algorithm.as_deref()), fields).await
            }
            route::What::Verify { key, algorithm } => {
                codes::verify(self, (caller, call), (key, algorithm.as_deref()), fields).await
            }
            route::What::DataKey { key, shown } => {
                messages::data_key(self, (caller, call), (key, *shown), fields).await
            }
            route::What::Transform { direction, role } => {
                transform::transform(self, caller, (*direction, role), fields).await
            }
            route::What::Random { bytes } => local::random(bytes.as_deref(), fields),
            route::What::Hash { algorithm } => local::hash(algorithm.as_deref(), fields),
            route::What::LookUpSelf => Ok(token::look_up(self, caller)),
            route::What::RenewSelf => token::renew(self, caller, fields),
            route::What::RevokeSelf => token::revoke(self, caller),
            route::What::Mounts => Ok(sys::mounts(self)),
            route::What::Capabilities => sys::capabilities(caller, fields),
            route::What::Refused(why) => Err(Failure::Bad((*why).into())),
        }
    }

    /// The caller.
    fn admit(&self, headers: &HeaderMap) -> Result<Caller, Failure> {
        let text = token_of(headers).ok_or(Failure::Stranger)?;
        let hash = GatewayToken::hash_of(text);
        let token = self.tokens.find(&hash).ok_or(Failure::Stranger)?;
        let asker = token.asker.clone();
        Ok(Caller { text: text.to_owned().into(), hash, token, asker })
    }
}

impl Caller {
    /// Whether the token may do it, as the file says now.
    pub(crate) fn allow(&self, vault: &Vault, call: &Call) -> Result<(), Failure> {
        let token = vault.tokens.find(&self.hash).ok_or(Failure::Stranger)?;
        if may(&token, call) { Ok(()) } else { Err(Failure::NotAllowed) }
    }

    /// The same, as the file said when the request came.
    fn may(&self, call: &Call) -> bool {
        may(&self.token, call)
    }

    /// Whether the token may do something with a key besides what its request is for, as the file says now.
    fn allow_key(&self, vault: &Vault, right: Right, key: &str) -> Result<(), Failure> {
        let token = vault.tokens.find(&self.hash).ok_or(Failure::Stranger)?;
        if token.entry.allows(right, key) { Ok(()) } else { Err(Failure::NotAllowed) }
    }
}

fn may(token: &Token, call: &Call) -> bool {
    match call.right() {
        Some((right, None)) => token.entry.rights.contains(&right),
        Some((right, Some(key))) => token.entry.allows(right, key),
        None => true,
    }
}

/// A request that the token may make.
struct Admitted {
    vault: Arc<Vault>,
    caller: Caller,
    call: Call,
}

impl Admitted {
    async fn read(&mut self, body: Reading) -> Result<Fields, Failure> {
        let (bytes, held) = body.rest().await?;
        self.caller.asker.held = Some(Arc::new(held));
        Fields::parse(bytes, self.call.fields())
    }

    async fn answer(self, fields: Fields) -> Result<Response<Body>, Failure> {
        let Admitted { vault, caller, call } = self;
        let answer = vault.call(&caller, &call, &fields).await?;
        // What was computed for a token that was revoked meanwhile is not given away.
        if call.keeps_its_token() {
            caller.allow(&vault, &call)?;
        }
        Ok(answer.with_unknown(fields.unknown()).into_response(caller.asker.held))
    }
}

/// Refuses headers that change what a request means. Their sender must not get an answer to another request.
fn refuse_what_is_ignored_elsewhere(headers: &HeaderMap) -> Result<(), Failure> {
    let mut wraps = headers.get_all("x-vault-wrap-ttl").iter();
    if wraps.any(|value| !value.is_empty()) {
        return Err(Failure::Bad("this gateway does not wrap responses (X-Vault-Wrap-TTL)".into()));
    }
    let mut namespaces = headers.get_all("x-vault-namespace").iter();
    match namespaces.all(|name| matches!(name.as_bytes(), b"" | b"/" | b"root" | b"root/")) {
        true => Ok(()),
        false => Err(Failure::Bad(
            "this gateway has no namespaces (X-Vault-Namespace); what keys a token may use, gateway.toml says".into(),
        )),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
