//! `sys/health`: whether the nodes can serve, as Vault says whether it is sealed. It takes no token.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Response, StatusCode, Uri};
use serde_json::json;

use super::Vault;
use super::answer::{Answer, json_response};
use crate::failure::Failure;

pub(super) async fn answer(State(vault): State<Arc<Vault>>, method: Method, uri: Uri) -> Response<Body> {
    if !matches!(method, Method::GET | Method::HEAD) {
        return Answer::Failed(Failure::NoMethod).into_response();
    }
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
        "version": concat!("polyclave-", env!("CARGO_PKG_VERSION")),
        "cluster_name": format!("polyclave-{}", vault.cluster.protocol),
        "cluster_id": hex::encode(vault.cluster.id),
    });
    json_response(status, document)
}
