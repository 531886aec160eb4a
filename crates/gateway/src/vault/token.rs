//! Requests of a token about itself: to look it up, and to renew it. Tokens of a gateway do not end by
//! themselves.

use serde_json::{Map, Value, json};

use super::Caller;
use super::answer::Answer;

/// Bytes of the hash that name a token where it must not stand itself.
const ACCESSOR: usize = 12;

/// `lookup-self`.
pub(super) fn look_up(caller: &Caller) -> Answer {
    let name = &caller.token.entry.name;
    Answer::data(object(json!({
        "accessor": accessor(caller),
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
    })))
}

/// `renew-self`: the answer for a token without an end.
pub(super) fn renew(caller: &Caller) -> Answer {
    let name = &caller.token.entry.name;
    Answer::Auth(object(json!({
        "client_token": *caller.text,
        "accessor": accessor(caller),
        "policies": [name],
        "token_policies": [name],
        "metadata": null,
        "lease_duration": 0,
        "renewable": false,
        "entity_id": "",
        "token_type": "service",
        "orphan": true,
        "mfa_requirement": null,
        "num_uses": 0,
    })))
}

fn accessor(caller: &Caller) -> String {
    hex::encode(&caller.hash[..ACCESSOR])
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
