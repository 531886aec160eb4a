//! `sys`: whether the nodes can serve, as Vault says whether it is sealed; what is served under which path;
//! and what a token may do. The first of these take no token.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode, Uri};
use polyclave_api::Right;
use serde_json::{Map, Value, json};

use super::answer::{Answer, json_response};
use super::fields::Fields;
use super::route::{Call, Verb};
use super::{Caller, Vault};
use crate::failure::Failure;

/// The version that is told.
const VERSION: &str = concat!("polyclave-", env!("CARGO_PKG_VERSION"));
/// The paths that take no token.
pub(super) const WITHOUT_TOKEN: [&str; 4] =
    ["/v1/sys/health", "/v1/sys/seal-status", "/v1/sys/init", "/v1/sys/leader"];
/// Room for one of these documents.
const ROOM: usize = 1024;

/// Answers what takes no token.
pub(super) async fn answer(State(vault): State<Arc<Vault>>, request: Request) -> Response<Body> {
    let (method, uri) = (request.method(), request.uri());
    let is_health = uri.path() == WITHOUT_TOKEN[0];
    let failed = match *method {
        Method::GET => None,
        Method::HEAD if is_health => None,
        Method::POST | Method::PUT if uri.path() == WITHOUT_TOKEN[2] => {
            Some(Failure::Bad("Vault is already initialized".into()))
        }
        _ => Some(Failure::NoMethod),
    };
    if let Some(failure) = failed {
        return Answer::Failed(failure).into_response(None);
    }
    let document = match uri.path() {
        path if path == WITHOUT_TOKEN[1] => seal_status(&vault),
        path if path == WITHOUT_TOKEN[2] => json!({ "initialized": true }),
        path if path == WITHOUT_TOKEN[3] => leader(),
        _ => return health(&vault, uri),
    };
    json_response(StatusCode::OK, &document, ROOM, None)
}

fn health(vault: &Vault, uri: &Uri) -> Response<Body> {
    let can_serve = vault.look.trouble().is_none();
    // A prober may want other statuses.
    let wanted = |name: &str| {
        let mut pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let code = pairs.find(|(of, _)| *of == name)?.1.parse().ok()?;
        StatusCode::from_u16(code).ok().filter(|code| code.as_u16() >= 200)
    };
    let status = match can_serve {
        true => wanted("activecode").unwrap_or(StatusCode::OK),
        false => wanted("sealedcode").unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let document = json!({
        "initialized": true,
        "sealed": !can_serve,
        "standby": false,
        "performance_standby": false,
        "replication_performance_mode": "disabled",
        "replication_dr_mode": "disabled",
        "server_time_utc": now,
        "version": VERSION,
        "cluster_name": vault.cluster.name(),
        "cluster_id": vault.cluster.id_as_text(),
    });
    json_response(status, &document, ROOM, None)
}

/// Sealed is a gateway whose nodes cannot serve. It is unsealed by them, and not by shares that somebody
/// types in: `t` and `n` are how many nodes it takes, and how many there are.
fn seal_status(vault: &Vault) -> Value {
    let cluster = &vault.cluster;
    json!({
        "type": "shamir",
        "initialized": true,
        "sealed": vault.look.trouble().is_some(),
        "t": cluster.needed,
        "n": cluster.nodes,
        "progress": 0,
        "nonce": "",
        "version": VERSION,
        "build_date": "",
        "migration": false,
        "recovery_seal": false,
        "storage_type": "polyclave",
        "cluster_name": cluster.name(),
        "cluster_id": cluster.id_as_text(),
    })
}

/// As of a Vault of one server.
fn leader() -> Value {
    json!({
        "ha_enabled": false,
        "is_self": false,
        "active_time": "0001-01-01T00:00:00Z",
        "leader_address": "",
        "leader_cluster_address": "",
        "performance_standby": false,
        "performance_standby_last_remote_wal": 0,
    })
}

/// `sys/mounts`: what is served, under which path.
pub(super) fn mounts(vault: &Vault) -> Answer {
    let mount = |kind: &str, description: &str| {
        json!({
            "type": kind,
            "description": description,
            "accessor": format!("{kind}_{}", &vault.cluster.id_as_text()[..8]),
            "config": { "default_lease_ttl": 0, "max_lease_ttl": 0, "force_no_cache": false },
            "local": false,
            "seal_wrap": false,
            "external_entropy_access": false,
            "options": null,
            "uuid": vault.cluster.id_as_text(),
        })
    };
    Answer::Beside(Map::from_iter([
        ("transit/".to_owned(), mount("transit", "encryption under keys of the nodes")),
        ("transform/".to_owned(), mount("transform", "tokens of the same format")),
    ]))
}

/// `sys/capabilities-self`: what the token may do with some paths.
pub(super) fn capabilities(caller: &Caller, fields: &Fields) -> Result<Answer, Failure> {
    let mut paths = fields.texts("paths")?;
    if paths.is_empty() {
        paths = fields.texts("path")?;
    }
    if paths.is_empty() {
        return Err(Failure::Bad("paths must be supplied".into()));
    }
    let mut message: Map<String, Value> =
        paths.iter().map(|path| ((*path).to_owned(), json!(capabilities_of(caller, path)))).collect();
    if let [path] = paths[..] {
        message.insert("capabilities".into(), json!(capabilities_of(caller, path)));
    }
    Ok(Answer::Beside(message))
}

fn capabilities_of(caller: &Caller, path: &str) -> BTreeSet<&'static str> {
    let path = path.trim_start_matches('/');
    let may = |verb: Verb| Call::under(path, verb).is_ok_and(|call| call.is_served() && caller.may(&call));
    let known = [
        (Verb::Read, &["read"][..]),
        (Verb::List, &["list"]),
        (Verb::Write, &["create", "update"]),
        (Verb::Delete, &["delete"]),
    ];
    let mut allowed: BTreeSet<&str> =
        known.iter().filter(|(verb, _)| may(*verb)).flat_map(|(_, names)| *names).copied().collect();
    if let Ok(call) = Call::under(path, Verb::Write)
        && call.may_create()
        && !caller.token.entry.allows(Right::Generate, call.key())
    {
        allowed.remove("create");
    }
    match allowed.is_empty() {
        true => ["deny"].into(),
        false => allowed,
    }
}
