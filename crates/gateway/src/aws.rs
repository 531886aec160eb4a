//! The data plane of AWS Payment Cryptography (REST-JSON, 2022-02-03), so that its clients work with another
//! endpoint.
//!
//! ```text
//! route.rs (what is asked) -> signed.rs (who asks) -> operations.rs (read, with members.rs) -> keys.rs (of the nodes)
//!     -> here (whether the caller may) -> task.rs (the nodes) -> answer, or error.rs
//! ```
//!
//! A request names keys and public data, and encrypted PINs. PINs in the clear are in no request, no answer
//! and no part of this program. Nothing that a request says is in the log.

mod error;
mod keys;
mod members;
mod operations;
mod route;
mod task;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::routing::any;
use polyclave_api::Right;

use crate::counts::Counts;
use crate::failure::Failure;
use crate::queue::Queue;
use crate::signed::{self, Rules};
use crate::tokens::{AccessKey, Tokens};
use crate::vault::{Data, json_response};
use error::{Exception, Result, denied};
use keys::{Key, Known};
use route::Operation;

/// What signatures have to be.
const RULES: Rules = Rules { service: "payment-cryptography", within: time::Duration::minutes(15) };
/// More than an answer takes, so that no copy of it stays behind.
const ROOM: usize = 16 << 10;

/// What requests are answered with.
pub(crate) struct Aws {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queue: Queue,
    pub(crate) counts: Arc<Counts>,
    pub(crate) within: Duration,
    known: Known,
}

/// What the log says of a request.
struct Noted {
    access_key: String,
    operation: &'static str,
    keys: String,
}

impl Aws {
    pub(crate) fn new(tokens: Arc<Tokens>, queue: Queue, counts: Arc<Counts>, within: Duration) -> Aws {
        Aws { tokens, queue, counts, within, known: Known::default() }
    }
}

/// The paths of the API.
pub(crate) fn pages(aws: Arc<Aws>) -> Router {
    let with = |router: Router<Arc<Aws>>, path: String| router.route(&path, any(answer));
    route::paths().fold(Router::new(), with).with_state(aws)
}

async fn answer(State(aws): State<Arc<Aws>>, request: Request) -> Response<Body> {
    let began = Instant::now();
    let mut noted = Noted { access_key: "-".into(), operation: "none", keys: String::new() };
    let outcome = match tokio::time::timeout(aws.within, aws.serve(request, &mut noted)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Exception::Failure(Failure::Late)),
    };
    let failed = outcome.as_ref().err().map(ToString::to_string);
    let response = outcome.unwrap_or_else(|exception| exception.response());
    let (status, took) = (response.status().as_u16(), began.elapsed());
    aws.counts.request(("payments", noted.operation), status.to_string(), took);
    let Noted { access_key, operation, keys } = noted;
    let took_ms = took.as_millis();
    match failed {
        None => tracing::info!(access_key, operation, keys, status, took_ms, "answered"),
        Some(why) => tracing::warn!(access_key, operation, keys, status, took_ms, why, "refused"),
    }
    response
}

impl Aws {
    async fn serve(&self, request: Request, noted: &mut Noted) -> Result<Response<Body>> {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let (operation, key) = Operation::of(method, path).ok_or(Exception::NoOperation)?;
        noted.operation = operation.name();
        let signed = signed::read(&self.tokens, &RULES, request).await?;
        let access_key = &signed.access_key;
        noted.access_key = access_key.entry.name.clone();
        let (asked, region) = ((operation, key.as_deref()), signed.region.as_str());
        let answered = self.ask(access_key, asked, &signed.body, region, noted).await?;
        signed::check_not_revoked(&self.tokens, access_key)?;
        Ok(answered)
    }

    async fn ask(
        &self,
        access_key: &AccessKey,
        (operation, key): (Operation, Option<&str>),
        body: &[u8],
        region: &str,
        noted: &mut Noted,
    ) -> Result<Response<Body>> {
        let task = operations::read(operation, key, body)?;
        let asker = &access_key.asker;
        let (ids, mut names) = (task.keys(), Vec::new());
        for id in &ids {
            let (name, version) = self.known.name_of(id, asker, &self.queue).await?;
            noted.keys += &format!("{}{name}", if noted.keys.is_empty() { "" } else { "," });
            // Before anything is told of the key.
            let mut some = access_key.entry.rights.iter().filter(|right| **right != Right::List);
            if !some.any(|right| access_key.entry.allows(*right, &name)) {
                return Err(denied());
            }
            names.push(version);
        }
        let keys = self.known.show((asker, &self.queue), &ids, names, region).await?;
        let work = task.work(&keys)?;
        let right = work.right();
        let allows = |key: &Key| access_key.entry.allows(right, &key.info.properties.name);
        if !keys.iter().all(allows) {
            return Err(denied());
        }
        let of_nodes = keys.clone();
        let asked = asker.try_to_ask(&self.queue, move |client| work.ask(client, &of_nodes));
        let outcome = asked.await??.ok_or_else(|| task.failure())?;
        let answer = Data::from(task.answer(&outcome, &keys)?);
        let mut response = json_response(StatusCode::OK, &answer, ROOM, None);
        error::name(&mut response);
        Ok(response)
    }
}
