//! The operator's page, read-only: `/ui` of a gateway, and what `polyclave dashboard` serves.
//!
//! ```text
//! page.html, page.css, page.js      (no token: they say nothing of the cluster)
//! stream: a snapshot each second    access.rs (who may), viewers.rs (how many)
//!     |                             search.rs (keys by name)
//! collector.rs (asks each node once a second, however many look) -> history.rs -> snapshot.rs, alarms.rs
//! ```
//!
//! The page's program keeps its token in memory and sends it as a header. There is no cookie, so another site
//! that a browser visits can ask for nothing in its name. The page shows what comes from nodes and users of
//! keys as text only, and its policy forbids the browser every other source of programs.

mod access;
mod alarms;
mod collector;
mod history;
mod search;
mod snapshot;
mod viewers;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, Response, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::watch;

use crate::connections::Peer;
pub(crate) use access::{Access, Hosts};
use access::{Denied, Viewer};
pub(crate) use collector::{Collector, Own};
use search::Search;

const HTML: &str = include_str!("ui/page.html");
const CSS: &str = include_str!("ui/page.css");
const JS: &str = include_str!("ui/page.js");
const ICON: &str = include_str!("ui/icon.svg");

/// Nothing from elsewhere, nothing inline, and nobody may put the page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// A stream has a sign of life this often, even if there is no snapshot.
const ALIVE: Duration = Duration::from_secs(5);

/// The page, and what it asks for.
pub(crate) struct Ui {
    access: Access,
    collector: Arc<Collector>,
    search: Search,
}

impl Ui {
    pub(crate) fn new(access: Access, collector: Arc<Collector>) -> Arc<Ui> {
        let search = Search::new(collector.client());
        Arc::new(Ui { access, collector, search })
    }

    /// The caller, on a connection that is not a stranger's any more.
    fn admit(&self, request: &Request) -> Result<Viewer, Denied> {
        let viewer = self.access.admit(request.headers())?;
        viewer.comes_on(request.extensions().get::<Peer>())?;
        Ok(viewer)
    }
}

/// The routes of the page. `hosts` says by which names the page may be asked for.
pub(crate) fn pages(ui: Arc<Ui>, hosts: Hosts) -> Router {
    let text = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    Router::new()
        .route("/ui", text("text/html; charset=utf-8", HTML))
        .route("/ui/page.css", text("text/css; charset=utf-8", CSS))
        .route("/ui/page.js", text("text/javascript; charset=utf-8", JS))
        .route("/ui/icon.svg", text("image/svg+xml", ICON))
        .route("/ui/stream", get(snapshots))
        .route("/ui/keys", get(keys))
        .with_state(ui)
        .layer(from_fn_with_state(Arc::new(hosts), only_for_hosts))
        .layer(from_fn(with_headers))
}

async fn with_headers(request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    let set = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in set {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn only_for_hosts(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response<Body> {
    match hosts.refuse(request.headers()) {
        None => next.run(request).await,
        Some(why) => refused(StatusCode::MISDIRECTED_REQUEST, &why),
    }
}

async fn snapshots(State(ui): State<Arc<Ui>>, request: Request) -> Response<Body> {
    let viewer = match ui.admit(&request) {
        Ok(viewer) => viewer,
        Err(denied) => return refused(denied.status(), &denied.to_string()),
    };
    let Some(place) = ui.collector.look(viewer.name()) else {
        let message = "as many look at this page as the gateway has room for; close a page, or wait";
        return refused(StatusCode::SERVICE_UNAVAILABLE, message);
    };
    tracing::info!(token = viewer.name(), "looks at the page");
    let newest = ui.collector.newest();
    let body = stream::unfold((newest, place, viewer, ui), |(mut newest, place, viewer, ui)| async move {
        let chunk = next_chunk(&mut newest).await?;
        // A token may be revoked, and a page that took nothing for long gave its place away.
        let goes_on = ui.access.still(&viewer) && place.moves_on();
        goes_on.then(|| (Ok::<_, std::convert::Infallible>(chunk), (newest, place, viewer, ui)))
    });
    let mut response = Response::new(Body::from_stream(body));
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    // A proxy in front would otherwise hold the stream back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The newest snapshot, if there is another one; a page that is slow misses those between.
async fn next_chunk(newest: &mut watch::Receiver<Option<Bytes>>) -> Option<Bytes> {
    match tokio::time::timeout(ALIVE, newest.changed()).await {
        // The collector has ended, and the gateway is about to.
        Ok(Err(_)) => None,
        Err(_) => Some(Bytes::from_static(b": alive\n\n")),
        Ok(Ok(())) => Some(newest.borrow_and_update().clone().unwrap_or_default()),
    }
}

async fn keys(State(ui): State<Arc<Ui>>, request: Request) -> Response<Body> {
    let viewer = match ui.admit(&request) {
        Ok(viewer) => viewer,
        Err(denied) => return refused(denied.status(), &denied.to_string()),
    };
    let Some(wanted) = search::Wanted::of(request.uri().query().unwrap_or_default()) else {
        return refused(StatusCode::BAD_REQUEST, "the search is not one that this page makes");
    };
    match ui.search.find(wanted, move |name| viewer.may_list(name)).await {
        Ok(found) => {
            let mut response = Response::new(Body::from(found));
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Err(why) => refused(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
