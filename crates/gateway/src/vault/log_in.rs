//! `auth/PATH/login`: a token of the gateway for one of an issuer. A login takes no token of the gateway, so
//! its body is short and has little time. A caller that is wrong too often waits behind others, and is told
//! nothing but that; its good logins are taken, since others may have its address.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use polyclave_config::LoginKind;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::Answer;
use super::body::Reading;
use super::fields::Fields;
use super::{Noted, Vault, object, refuse_what_is_ignored_elsewhere, token};
use crate::connections::Whose;
use crate::failure::Failure;
use crate::login::{Line, Login, Refused};
use crate::tokens::LoggedIn;

/// The most bytes of a body, and how long it may take.
const MAX_BODY: usize = 32 << 10;
const WITHIN: Duration = Duration::from_secs(10);
/// Whose memory the bodies of logins take.
const STRANGERS: &str = "logins";
/// The most characters of a role that a message shows.
const SHOWN: usize = 64;

/// The path of a login that is asked for.
pub(super) fn asked(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/auth/")?.trim_end_matches('/').strip_suffix("/login")
}

/// Answers a login.
pub(super) async fn answer(
    vault: &Vault,
    login: &Login,
    request: Request,
    noted: &mut Noted,
) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    if !matches!(head.method, Method::POST | Method::PUT) {
        return Err(Failure::NoMethod);
    }
    refuse_what_is_ignored_elsewhere(&head.headers)?;
    let from = head.extensions.get::<Whose>();
    let wait = from.and_then(|from| vault.failures.wait(from, Instant::now()));
    let outcome = log_in(vault, (login, vault.turns.of(wait.is_some())), body, noted).await;
    let is_callers_fault = matches!(outcome, Err(Failure::Bad(_) | Failure::Denied(_) | Failure::TooLong(_)));
    // Those that are refused for being too many do not count: else a caller that goes on is never told what
    // is wrong.
    if let (true, Some(from), None) = (is_callers_fault, from, wait) {
        vault.failures.note(from, Instant::now());
    }
    match wait {
        Some(wait) if is_callers_fault => Err(Failure::Hasty(format!(
            "too many logins from this address failed; log in again in {} s",
            wait.as_secs() + 1
        ))),
        _ => outcome,
    }
}

async fn log_in(
    vault: &Vault,
    (login, line): (&Login, Line<'_>),
    body: Body,
    noted: &mut Noted,
) -> Result<Answer, Failure> {
    let fields = match timeout(WITHIN, read(vault, body)).await {
        Ok(fields) => fields?,
        Err(_) => {
            return Err(Failure::Bad(format!(
                "the body of a login may take {} s to arrive",
                WITHIN.as_secs()
            )));
        }
    };
    let kind = login.settings.kind;
    let bad = |message: &str| Failure::Bad(message.into());
    let role = fields.text("role")?.filter(|role| !role.is_empty());
    let role = role.or(login.settings.default_role.as_deref()).ok_or_else(|| bad("missing role"))?;
    if login.settings.role(role).is_none() {
        let shown: String = role.chars().take(SHOWN).collect();
        return Err(match kind {
            LoginKind::Jwt => Failure::Bad(format!("role {shown:?} could not be found")),
            LoginKind::Kubernetes => Failure::Bad(format!("invalid role name {shown:?}")),
        });
    }
    let token = fields.text("jwt")?.filter(|token| !token.is_empty()).ok_or_else(|| match kind {
        LoginKind::Jwt => bad("missing token"),
        LoginKind::Kubernetes => bad("missing jwt"),
    })?;
    let given = vault.tokens.log_in((login, line), role, token).await;
    let given = given.map_err(|refused| failure(kind, &refused))?;
    // Before, the role is what a stranger says.
    (noted.token, noted.accessor) = (role.to_owned(), token::accessor(&given.hash));
    let (accessor, subject) = (&noted.accessor, &given.session.identity.subject);
    tracing::info!(login = login.settings.path, role, subject = ?subject, accessor, "logged in");
    Ok(Answer::Auth(auth(&given)))
}

async fn read(vault: &Vault, body: Body) -> Result<Fields, Failure> {
    // A body of this length never waits for its turn, and with few objects it takes none of the memory that
    // long requests of tokens need.
    let turns = Arc::new(Semaphore::new(0));
    let reading = Reading::begin(body, MAX_BODY, vault.memory.for_one(&STRANGERS.into()), turns)?;
    let mut reading = reading.of_few_objects();
    reading.is_short().await?;
    let (bytes, _held) = reading.rest().await?;
    Fields::parse(bytes, &["jwt", "role"])
}

/// A refusal with the status that Vault has for it.
fn failure(kind: LoginKind, refused: &Refused) -> Failure {
    match kind {
        _ if matches!(refused, Refused::Hasty(_)) => Failure::Hasty(refused.to_string()),
        _ if refused.is_ours() => Failure::Unavailable(refused.to_string()),
        LoginKind::Jwt => Failure::Bad(format!("error validating token: {refused}")),
        LoginKind::Kubernetes => Failure::Denied(refused.to_string()),
    }
}

fn auth(given: &LoggedIn) -> Map<String, Value> {
    let session = &given.session;
    object(json!({
        "client_token": *given.text,
        "accessor": token::accessor(&given.hash),
        "policies": [*session.role],
        "token_policies": [*session.role],
        "metadata": token::metadata(session),
        "lease_duration": session.ends.as_secs(),
        "renewable": true,
        "entity_id": "",
        "token_type": "service",
        "orphan": true,
        "mfa_requirement": null,
        "num_uses": 0,
    }))
}
