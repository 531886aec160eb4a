//! Requests of a token about itself: to look it up, to renew it, and to end it. Tokens of the file do not end
//! by themselves; those of logins do.

use std::time::Duration;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::Answer;
use super::fields::Fields;
use super::{Caller, Vault, object};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::tokens::Session;

/// Bytes of the hash that name a token where it must not stand itself.
const ACCESSOR: usize = 12;

/// `lookup-self`.
pub(super) fn look_up(vault: &Vault, caller: &Caller) -> Answer {
    match vault.tokens.session(&caller.hash) {
        Some(session) => Answer::data(of_login(caller, &session)),
        None => Answer::data(of_file(caller)),
    }
}

fn of_file(caller: &Caller) -> Map<String, Value> {
    let name = &caller.token.entry.name;
    object(json!({
        "accessor": accessor(&caller.hash),
        "creation_time": 0,
        "creation_ttl": 0,
        "display_name": name,
        "entity_id": "",
        "expire_time": null,
        "explicit_max_ttl": 0,
        "id": *caller.text,
        "meta": null,
        "num_uses": 0,
        "orphan": true,
        "path": "auth/token/create",
        "policies": [name],
        "renewable": false,
        "ttl": 0,
        "type": "service",
    }))
}

fn of_login(caller: &Caller, session: &Session) -> Map<String, Value> {
    let Session { login, role, identity, given, ends, last, life } = session;
    let as_text = |time: OffsetDateTime| time.format(&Rfc3339).ok();
    let since = OffsetDateTime::from(given.day());
    object(json!({
        "accessor": accessor(&caller.hash),
        "creation_time": since.unix_timestamp(),
        "creation_ttl": life.as_secs(),
        "display_name": format!("{}-{}", login.replace('/', "-"), identity.subject),
        "entity_id": "",
        "expire_time": as_text(since + *ends),
        "explicit_max_ttl": last.as_secs(),
        "id": *caller.text,
        "issue_time": as_text(since),
        "meta": metadata(session),
        "num_uses": 0,
        "orphan": true,
        "path": format!("auth/{login}/login"),
        "policies": [**role],
        "renewable": true,
        "ttl": left(session).as_secs(),
        "type": "service",
    }))
}

/// `renew-self`: a token of a login lives on; one of the file has no end.
pub(super) fn renew(vault: &Vault, caller: &Caller, fields: &Fields) -> Result<Answer, Failure> {
    let wanted = fields.duration("increment")?.filter(|wanted| !wanted.is_zero());
    let session = vault.tokens.renew(&caller.hash, wanted);
    let name = &caller.token.entry.name;
    Ok(Answer::Auth(object(json!({
        "client_token": *caller.text,
        "accessor": accessor(&caller.hash),
        "policies": [name],
        "token_policies": [name],
        "metadata": session.as_ref().map(metadata),
        "lease_duration": session.as_ref().map_or(0, |session| left(session).as_secs()),
        "renewable": session.is_some(),
        "entity_id": "",
        "token_type": "service",
        "orphan": true,
        "mfa_requirement": null,
        "num_uses": 0,
    }))))
}

/// `revoke-self`.
pub(super) fn revoke(vault: &Vault, caller: &Caller) -> Result<Answer, Failure> {
    match vault.tokens.end(&caller.hash) {
        true => Ok(Answer::Nothing),
        false => Err(Failure::Bad(
            "this token stands in gateway.toml, and is in force until its entry is removed there".into(),
        )),
    }
}

/// What Vault tells of who has logged in.
pub(super) fn metadata(session: &Session) -> Value {
    let members = session.identity.metadata.iter();
    Value::Object(members.map(|(name, value)| ((*name).to_owned(), Value::String(value.clone()))).collect())
}

/// For how long a token is good. The whole of a second has to have passed before it counts less.
fn left(session: &Session) -> Duration {
    let left = session.left(Moment::now());
    Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

/// What names a token where it must not stand itself.
pub(super) fn accessor(hash: &[u8; 32]) -> String {
    hex::encode(&hash[..ACCESSOR])
}
